/*
 * options.h: the command line all servers share.
 *
 *     NN-slug [-a ADDR] [-p PORT] [-b BACKLOG] [-w N] [-t SECONDS] [-u USER] [-v] [DOCROOT]
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>

struct options {
    const char *addr; /* -a: address to listen on, a number: 127.0.0.1 or ::1 */
    int port;         /* -p: 0 asks the system for a free one */
    int backlog;      /* -b: length of the queue of connections not yet accepted */
    int workers;      /* -w: processes, threads or children; 0 means the server's own default */
    int timeout;      /* -t: seconds for a step: a request, or 64 KiB of a reply */
    bool verbose;     /* -v: a line on stderr for every request */
    const char *docroot;
    int docroot_fd; /* DOCROOT, opened: every file is opened below it */
};

/*
 * Calls known_state(), fills *o from the command line (-u: privileges_user()), opens DOCROOT and
 * calls log_open(). -h, or --help alone, prints usage with `summary` (one sentence) on stdout and
 * exits 0; a wrong command line exits with EXIT_USAGE, a DOCROOT that cannot be opened with
 * EXIT_FAILURE, each with one line on stderr.
 */
void options_parse(struct options *o, int argc, char **argv, const char *summary);

/* An option that one server has beside those: a flag, -e, or one with a value, -s METHOD. */
struct own_option {
    char letter;
    const char *metavar; /* what usage calls the value; NULL for a flag */
    const char *help;    /* the rest of its line in usage */
    const char *value;   /* out: what was given, "" for a flag, NULL if it was not */
};

/* The same, with `count` options of the server's own. */
void options_parse_own(struct options *o, int argc, char **argv, const char *summary,
                       struct own_option *own, int count);

/* The value of an option as a decimal number within [low, high]; anything else is a wrong command
 * line, and ends the program. */
int options_number(char letter, const char *text, long low, long high);

#endif
