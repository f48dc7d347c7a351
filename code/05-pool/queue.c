#include "05-pool/queue.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "die.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static struct connection **ring;
static int size, first, waiting; /* ring[first], and waiting - 1 after it, round the end */
static bool closed;

void queue_init(int most)
{
    size = most;
    ring = calloc((size_t)most, sizeof *ring);
    if (ring == NULL)
        die_errno("calloc");
}

/* region: put */
void queue_put(struct connection *conn)
{
    pthread_mutex_lock(&lock);
    ring[(first + waiting) % size] = conn;
    waiting++;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&lock);
}
/* endregion: put */

/* region: take */
struct connection *queue_take(void)
{
    struct connection *conn = NULL;

    pthread_mutex_lock(&lock);
    /* while and not if: between the signal and the lock another thread may have been faster, and a
     * wait may end without any signal. */
    /* region: oldest */
    while (waiting == 0 && !closed)
        pthread_cond_wait(&not_empty, &lock);
    if (waiting > 0) {
        conn = ring[first];
        first = (first + 1) % size;
        waiting--;
    }
    /* endregion: oldest */
    pthread_mutex_unlock(&lock);
    return conn;
}
/* endregion: take */

void queue_close(void)
{
    pthread_mutex_lock(&lock);
    closed = true;
    pthread_cond_broadcast(&not_empty);
    pthread_mutex_unlock(&lock);
}
