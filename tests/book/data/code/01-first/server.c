/* The first server of the demonstration book: one client at a time. */

#include <stdio.h>
#include <unistd.h>

/* region: greet */
static int greet(int fd)
{
    static const char text[] = "hello\n"; /* a comment */

    if (write(fd, text, sizeof text - 1) < 0)
        return -1;
    return close(fd);
}
/* endregion: greet */

/* region: main */
int main(void)
{
    for (int round = 0; round < 3; round++) {
        if (greet(STDOUT_FILENO) < 0)
            perror("greet");
    }
    return 0;
}
/* endregion: main */
