#include <stdio.h>

int main(void)
{
    for (;;)
        puts("02-fork");
}
