/* Requests of the kernel; see requests.h. */
#define FUSE_USE_VERSION 314

#include "requests.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define PARALLEL    512
#define FOREVER_S   (365 * 86400.0)
#define MAX_EXTENTS (MAX_READ / 4096 + 1) /* the smallest fragment, and one more: none is aligned */

/* A FUSE request that waits for the disk. */
struct waiting {
    struct job job;
    fuse_req_t req;
    struct node node;
    bool is_lookup;
    uint64_t offset;
    size_t size;
    struct request requests[MAX_EXTENTS];
};

/* What .statistics said when it was opened. In a list: the kernel need not tell of each close. */
struct snapshot {
    char *text;
    struct snapshot *next, **link;
};

struct museum museum;

/* ---- answers ---- */

static struct stat attributes(const struct node *node)
{
    struct stat st = {.st_ino = node->inode, .st_uid = getuid(), .st_gid = getgid()};
    st.st_mode = node_is_directory(node) ? S_IFDIR | 0555 : S_IFREG | 0444;
    st.st_nlink = node_is_directory(node) ? 2 : 1;
    st.st_size = (off_t)node_size(node);
    st.st_blocks = (st.st_size + 511) / 512;
    st.st_blksize = 4096;
    st.st_atim.tv_sec = st.st_mtim.tv_sec = st.st_ctim.tv_sec = FILES_MTIME;
    return st;
}

/* Of a name that is not there the kernel remembers that, too: inode 0. */
static void answer_lookup(fuse_req_t req, const struct node *node)
{
    struct fuse_entry_param entry = {.attr_timeout = FOREVER_S, .entry_timeout = FOREVER_S};
    if (node->kind != NODE_NONE) {
        entry.ino = node->inode;
        entry.generation = 1;
        entry.attr = attributes(node);
    }
    fuse_reply_entry(req, &entry);
}

static void answer_read(fuse_req_t req, const struct node *node, uint64_t offset, size_t size)
{
    static _Thread_local char content[MAX_READ];
    file_content(&museum.options.files, node, offset, content, size);
    fuse_reply_buf(req, content, size);
}

void answer(struct job *job)
{
    struct waiting *w = (struct waiting *)(void *)((char *)job - offsetof(struct waiting, job));
    if (w->is_lookup)
        answer_lookup(w->req, &w->node);
    else
        answer_read(w->req, &w->node, w->offset, w->size);
    free(w);
}

/* NULL: no memory, and the request has got its error. */
static struct waiting *new_waiting(fuse_req_t req, const struct node *node)
{
    struct waiting *w = calloc(1, sizeof *w);
    if (!w) {
        fuse_reply_err(req, ENOMEM);
        return NULL;
    }
    w->req = req;
    w->node = *node;
    w->job.requests = w->requests;
    return w;
}

static void ask(struct waiting *w, uint64_t start, uint64_t length)
{
    w->requests[w->job.count++] = (struct request){.start = start, .length = length};
}

/* ---- requests of the kernel ---- */

static void count(uint64_t *counter, uint64_t n)
{
    pthread_mutex_lock(&museum.spindles.lock);
    *counter += n;
    pthread_mutex_unlock(&museum.spindles.lock);
}

static void want(struct fuse_conn_info *conn, unsigned flag, bool wanted)
{
    conn->want = wanted ? conn->want | (flag & conn->capable) : conn->want & ~flag;
}

static void on_init(void *unused, struct fuse_conn_info *conn)
{
    (void)unused;
    want(conn, FUSE_CAP_AUTO_INVAL_DATA, false);
    want(conn, FUSE_CAP_READDIRPLUS, false);
    want(conn, FUSE_CAP_ASYNC_READ, true);
    want(conn, FUSE_CAP_ASYNC_DIO, true);
    want(conn, FUSE_CAP_PARALLEL_DIROPS, true);
    conn->max_background = PARALLEL;
    conn->congestion_threshold = PARALLEL;
    conn->max_read = MAX_READ;
    conn->time_gran = 1000000000;
}

static void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct node folder = node_of(&museum.options.files, parent);
    struct node node = node_lookup(&museum.options.files, &folder, name);

    if (node.kind != NODE_STATISTICS && node.kind != NODE_PHASE)
        count(&museum.spindles.asked.lookups, 1);
    /* The directories themselves are few, and would soon be in memory: only inodes are far away. */
    if (!museum.options.cold_metadata || node.kind != NODE_FILE) {
        answer_lookup(req, &node);
        return;
    }
    struct waiting *w = new_waiting(req, &node);
    if (!w)
        return;
    w->is_lookup = true;
    ask(w, inode_place(&museum.options.files, node.inode), INODE_BYTES);
    spindles_submit(&museum.spindles, &w->job);
}

static void on_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct node node = node_of(&museum.options.files, ino);
    (void)fi;
    count(&museum.spindles.asked.getattrs, 1);
    if (node.kind == NODE_NONE) {
        fuse_reply_err(req, ENOENT);
        return;
    }
    struct stat st = attributes(&node);
    fuse_reply_attr(req, &st, FOREVER_S);
}

