/* Unit tests of the queue of equally distant deadlines. */
#include "clock.h"

#include "tap.h"

int main(void)
{
    struct deadline_queue queue;
    struct deadline a = {0};
    struct deadline b = {0};
    struct deadline c = {0};

    deadline_queue_init(&queue, 100);
    OK(deadline_next(&queue) == CLOCK_NEVER);
    OK(deadline_expired(&queue, 1000) == NULL);
    deadline_clear(&a);
    deadline_set(&queue, &a, 1);
    deadline_set(&queue, &b, 2);
    deadline_set(&queue, &c, 3);
    OK(deadline_next(&queue) == 101);
    OK(deadline_expired(&queue, 100) == NULL);
    deadline_clear(&b);
    deadline_clear(&b);
    OK(deadline_expired(&queue, 103) == &a);
    OK(deadline_next(&queue) == 103);
    deadline_set(&queue, &c, 50);
    OK(deadline_next(&queue) == 150);
    deadline_set(&queue, &a, 60);
    OK(deadline_expired(&queue, 1000) == &c);
    OK(deadline_expired(&queue, 1000) == &a);
    OK(deadline_expired(&queue, 1000) == NULL);
    OK(deadline_next(&queue) == CLOCK_NEVER);
    return tap_end();
}
