/*
 * file_cache.h: the files that were asked for lately, open, with the head of their reply, and small
 * ones with their bytes. A small one needs recv() and one send(), a large one sendfile() as well.
 *
 * How it stays true: an entry is believed for FRESH_MS. Then the file is opened once more by its
 * name, and if it is another one (device, inode, size, mtime, ctime) it takes the old one's place.
 * A file that changed less than YOUNG_S seconds before it was read may have changed again within
 * the same tick of the clock that writes its times. It is not kept: each request opens it. Limit:
 * writes through a shared mapping may change no time at all (mmap(2)).
 *
 * How it stays small: at most file_cache_most entries; the one not used for the longest leaves
 * first. An entry that was not used for UNUSED_MS leaves as well: it holds its file open, and the
 * disk space of a deleted file is free only when no process does. A reply that is being sent keeps
 * its entry until file_release(), in the table or not.
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
    long long used;        /* when it was last asked for */
    long long resident_at; /* since when it is known to be in memory ... */
    off_t resident_to;     /* ... from its beginning to here */
    time_t head_second;    /* of the Date in head; 0: none */
    unsigned short head_len;
    char head[400]; /* of a 200, up to what is said of the connection */
    char *body;     /* st.st_size bytes, or NULL */
    char path[];
};

/* How many entries there may be; each may hold a descriptor. To be set before the first call. */
extern int file_cache_most;

/* The entry of this path, or NULL. *fresh: it may be used without opening the name again. The
 * caller becomes a user of it: file_release(). */
struct file *file_find(const char *path, long long now, bool *fresh);

/* Whether f is unchanged: st is from fstat() of what its name has just led to. Then it is fresh. */
bool file_confirm(struct file *f, const struct stat *st, long long now);

/*
 * Takes over fd and body, also when it fails. Puts the file in the place of the entry of this path,
 * or keeps that if it is still right. The caller becomes a user of what is returned:
 * file_release(); NULL: no memory. (A young file, one that is not regular, and one that was looked
 * up earlier than the entry are returned and not entered.)
 */
struct file *file_enter(const char *path, const struct found *found, long long now);

/* Removes the entry; replies that are being sent keep the file. */
void file_forget(const char *path);

/* Once in a turn: removes entries not used for UNUSED_MS. Returns the milliseconds until the next
 * one is due; -1: the table is empty. */
int file_cache_sweep(long long now);

/*
 * Makes the reply. The descriptor stays f's; r->fd is -1 where it has none, and then the bytes from
 * r->offset to r->end are those of f->body.
 */
void file_reply(struct file *f, struct reply *r, const struct request *req);

void file_release(struct file *f); /* the caller is a user no more; the last one frees f */

#endif