char *report_now(bool reset)
{
    struct museum *m = &museum;
    pthread_mutex_lock(&m->spindles.lock);
    struct report report = spindles_report(&m->spindles, reset);
    report.cache_hits = m->cache.hits;
    report.cache_misses = m->cache.misses;
    if (reset)
        m->cache.hits = m->cache.misses = 0;
    char *text = report_text(&report);
    pthread_mutex_unlock(&m->spindles.lock);
    return text;
}

static struct snapshot *new_snapshot(bool reset)
{
    struct snapshot *s = malloc(sizeof *s);
    if (!s)
        return NULL;
    s->text = report_now(reset);
    if (!s->text) {
        free(s);
        return NULL;
    }
    s->next = museum.snapshots;
    s->link = &museum.snapshots;
    if (s->next)
        s->next->link = &s->next;
    museum.snapshots = s;
    return s;
}

static void free_snapshot(struct snapshot *s)
{
    *s->link = s->next;
    if (s->next)
        s->next->link = s->link;
    free(s->text);
    free(s);
}

void forget_snapshots(void)
{
    while (museum.snapshots)
        free_snapshot(museum.snapshots);
}

static void on_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct node node = node_of(&museum.options.files, ino);
    struct snapshot *snapshot = NULL;
    if ((fi->flags & O_ACCMODE) != O_RDONLY) {
        fuse_reply_err(req, EROFS);
        return;
    }
    fi->noflush = 1;
    if (node.kind == NODE_FILE) {
        count(&museum.spindles.asked.opens, 1);
        fi->keep_cache = museum.options.keep;
    } else {
        snapshot = new_snapshot(node.kind == NODE_PHASE);
        if (!snapshot) {
            fuse_reply_err(req, ENOMEM);
            return;
        }
        fi->fh = (uint64_t)(uintptr_t)snapshot;
        fi->direct_io = 1; /* its size is not known before */
    }
    if (fuse_reply_open(req, fi) != 0 && snapshot)
        free_snapshot(snapshot); /* who wanted it has gone: nobody will close it */
}

static void on_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    if (fi->fh)
        free_snapshot((struct snapshot *)(uintptr_t)fi->fh);
    fuse_reply_err(req, 0);
}

/* What of these bytes the cache has not, as requests. */
static void ask_for(struct waiting *w)
{
    struct museum *m = &museum;
    uint64_t from = w->offset, to = from + w->size;
    pthread_mutex_lock(&m->spindles.lock);
    m->spindles.asked.reads++;
    m->spindles.asked.bytes += w->size;
    bool missing = cache_read(&m->cache, w->node.inode, &from, &to);
    pthread_mutex_unlock(&m->spindles.lock);
    while (missing && from < to) {
        struct extent piece = file_extent(&m->options.files, &w->node, from, to - from);
        ask(w, piece.start, piece.length);
        from += piece.length;
    }
}

static void on_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                    struct fuse_file_info *fi)
{
    struct node node = node_of(&museum.options.files, ino);
    const char *text = fi->fh ? ((struct snapshot *)(uintptr_t)fi->fh)->text : NULL;
    uint64_t from = (uint64_t)offset, end = text ? strlen(text) : node_size(&node);

    if (size > MAX_READ)
        size = MAX_READ;
    size = from >= end ? 0 : end - from < size ? (size_t)(end - from) : size;
    if (text || size == 0) {
        fuse_reply_buf(req, text ? text + (size ? from : 0) : NULL, size);
        return;
    }
    struct waiting *w = new_waiting(req, &node);
    if (!w)
        return;
    w->offset = from;
    w->size = size;
    ask_for(w);
    if (w->job.count == 0)
        answer(&w->job);
    else
        spindles_submit(&museum.spindles, &w->job);
}

static size_t add_entry(fuse_req_t req, char *at, size_t room, const char *name,
                        const struct node *node, uint64_t next)
{
    struct stat st = attributes(node);
    return fuse_add_direntry(req, at, room, name, &st, (off_t)next);
}

static void on_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t from,
                       struct fuse_file_info *fi)
{
    struct node node = node_of(&museum.options.files, ino);
    uint64_t offset = (uint64_t)from;
    char name[MAX_POOL_NAME + 1];
    char *list = malloc(size);
    size_t used = 0;
    (void)fi;
    if (!list) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    for (;; offset++) {
        /* Who is above is the kernel's to know; what stands here as ".." it does not use. */
        struct node entry =
            offset < 2 ? node : node_entry(&museum.options.files, &node, offset - 2, name);
        if (entry.kind == NODE_NONE)
            break;
        const char *shown = offset == 0 ? "." : offset == 1 ? ".." : name;
        size_t needed = add_entry(req, list + used, size - used, shown, &entry, offset + 1);
        if (needed > size - used)
            break;
        used += needed;
    }
    fuse_reply_buf(req, list, used);
    free(list);
}

static void on_statfs(fuse_req_t req, fuse_ino_t ino)
{
    struct statvfs st = {.f_bsize = 4096, .f_frsize = 4096, .f_namemax = MAX_POOL_NAME};
    (void)ino;
    st.f_blocks = museum.options.geometry.capacity / 4096;
    st.f_files = museum.options.files.total;
    fuse_reply_statfs(req, &st);
}

const struct fuse_lowlevel_ops requests = {
    .init = on_init,
    .lookup = on_lookup,
    .getattr = on_getattr,
    .open = on_open,
    .read = on_read,
    .release = on_release,
    .readdir = on_readdir,
    .statfs = on_statfs,
};
