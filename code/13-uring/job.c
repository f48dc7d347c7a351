#include "13-uring/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "13-uring/ring.h"
#include "die.h"
#include "stop.h"

#define LANE_MOST 128

/* The piece that was given back last is taken first: it is in the processor's cache. */
static struct {
    struct list waiting;
    int spares;
    char *spare[LANE_MOST];
} lanes[LANES];
int uring_jobs, uring_jobs_lost;

static int within(int least, int n, int most)
{
    return n < least ? least : n > most ? most : n;
}

void uring_jobs_set_up(unsigned workers)
{
    /* A quarter of the workers (-r 1 or 2: none) stays for CACHED: each statx is given to one. */
    const int sizes[LANES] = {[CACHED] = LANE_MOST / 2,
                              [NAMES] = within(1, (int)workers / 4, LANE_MOST / 2),
                              [BYTES] = within(1, (int)workers / 2, LANE_MOST)};

    for (int i = 0; i < LANES; i++) {
        void *pieces;
        errno = posix_memalign(&pieces, 4096, (size_t)sizes[i] * PIECE_BYTES);
        if (errno != 0)
            die_errno("posix_memalign");
        list_init(&lanes[i].waiting);
        for (char *piece = pieces; lanes[i].spares < sizes[i]; piece += PIECE_BYTES)
            lanes[i].spare[lanes[i].spares++] = piece;
    }
}

struct uring_job *uring_job_new(struct uring_conn *c, const struct request *req, int used)
{
    struct uring_job *job = calloc(1, sizeof *job);

    if (job == NULL)
        return NULL;
    job->conn = c;
    list_init(&job->node);
    job->request = *req;
    job->request.keep_alive = req->keep_alive && !stopping;
    job->used = used;
    job->file = -1;
    uring_jobs++;
    return job;
}

void uring_job_free(struct uring_job *job)
{
    if (job->file >= 0) {
        struct io_uring_sqe *sqe = ring_sqe(RING_IGNORED);
        io_uring_prep_close(sqe, job->file);
        sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
    }
    list_remove(&job->node);
    uring_job_give_piece(job);
    uring_jobs--;
    uring_jobs_lost -= job->is_lost;
    free(job);
}

void uring_job_give_piece(struct uring_job *job)
{
    if (job->piece != NULL)
        lanes[job->lane].spare[lanes[job->lane].spares++] = job->piece;
    job->piece = NULL;
}

void uring_job_enter(struct uring_job *job, enum lane lane)
{
    if (job->lane != lane)
        uring_job_give_piece(job);
    job->lane = lane;
}

static bool take_piece(struct uring_job *job)
{
    if (lanes[job->lane].spares > 0)
        job->piece = lanes[job->lane].spare[--lanes[job->lane].spares];
    return job->piece != NULL;
}

/* No job overtakes those that wait, or a few fast downloads would keep all pieces. */
bool uring_job_take_piece(struct uring_job *job)
{
    struct list *waiting = &lanes[job->lane].waiting;

    if (job->piece != NULL || (list_is_empty(waiting) && take_piece(job)))
        return true;
    list_append(waiting, &job->node);
    return false;
}

struct uring_job *uring_job_next(void)
{
    for (int i = 0; i < LANES; i++) {
        struct uring_job *job = CONTAINER_OF(lanes[i].waiting.next, struct uring_job, node);
        if (!list_is_empty(&lanes[i].waiting) && take_piece(job)) {
            list_remove(&job->node);
            return job;
        }
    }
    return NULL;
}

off_t uring_job_fill(struct uring_job *job)
{
    const struct reply *r = &job->reply;
    long long head = (long long)r->head_len - job->sent, left = uring_job_size(job) - job->sent;

    job->head = head > 0 ? (size_t)head : 0;
    job->len = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
    memcpy(job->piece, r->head + r->head_len - job->head, job->head);
    return r->offset + (head > 0 ? 0 : -head);
}
