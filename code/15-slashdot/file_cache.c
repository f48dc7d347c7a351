#include "15-slashdot/file_cache.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUCKETS 4096 /* a power of two */

int file_cache_most = 1024;

static struct file *buckets[BUCKETS];
static struct list by_use = EMPTY_LIST(by_use); /* the oldest first */
static int entries;

/* FNV-1a. An attacker can choose paths that fall into one bucket; a search then takes
 * file_cache_most steps at worst. */
static struct file **cache_bucket(const char *path)
{
    uint32_t hash = 2166136261u;

    for (; *path != '\0'; path++)
        hash = (hash ^ (unsigned char)*path) * 16777619u;
    return &buckets[(hash ^ hash >> 16) % BUCKETS];
}

static struct file **cache_place(const char *path)
{
    struct file **place = cache_bucket(path);

    while (*place != NULL && strcmp((*place)->path, path) != 0)
        place = &(*place)->next;
    return place;
}

static struct file *cache_oldest(void)
{
    return list_is_empty(&by_use) ? NULL : CONTAINER_OF(by_use.next, struct file, by_use);
}

void file_release(struct file *f)
{
    if (--f->users > 0)
        return;
    if (f->fd >= 0)
        close(f->fd);
    free(f->body);
    free(f);
}

static void cache_remove(struct file **place)
{
    struct file *f = *place;

    *place = f->next;
    list_remove(&f->by_use);
    entries--;
    file_release(f);
}

struct file *file_find(const char *path, long long now, bool *fresh)
{
    struct file *f = *cache_place(path);

    *fresh = f != NULL && now - f->checked < FRESH_MS;
    if (f == NULL)
        return NULL;
    f->used = now;
    list_remove(&f->by_use);
    list_append(&by_use, &f->by_use);
    f->users++;
    return f;
}

void file_forget(const char *path)
{
    struct file **place = cache_place(path);

    if (*place != NULL)
        cache_remove(place);
}

int file_cache_sweep(long long now)
{
    struct file *f;

    while ((f = cache_oldest()) != NULL && now - f->used >= UNUSED_MS)
        cache_remove(cache_place(f->path));
    return f != NULL ? (int)(f->used + UNUSED_MS - now) : -1;
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           same_time(a->st_mtim, b->st_mtim) && same_time(a->st_ctim, b->st_ctim);
}

/* After the clock was set back files have times in the future: they are young until it catches up.
 */
static bool was_young(const struct found *found)
{
    return found->st.st_ctim.tv_sec > found->seen - YOUNG_S;
}

bool file_confirm(struct file *f, const struct stat *st, long long now)
{
    if (!is_same_file(&f->st, st))
        return false;
    f->checked = now;
    return true;
}

static struct file *file_new(const char *path, const struct found *found)
{
    size_t size = strlen(path) + 1;
    struct file *f = malloc(sizeof *f + size);
    bool keeps_fd = f != NULL && found->body == NULL;

    if (!keeps_fd)
        close(found->fd);
    if (f == NULL) {
        free(found->body);
        return NULL;
    }
    f->users = 1;
    f->fd = keeps_fd ? found->fd : -1;
    f->st = found->st;
    f->checked = f->used = f->resident_at = f->resident_to = 0;
    f->head_second = 0;
    f->body = found->body;
    memcpy(f->path, path, size);
    return f;
}

struct file *file_enter(const char *path, const struct found *found, long long now)
{
    struct file **place = cache_place(path), *f = *place;
    bool is_late =
        f != NULL && f->checked > found->asked; /* a look-up that began later was first */

    if (f != NULL && is_same_file(&f->st, &found->st)) {
        f->checked = is_late ? f->checked : found->asked;
        close(found->fd);
        free(found->body);
        f->users++;
        return f;
    }
    if (f != NULL && !is_late)
        cache_remove(place);
    f = file_new(path, found);
    if (f == NULL || is_late || was_young(found) || !S_ISREG(found->st.st_mode))
        return f;
    if (entries >= file_cache_most)
        cache_remove(cache_place(cache_oldest()->path));
    place = cache_bucket(path);
    f->next = *place;
    *place = f;
    list_append(&by_use, &f->by_use);
    entries++;
    f->users++;
    f->checked = found->asked;
    f->used = now;
    return f;
}

/* Makes the head of a 200 in HTTP/1.1, without the empty line. It is good for the second of its
 * Date. */
static bool file_make_head(struct file *f, struct reply *r, const struct request *req,
                           time_t second)
{
    struct request plain = {.method = HTTP_GET, .minor = 1, .keep_alive = true};

    plain.target = req->target;
    reply_found(r, &plain, f->fd, &f->st, f->path);
    if (r->status != 200 || r->head_len - 2 > sizeof f->head)
        return false;
    f->head_len = (unsigned short)(r->head_len - 2);
    memcpy(f->head, r->head, f->head_len);
    f->head_second = second;
    return true;
}

void file_reply(struct file *f, struct reply *r, const struct request *req)
{
    time_t second = time(NULL);

    if (req->method > HTTP_HEAD || req->conditional || req->range.at != NULL ||
        (f->head_second != second && !file_make_head(f, r, req, second))) {
        reply_found(r, req, f->fd, &f->st, f->path);
        return;
    }
    r->status = 200;
    r->keep_alive = req->keep_alive;
    memcpy(r->head, f->head, f->head_len);
    r->head_len = f->head_len;
    r->fd = f->fd;
    r->offset = 0;
    r->end = req->method == HTTP_GET ? f->st.st_size : 0;
    reply_connection(r, req);
}
