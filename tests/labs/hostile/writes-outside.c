#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
    const char *places[] = {"@TREE@/lab_was_here", "/tmp/lab_was_here", "/var/tmp/lab_was_here",
                            "/dev/shm/lab_was_here", "/lab_was_here", "/home/lab_was_here"};

    for (unsigned i = 0; i < sizeof places / sizeof *places; i++)
        close(open(places[i], O_WRONLY | O_CREAT, 0644));
    return 0;
}
