/*
 * file_cache_test: which files 15-slashdot keeps, for how long it believes them, and what it closes.
 * The time is what we say it is.
 *
 * Run: build/asan/file_cache_test
 */
#include "15-slashdot/file_cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http_parse.h"
#include "tap.h"

#define OLD 1000000 /* seconds, when all files were written */

static int lowest_free(void)
{
    int fd = dup(0);

    close(fd);
    return fd;
}

/* A file as it is found: an open descriptor, and what we like to say of it. */
static struct found found(off_t size, time_t seen)
{
    struct found f = {.fd = open("/dev/null", O_RDONLY), .seen = seen};

    f.st.st_mode = S_IFREG;
    f.st.st_size = size;
    f.st.st_mtime = f.st.st_ctime = OLD;
    return f;
}

/* Enters it, and gives the caller's use back. Returns whether it is kept. */
static bool keeps(const char *path, struct found f, long long now)
{
    bool fresh;

    f.asked = now;
    struct file *file = file_enter(path, &f, now);
    if (file == NULL)
        abort();
    file_release(file);
    file = file_find(path, now, &fresh);
    if (file != NULL)
        file_release(file);
    return file != NULL && fresh;
}

static bool is_fresh(const char *path, long long now)
{
    bool fresh;
    struct file *file = file_find(path, now, &fresh);

    if (file != NULL)
        file_release(file);
    return fresh;
}

static bool keeps_size(const char *path, off_t size)
{
    bool fresh;
    struct file *file = file_find(path, 0, &fresh);
    bool is_so = file != NULL && file->st.st_size == size;

    if (file != NULL)
        file_release(file);
    return is_so;
}

static void check_age(int nothing)
{
    struct found folder = found(5, OLD + 100);

    tap_ok(!keeps("young", found(5, OLD + YOUNG_S - 1), 0), "a file that was just written");
    tap_ok(!keeps("future", found(5, OLD - 5), 0), "one that is to be written yet");
    folder.st.st_mode = S_IFDIR;
    tap_ok(!keeps("folder", folder, 0), "a folder");
    tap_ok(lowest_free() == nothing, "what is not kept is closed");
    tap_ok(keeps("old", found(5, OLD + YOUNG_S), 50), "one that is old enough");
    tap_ok(lowest_free() > nothing, "stays open");
    tap_ok(is_fresh("old", 50 + FRESH_MS - 1) && !is_fresh("old", 50 + FRESH_MS),
           "believed for so long");
    file_forget("old");
    file_forget("old");
    tap_ok(!is_fresh("old", 50) && lowest_free() == nothing, "and forgotten");
}

/* The same again, or another in its place. */
static void check_changes(int nothing)
{
    struct found f = found(5, OLD + 100), again = found(5, OLD + 100);

    again.asked = 2000;
    struct file *first = file_enter("a", &f, 0), *second = file_enter("a", &again, 2000);
    tap_ok(first == second && is_fresh("a", 2999), "the same is confirmed");
    tap_ok(!file_confirm(first, &(struct stat){.st_size = 5}, 9000) && !is_fresh("a", 9000),
           "another is not");
    for (int i = 0; i < 7; i++) {
        struct found other = found(5, OLD + 100);
        *(i == 0   ? &other.st.st_size
          : i == 1 ? &other.st.st_mtim.tv_sec
          : i == 2 ? &other.st.st_mtim.tv_nsec
          : i == 3 ? &other.st.st_ctim.tv_sec
          : i == 4 ? &other.st.st_ctim.tv_nsec
          : i == 5 ? (long *)&other.st.st_ino
                   : (long *)&other.st.st_dev) += 1;
        tap_ok(!file_confirm(first, &other.st, 2000), "a change is seen: %d", i);
        close(other.fd);
    }
    struct found replacement = found(6, OLD + 100);
    replacement.asked = 3000;
    struct file *third = file_enter("a", &replacement, 3000);
    tap_ok(third != first && third->st.st_size == 6, "what was replaced is another");
    tap_ok(fcntl(first->fd, F_GETFD) >= 0, "who sends the old one has it still");
    file_release(first);
    file_release(second);
    file_release(third);
    file_forget("a");
    tap_ok(lowest_free() == nothing, "until all are through");
}

