#include <unistd.h>

int main(int argc, char **argv)
{
    (void)argc;
    execv("@TREE@/build/bin/02-fork", argv);
    execv("/usr/sbin/nginx", (char *[]){"nginx", "-g", "daemon off;", 0});
    execv("/usr/bin/python3", (char *[]){"python3", "-m", "http.server", 0});
    return 0;
}
