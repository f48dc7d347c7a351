/* The second server of the demonstration book: a process per client. */

#include <stdio.h>
#include <unistd.h>

static int greet(int fd)
{
    static const char text[] = "hello\n"; /* a comment */

    if (write(fd, text, sizeof text - 1) < 0)
        return -1;
    return close(fd);
}

/* region: child */
static void child(void)
{
    /* region: work */
    if (greet(STDOUT_FILENO) < 0)
        perror("greet");
    /* endregion: work */
    /* region: leave */
    _exit(0);
    /* endregion: leave */
}
/* endregion: child */

/* region: main */
int main(void)
{
    for (int round = 0; round < 3; round++) {
        pid_t pid = fork();

        if (pid < 0)
            perror("fork");
        else if (pid == 0)
            child();
    }
    return 0;
}
/* endregion: main */
