#include "options.h"
#include "die.h"
#include "known_state.h"
#include "log.h"
#include "privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage_text[] =
    "  -a ADDR     address to listen on, default 127.0.0.1\n"
    "  -p PORT     port, default 8080; 0 takes any free one\n"
    "  -b BACKLOG  listen backlog, default 1024\n"
    "  -w N        processes or threads, where the server has them\n"
    "  -t SECONDS  end a connection that is silent for so long, default 23\n"
    "  -u USER     whose rights it keeps once it listens, if root starts it\n"
    "  -v          print a line on stderr for every request\n";

int options_number(char option, const char *text, long low, long high)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || n < low || n > high)
        die(EXIT_USAGE, "-%c %s: expected a number from %ld to %ld", option, text, low, high);
    return (int)n;
}

static struct own_option *own_options;
static int own_count;

static _Noreturn void print_usage(const char *summary)
{
    printf("%s: %s\nusage: %s [-a ADDR] [-p PORT] [-b BACKLOG] [-w N] [-t SECONDS] [-u USER] [-v]",
           program_name, summary, program_name);
    if (own_count > 0)
        printf("\n      ");
    for (int i = 0; i < own_count; i++)
        printf(" [-%c%s%s]", own_options[i].letter, own_options[i].metavar != NULL ? " " : "",
               own_options[i].metavar != NULL ? own_options[i].metavar : "");
    printf(" [DOCROOT]\n%s", usage_text);
    for (int i = 0; i < own_count; i++)
        printf("  -%c %-8s %s\n", own_options[i].letter,
               own_options[i].metavar != NULL ? own_options[i].metavar : "", own_options[i].help);
    puts("  DOCROOT     folder to serve, default .");
    exit(EXIT_SUCCESS);
}

/* Returns whether it is one of the server's own. */
static bool take_own(int option)
{
    for (int i = 0; i < own_count; i++) {
        if (own_options[i].letter != option)
            continue;
        own_options[i].value = own_options[i].metavar != NULL ? optarg : "";
        return true;
    }
    return false;
}

static void take_option(struct options *o, int option, const char *summary)
{
    switch (option) {
    case 'a':
        o->addr = optarg;
        break;
    case 'p':
        o->port = options_number('p', optarg, 0, 65535);
        break;
    case 'b':
        o->backlog = options_number('b', optarg, 1, INT_MAX);
        break;
    case 'w':
        o->workers = options_number('w', optarg, 1, 1000000);
        break;
    case 't':
        o->timeout = options_number('t', optarg, 1, 86400);
        break;
    case 'u':
        privileges_user(optarg);
        break;
    case 'v':
        o->verbose = true;
        break;
    case 'h':
        print_usage(summary);
    case ':':
        die(EXIT_USAGE, "-%c needs a value; -h lists the options", optopt);
    default:
        die(EXIT_USAGE, "unknown option -%c; -h lists the options", optopt);
    }
}

void options_parse_own(struct options *o, int argc, char **argv, const char *summary,
                       struct own_option *own, int count)
{
    char letters[64] = ":a:p:b:w:t:u:vh";
    size_t len = strlen(letters);
    int option;

    known_state(argv[0], NULL);
    own_options = own;
    own_count = count;
    for (int i = 0; i < count; i++) { /* a handful: there is room */
        letters[len++] = own[i].letter;
        if (own[i].metavar != NULL)
            letters[len++] = ':';
    }
    *o = (struct options){
        .addr = "127.0.0.1", .port = 8080, .backlog = 1024, .timeout = 23, .docroot = "."};
    opterr = 0;
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        print_usage(summary);
    while ((option = getopt(argc, argv, letters)) != -1)
        if (!take_own(option))
            take_option(o, option, summary);
    if (argc - optind > 1)
        die(EXIT_USAGE, "one DOCROOT expected, found a second: %s", argv[optind + 1]);
    if (optind < argc)
        o->docroot = argv[optind];
    o->docroot_fd = open(o->docroot, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (o->docroot_fd < 0)
        die_errno("open %s", o->docroot);
    log_open();
}

void options_parse(struct options *o, int argc, char **argv, const char *summary)
{
    options_parse_own(o, argc, argv, summary, NULL, 0);
}