/* Another look was quicker, and began later. */
static void check_late(int nothing)
{
    struct found late = found(5, OLD + 100), same = found(6, OLD + 100);

    tap_ok(keeps("a", found(6, OLD + 100), 3000), "what is there now");
    struct file *file = file_enter("a", &late, 6000);
    tap_ok(file->st.st_size == 5 && keeps_size("a", 6), "a look of before takes nobody's place");
    file_release(file);
    file_release(file_enter("a", &same, 6000));
    tap_ok(is_fresh("a", 3000 + FRESH_MS - 1) && !is_fresh("a", 3000 + FRESH_MS),
           "nor does it confirm");
    file_forget("a");
    late = found(5, OLD + 100);
    file_release(file_enter("a", &late, 6000));
    tap_ok(!is_fresh("a", 6000), "alone it is believed from when it began");
    file_forget("a");
    tap_ok(lowest_free() == nothing, "all is closed");
}

static void check_sweep(int nothing)
{
    keeps("one", found(5, OLD + 100), 0);
    keeps("two", found(5, OLD + 100), 100);
    tap_ok(file_cache_sweep(0) == UNUSED_MS, "the first is due in %d ms", file_cache_sweep(0));
    is_fresh("one", 200);
    tap_ok(file_cache_sweep(200) == UNUSED_MS - 100, "it was used: the second is, in %d",
           file_cache_sweep(200));
    file_cache_sweep(UNUSED_MS + 99);
    tap_ok(is_fresh("two", 300), "not before its time");
    file_cache_sweep(200 + UNUSED_MS);
    tap_ok(!is_fresh("one", 300) && is_fresh("two", 400), "then one goes, and the other stays");
    tap_ok(file_cache_sweep(400 + UNUSED_MS) == -1 && lowest_free() == nothing,
           "until it goes, too");
}

static void check_room(int nothing)
{
    char name[8];

    file_cache_most = 100;
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "f%d", i);
        keeps(name, found(5, OLD + 100), 0);
    }
    is_fresh("f0", 1); /* now f1 is the oldest */
    keeps("more", found(5, OLD + 100), 2);
    tap_ok(is_fresh("f0", 2) && !is_fresh("f1", 2) && is_fresh("f2", 2) && is_fresh("more", 2),
           "the oldest");
    file_cache_sweep(10 * UNUSED_MS);
    tap_ok(lowest_free() == nothing, "and at last all");
}

static struct request parsed(const char *text)
{
    struct request req;

    if (http_parse(text, strlen(text), &req) <= 0)
        abort();
    return req;
}

/* A reply out of the cache is the one that a file would have had, whatever is asked. */
static void check_replies(int nothing)
{
    static const char *const requests[] = {
        "GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\n",
        "HEAD /a.txt HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /a.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        "GET /a.txt HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "GET /a.txt HTTP/1.0\r\n\r\n",
        "GET /a.txt HTTP/1.1\r\nHost: x\r\nRange: bytes=1-2\r\n\r\n",
        "GET /a.txt HTTP/1.1\r\nHost: x\r\nIf-Match: \"x\"\r\n\r\n",
        "POST /a.txt HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\n",
    };
    struct found f = found(5, OLD + 100);

    f.body = strdup("hello");
    struct file *file = file_enter("a.txt", &f, 0);
    tap_ok(file->fd == -1 && lowest_free() == nothing, "whose body is in memory need not be open");
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct request req = parsed(requests[i]);
        struct reply ours, other;
        int tries = 0;
        if (i == sizeof requests / sizeof *requests - 1) { /* as if a second had passed */
            file->head_second--;
            memset(file->head, 0, file->head_len);
        }
        do { /* within one second: the date */
            memset(&ours, 0xff, sizeof ours);
            file_reply(file, &ours, &req);
            reply_found(&other, &req, file->fd, &file->st, file->path);
        } while (memcmp(ours.head, other.head, 60) != 0 && ++tries < 3);
        tap_ok(ours.status == other.status && ours.keep_alive == other.keep_alive &&
                   ours.head_len == other.head_len &&
                   memcmp(ours.head, other.head, ours.head_len) == 0,
               "\"%s\": %d, %s", tap_quote(requests[i], 20), ours.status,
               tap_quote(ours.head, ours.head_len));
        tap_ok(ours.end - ours.offset == other.end - other.offset && ours.fd == other.fd,
               "of the body %lld bytes", (long long)(ours.end - ours.offset));
    }
    file_release(file);
    file_forget("a.txt");
}

int main(void)
{
    int nothing = lowest_free();

    check_age(nothing);
    check_changes(nothing);
    check_late(nothing);
    check_sweep(nothing);
    check_room(nothing);
    check_replies(nothing);
    return tap_done();
}
