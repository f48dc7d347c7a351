/* My web server. It grows by `make my`; so far it only reads its options. */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int port = 8080;   /* -p: where to listen, on 127.0.0.1 */
static int timeout = 23;  /* -t: seconds, from the stage patience on */
static int workers = 128; /* -w: from the stage bounded on; crew sets a default of its own */
static int most_clients = 1000000; /* -c: from the stage refuse on; without it there is no limit */
static const char *docroot;        /* the folder whose files are served, from the stage files on */

static int number(const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);
    if (end == text || *end != '\0' || n < 1 || n > 1000000) {
        fprintf(stderr, "server: %s is no number from 1 to 1000000\n", text);
        exit(2);
    }
    return (int)n;
}

static void read_options(int argc, char **argv)
{
    int option;
    while ((option = getopt(argc, argv, "p:t:w:c:")) != -1) {
        switch (option) {
        case 'p':
            port = number(optarg);
            break;
        case 't':
            timeout = number(optarg);
            break;
        case 'w':
            workers = number(optarg);
            break;
        case 'c':
            most_clients = number(optarg);
            break;
        default:
            exit(2); /* getopt has said what is wrong */
        }
    }
    if (optind != argc - 1) {
        fprintf(stderr, "usage: run [-p PORT] [-t SECONDS] [-w N] [-c CLIENTS] DOCROOT\n");
        exit(2);
    }
    docroot = argv[optind];
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    (void)timeout, (void)workers, (void)most_clients, (void)docroot; /* goes when they are used */
    fprintf(stderr, "server: port %d: nothing listens yet\n", port);
    return 1;
}
