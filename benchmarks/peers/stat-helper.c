/*
 * stat-helper: looks files up for a web server whose only thread must not wait for the disk.
 *
 * Shows: the remedy of 2006. The server passes each request on by FastCGI; one of our threads opens
 * the file, looks at it and closes it, and may wait as long as it takes. The answer is a single
 * header, X-Sendfile with the file's name: then the server opens it too, and finds the names and
 * the inode in memory. How the server talks to us, over TCP or a Unix socket, is its own affair: it
 * listens, and gives us the socket as descriptor 0.
 * Limits: the name is what the server opens, so who may put a symbolic link in place between our
 * look and its own can lead it out of DOCROOT. A peer that connects and says nothing holds a
 * thread.
 * Run:   a server starts it: stat-helper -w 20 DOCROOT
 */
#include <errno.h>
#include <fcgiapp.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../micro/micro.h"
#include "die.h"
#include "open_below.h"

#define MAX_THREADS 1024
#define LISTEN_FD   0 /* so says FastCGI */
#define PAUSE_NS    10000000

static struct {
    char root[PATH_MAX]; /* without links, so that the server can compare */
    int root_fd;
} docroot;

/* "/a/b" -> "a/b" in `path`; false if it does not fit or holds "..", which we and the server would
 * not take alike where a link comes before it. */
static bool path_of(const FCGX_Request *request, char path[PATH_MAX])
{
    const char *script = FCGX_GetParam("SCRIPT_NAME", request->envp);
    const char *info = FCGX_GetParam("PATH_INFO", request->envp);
    const char *parts[] = {script ? script : "", info ? info : ""};
    size_t size = 0;

    for (size_t i = 0; i < 2; i++) {
        size_t length = strlen(parts[i]);
        if (length >= PATH_MAX - size)
            return false;
        memcpy(path + size, parts[i], length);
        size += length;
    }
    path[size] = '\0';
    size_t slashes = strspn(path, "/");
    memmove(path, path + slashes, size - slashes + 1);
    for (const char *component = path; *component != '\0';) {
        size_t length = strcspn(component, "/");
        if (length == 2 && memcmp(component, "..", 2) == 0)
            return false;
        component += length + strspn(component + length, "/");
    }
    return true;
}

/* Waits for the disk, so that the server need not. 0, or why the file cannot be had. */
static int look_up(const char *path)
{
    struct stat found;
    int fd = open_below(docroot.root_fd, path);
    if (fd < 0)
        return errno;
    int error = fstat(fd, &found) < 0 ? errno : S_ISREG(found.st_mode) ? 0 : ENOENT;
    if (close(fd) < 0)
        warn_errno("close");
    return error;
}

static const char *status_of(int error)
{
    switch (error) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return "Status: 503 Service Unavailable\r\n\r\n";
    case EACCES:
    case EPERM:
    case EXDEV: /* out of the docroot */
    case ELOOP:
    case ENXIO:
        return "Status: 403 Forbidden\r\n\r\n";
    default:
        return "Status: 404 Not Found\r\n\r\n";
    }
}

/* As in a URL, which is what the server expects: so no name can end the header and begin another.
 * `encoded` has room for three times as many. */
static void encode(const char *path, char *encoded)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    static const char hex[] = "0123456789ABCDEF";

    for (; *path != '\0'; path++) {
        unsigned char c = (unsigned char)*path;
        if (strchr(plain, c)) {
            *encoded++ = (char)c;
        } else {
            *encoded++ = '%';
            *encoded++ = hex[c >> 4];
            *encoded++ = hex[c & 15];
        }
    }
    *encoded = '\0';
}

/* What cannot be written is a connection that is gone; the next accept closes it. */
static void answer(const FCGX_Request *request)
{
    char path[PATH_MAX], encoded[3 * PATH_MAX];
    int error = path_of(request, path) ? look_up(path) : EPERM;

    if (error != 0) {
        FCGX_PutS(status_of(error), request->out);
        return;
    }
    FCGX_PutS("X-Sendfile: ", request->out);
    encode(docroot.root, encoded);
    FCGX_PutS(encoded, request->out);
    FCGX_PutS("/", request->out);
    encode(path, encoded);
    FCGX_PutS(encoded, request->out);
    FCGX_PutS("\r\n\r\n", request->out);
}

static bool will_pass(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM ||
           error == ECONNABORTED;
}

static void *serve(void *unused)
{
    FCGX_Request request;

    if (FCGX_InitRequest(&request, LISTEN_FD, 0) != 0)
        die(EXIT_FAILURE, "FCGX_InitRequest failed");
    for (;;) {
        int failure = FCGX_Accept_r(&request); /* 0, or -errno of accept */
        if (failure == 0) {
            answer(&request);
        } else if (will_pass(-failure)) {
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
        } else {
            errno = -failure;
            die_errno("accept");
        }
    }
    return unused;
}

int main(int argc, char *argv[])
{
    struct number_option threads = {'w', "THREADS", 1, MAX_THREADS, 20, 0};
    char **folder =
        read_command_line(argc, argv, &(struct command_line){&threads, 1, "DOCROOT", 1, 1});

    if (realpath(*folder, docroot.root) == NULL)
        die_errno("%s", *folder);
    docroot.root_fd = open(docroot.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (docroot.root_fd < 0)
        die_errno("%s", docroot.root);
    if (FCGX_Init() != 0)
        die(EXIT_FAILURE, "FCGX_Init failed");
    /* The library has taken SIGTERM for itself, but it wakes one thread of all that accept. */
    if (signal(SIGTERM, SIG_DFL) == SIG_ERR)
        die_errno("signal");
    if (FCGX_IsCGI())
        die(EXIT_USAGE, "descriptor %d is no listening socket: a FastCGI server starts this",
            LISTEN_FD);
    for (size_t i = 1; i < threads.value; i++) {
        pthread_t thread;
        errno = pthread_create(&thread, NULL, serve, NULL);
        if (errno != 0)
            die_errno("pthread_create");
    }
    serve(NULL);
    return EXIT_SUCCESS;
}
