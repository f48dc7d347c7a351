/*
 * nothing: what do the others execute when they want the least there is to execute?
 *
 * Shows: nothing; status 0.
 * Needs: nothing.
 * Run:   nothing
 */
#include <stdlib.h>

int main(void)
{
    return EXIT_SUCCESS;
}
