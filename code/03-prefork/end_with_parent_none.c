/* Elsewhere the processes of a server that was killed serve on until somebody stops each. */
#include "03-prefork/end_with_parent.h"

void end_with_parent(pid_t parent)
{
    (void)parent;
}
