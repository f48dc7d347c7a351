/*
 * file_cache.h: the files that have been asked for lately, open, with the head of their reply, and
 * if they are small with their bytes. What is here is answered without a system call but recv() and
 * send().
 *
 * How it stays true: an entry is believed for FRESH_MS. Then the file is opened once more by its
 * name, and if it is not the same (device, inode, size, mtime, ctime) it takes the old one's place.
 * A file that changed less than YOUNG_S seconds before it was read may have changed again within
 * the same tick of the clock that writes its times: such a one is believed for nobody but those who
 * wait for it now. (What is written through a shared mapping may change no time at all, mmap(2):
 * that is not seen.)
 *
 * How it stays small: at most file_cache_most entries, the one not used for the longest leaves
 * first. One that was not used for UNUSED_MS leaves in any case: it holds its file open, and the
 * disk space of a file that has been deleted is free only when nobody does. Whoever is sending
 * keeps its entry until it is done (file_release()), in the table or not.
 */
#ifndef FILE_CACHE_H
#define FILE_CACHE_H

#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>

#include "12-aio/look_up.h"
#include "list.h"
#include "reply.h"

#define FRESH_MS       1000
#define UNUSED_MS      10000
#define YOUNG_S        2
#define FILE_BODY_MOST (16 * 1024) /* bytes: kept in memory, and the descriptor closed */
struct file {
    struct file *next;  /* with the same hash */
    struct list by_use; /* the file used last is the last */
    int users;          /* replies being sent, and one for the table */
    int fd;             /* -1: all of the file is in body */
    struct stat st;
    long long checked;     /* when the name last led to this file, by now_ms() */
    long long used;        /* when somebody asked for it last */
    long long resident_at; /* since when it has been seen that it is in memory ... */
    off_t resident_to;     /* ... from its beginning to here */
    time_t head_second;    /* of the Date in head; 0: none */
    unsigned short head_len;
    char head[400]; /* of a 200, up to what is said of the connection */
    char *body;     /* st.st_size bytes, or NULL */
    char path[];
};

/* How many entries there may be; each may hold a descriptor. To be set before the first call. */
extern int file_cache_most;

/* The file of this path if it has been here; *fresh tells whether it may be used without looking at
 * the name again. The caller is a user of what is returned. */
struct file *file_find(const char *path, long long now, bool *fresh);

/* Whether this is the file, unchanged, to which its name has just led, by fstat(): then it is
 * fresh. */
bool file_confirm(struct file *f, const struct stat *st, long long now);

/*
 * Takes fd and body over. Puts the file in the place of what was there under this path, or finds
 * that the old one is still right. The caller is a user of what is returned; NULL: no memory, and
 * fd and body are gone all the same.
 */
struct file *file_enter(const char *path, const struct found *found, long long now);

/* The name leads nowhere any more. */
void file_forget(const char *path);

/* Once in a turn: forgets those that were not used for UNUSED_MS. Returns the milliseconds until
 * there will be such a one; -1: the table is empty. */
int file_cache_sweep(long long now);

/*
 * The reply for this file, which stays the holder of the descriptor: r->fd is -1 where there is
 * none, and the bytes from r->offset to r->end are those of f->body.
 */
void file_reply(struct file *f, struct reply *r, const struct request *req);

void file_release(struct file *f);

#endif
