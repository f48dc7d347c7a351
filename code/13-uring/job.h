/*
 * job.h: a request that is complete, its file and its reply: the memory that the kernel uses while
 * it opens, stats, reads and sends. It is not part of the connection, because the disk may never
 * answer: the connection then goes on, or ends, and the job stays until the kernel has done.
 */
#ifndef URING_JOB_H
#define URING_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "http_parse.h"
#include "list.h"
#include "reply.h"

#define PIECE_BYTES 65536

/*
 * A job has a piece of memory while the kernel works for it, and none while it waits for the client
 * to read. A lane is a kind of work with pieces of its own: as many as its jobs may have under way.
 * NAMES: a worker of the kernel opens and stats the file. BYTES: a worker reads. In both the job
 * keeps its piece and the worker for as long as the disk takes. CACHED: it opens, reads and sends
 * what is in memory, with a worker for each statx, which does not wait for the disk. The numbers of
 * pieces leave workers for CACHED: uring_jobs_set_up(). With -r 1 or 2 none is left.
 */
enum lane { CACHED, NAMES, BYTES, LANES };

struct uring_conn;

struct uring_job {
    struct uring_conn *conn; /* NULL: it has left; the job is freed by its last completion */
    bool at_disk;            /* an open, a stat, or a worker's read is in flight */
    bool is_lost;            /* the disk has not answered, and the client was told 503 */
    bool is_tmpfs;           /* all of the file is in memory, and reads need no RWF_NOWAIT */
    bool cannot_tell;        /* the file system, FUSE, cannot say what is in memory */
    enum lane lane;
    char *piece;            /* NULL: none */
    struct list node;       /* in the queue for a piece of the lane, or in none */
    struct request request; /* its slices point into the connection's input, until it is planned */
    int used;               /* bytes of that input, or minus a refusing status; 0 once planned */
    int file;               /* -1: none is open */
    int tries;              /* to open it */
    long long asked;        /* since when it waits for a piece or the disk, by now_ms() */
    struct statx found;     /* written by the kernel */
    struct reply reply;     /* its status is 0 until it is planned */
    long long sent;         /* bytes of the reply */
    size_t head, len;       /* bytes in the piece: of the head, and in all */
};

/* Makes the pieces. Of so many workers half may read (1 to 128), a quarter open (1 to 64). */
void uring_jobs_set_up(unsigned workers);

/* `used` is what http_parse() returned; 0: it replaces a job that is lost. NULL without memory. */
struct uring_job *uring_job_new(struct uring_conn *c, const struct request *req, int used);

/* Closes the file and gives the piece back. No operation in flight may name the job. */
void uring_job_free(struct uring_job *job);

/* How many there are, and how many of them are lost. */
extern int uring_jobs, uring_jobs_lost;

/* Whether the job can leave its connection. True at the disk, since the operation in flight names
 * the job and not the connection; and without a piece, since then none uses the job. */
static inline bool uring_job_can_leave(const struct uring_job *job)
{
    return job->at_disk || job->piece == NULL;
}

/* Goes to this lane; a piece of another is given back. */
void uring_job_enter(struct uring_job *job, enum lane lane);
void uring_job_give_piece(struct uring_job *job);

/* Gets a piece of the lane. False: the job waits in a queue, first come, first served, until
 * uring_job_next() returns it with its piece. That returns NULL if no job can have one. */
bool uring_job_take_piece(struct uring_job *job);
struct uring_job *uring_job_next(void);

/* Puts what is left of the head into the piece and sets job->head and job->len. Returns the offset
 * in the file of the bytes that go behind it. */
off_t uring_job_fill(struct uring_job *job);

/* How many bytes the whole reply has. */
static inline long long uring_job_size(const struct uring_job *job)
{
    const struct reply *r = &job->reply;

    return (long long)r->head_len + (r->fd >= 0 ? r->end - r->offset : 0);
}

#endif
