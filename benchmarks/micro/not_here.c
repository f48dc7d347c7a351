/* In place of a program, for a system or a C library that has not what the program is about. */
#include "die.h"

int main(int argc, char *argv[])
{
    (void)argc;
    set_program_name(argv[0]);
    die(EXIT_UNSUPPORTED, "Linux and glibc are needed");
}
