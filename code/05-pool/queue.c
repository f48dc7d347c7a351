#include "05-pool/queue.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "die.h"

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static struct connection **ring;
static int room, oldest, waiting; /* ring[oldest] and the waiting - 1 after it, modulo room */
static bool closed;

void queue_init(int most)
{
    room = most;
    ring = calloc((size_t)most, sizeof *ring);
    if (ring == NULL)
        die_errno("calloc");
}

void queue_put(struct connection *conn)
{
    pthread_mutex_lock(&queue_lock);
    ring[(oldest + waiting) % room] = conn;
    waiting++;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&queue_lock);
}

struct connection *queue_take(void)
{
    struct connection *conn = NULL;

    pthread_mutex_lock(&queue_lock);
    /* while, not if: another thread may have taken the connection between the signal and the lock,
     * and a wait may end without a signal (a spurious wakeup). */
    /* region: oldest */
    while (waiting == 0 && !closed)
        pthread_cond_wait(&not_empty, &queue_lock);
    if (waiting > 0) {
        conn = ring[oldest];
        oldest = (oldest + 1) % room;
        waiting--;
    }
    /* endregion: oldest */
    if (waiting > 0) /* dietlibc may wake the same thread by two signals in a row */
        pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&queue_lock);
    return conn;
}

void queue_close(void)
{
    pthread_mutex_lock(&queue_lock);
    closed = true;
    pthread_cond_broadcast(&not_empty);
    pthread_mutex_unlock(&queue_lock);
}
