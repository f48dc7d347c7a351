/*
 * hammer: an HTTP load generator that measures every request it sends.
 *
 * Shows: closed and open loop, and what the open one sees that the closed one hides; connect,
 * first-byte and total time in nanoseconds; slow, half-dead and idle clients beside the measured
 * ones. One process, one thread, one epoll set; only a herd, and a crowd without a load, are held
 * by processes of their own.
 * Needs: Linux (5.11 or newer for open-loop timing below a millisecond).
 * Run:   hammer -c 16 -s 5 -k http://127.0.0.1:8080/
 *        hammer -r 1000 -s 5 http://127.0.0.1:8080/       (open loop)
 *        hammer -c 4 -n 1000 --slow 10 http://127.0.0.1:8080/
 * Only loopback addresses are loaded unless --allow-host names another.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "known_state.h"
#include "options.h"
#include "report.h"
#include "run.h"
#include "tally.h"
#include "url.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_SIGNAL = 128 };

/* Standard streams, epoll, signals, samples and a few to spare. */
enum { OTHER_DESCRIPTORS = 16, MESSAGE_SIZE = 512 };

static int complain(int status, const char *what, int error)
{
    fprintf(stderr, "hammer: %s%s%s\n", what, error ? ": " : "", error ? strerror(error) : "");
    return status;
}

static int read_urls(struct url_list *urls, const struct options *o, char *message)
{
    struct request_style style = {.head = o->head, .keep_alive = o->keep_alive};

    if (o->url_file && url_list_read(urls, o->url_file, style, message, MESSAGE_SIZE) < 0)
        return -1;
    for (char **text = o->urls; *text; text++) {
        const char *problem = url_list_add(urls, *text, strlen(*text), style);
        if (problem) {
            snprintf(message, MESSAGE_SIZE, "%.400s: %s", *text, problem);
            return -1;
        }
    }
    if (urls->count > 0)
        return 0;
    snprintf(message, MESSAGE_SIZE, "%.400s: holds no URL", o->url_file);
    return -1;
}

static bool is_allowed(const struct endpoint *endpoint, const struct options *o)
{
    for (size_t i = 0; i < o->allowed_count; i++)
        if (endpoint_same_host(endpoint, &o->allowed[i]))
            return true;
    return endpoint_is_loopback(endpoint);
}

/* Refuses targets outside this machine, and sources that cannot reach a target. */
static int check_targets(const struct url_list *urls, const struct options *o, char *message)
{
    for (size_t i = 0; i < urls->endpoint_count; i++) {
        const struct endpoint *target = &urls->endpoints[i];
        char text[INET6_ADDRSTRLEN] = "?";
        int family = target->address.ss_family;
        const void *address = family == AF_INET
                                  ? (const void *)&((const struct sockaddr_in *)target)->sin_addr
                                  : (const void *)&((const struct sockaddr_in6 *)target)->sin6_addr;
        inet_ntop(family, address, text, sizeof text);
        if (!is_allowed(target, o)) {
            snprintf(message, MESSAGE_SIZE, "%s is not loopback: --allow-host %s would allow it",
                     text, text);
            return -1;
        }
        if (o->sources.count > 0 && family != AF_INET) {
            snprintf(message, MESSAGE_SIZE, "--source is for IPv4 targets, and %s is none", text);
            return -1;
        }
    }
    return 0;
}

static int raise_descriptors(const struct options *o, char *message)
{
    struct rlimit limit;
    uint64_t crowd = options_hold_only(o) ? 0 : options_crowd_size(o); /* else: herd.h */
    rlim_t needed = o->connections + crowd + herd_processes(o) + OTHER_DESCRIPTORS;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
        snprintf(message, MESSAGE_SIZE, "getrlimit: %s", strerror(errno));
        return -1;
    }
    if (limit.rlim_cur >= needed)
        return 0;
    limit.rlim_cur = limit.rlim_max;
    if (limit.rlim_max >= needed && setrlimit(RLIMIT_NOFILE, &limit) == 0)
        return 0;
    snprintf(message, MESSAGE_SIZE, "needs %ju descriptors, but the hard limit is %ju",
             (uintmax_t)needed, (uintmax_t)limit.rlim_max);
    return -1;
}

/* A herd without a load must be whole at its end; a crowd is as it is. */
static int judge_herd(const struct crowd_report *r)
{
    char message[MESSAGE_SIZE];

    if (r->held == r->wanted)
        return EXIT_OK;
    snprintf(message, MESSAGE_SIZE, "herd: %" PRIu64 " of %" PRIu64 " connections at the end",
             r->held, r->wanted);
    return complain(EXIT_FAILED, message, 0);
}

/*
 * The run is over: prints it, and says as exit status what it was worth. If an earlier write failed
 * (the disk was full for a moment, or the pipe is non-blocking) and the last one did not, fflush()
 * reports nothing; ferror() does.
 */
static int conclude(const struct engine *e)
{
    errno = 0;
    if (e->options->json)
        report_json(e, stdout);
    else
        report_text(e, stdout);
    if (fflush(stdout) == EOF || ferror(stdout))
        return complain(EXIT_FAILED, "stdout", errno);
    if (*e->herd.problem)
        return complain(EXIT_FAILED, e->herd.problem, 0);
    if (options_hold_only(e->options))
        return judge_herd(&e->herd.report);
    if (e->outcome.signal)
        return EXIT_SIGNAL + e->outcome.signal;
    return e->measured->errors[FETCH_GOOD] > 0 ? EXIT_OK : EXIT_FAILED;
}

static int run(const struct options *o, struct url_list *urls, const struct url_list *herd_urls)
{
    static struct samples samples;
    struct engine engine;
    const char *call = "";
    int status;

    if (samples_open(&samples, o->samples_path) < 0)
        return complain(EXIT_FAILED, o->samples_path, errno);
    if (engine_init(&engine, o, urls, herd_urls, &samples, &call) < 0 ||
        engine_run(&engine, &call) < 0)
        status = complain(EXIT_FAILED, call, errno);
    else
        status = conclude(&engine);
    if (samples_close(&samples) < 0) /* whatever else has failed: they are what was measured */
        status = complain(EXIT_FAILED, o->samples_path, errno);
    engine_free(&engine);
    return status;
}

static int prepare_and_run(const struct options *o)
{
    struct url_list herd_urls = {0};
    /* Both are read at once: a pipe can be read only once. */
    struct url_list urls = {.kept = o->herd ? &herd_urls : NULL};
    char message[MESSAGE_SIZE];
    int status;

    if (read_urls(&urls, o, message) < 0 || check_targets(&urls, o, message) < 0)
        status = complain(EXIT_USAGE, message, 0);
    else if (raise_descriptors(o, message) < 0)
        status = complain(EXIT_FAILED, message, 0);
    else
        status = run(o, &urls, &herd_urls);
    url_list_free(&herd_urls);
    url_list_free(&urls);
    return status;
}

int main(int argc, char **argv)
{
    struct options options;
    char message[MESSAGE_SIZE];
    int status = EXIT_USAGE;

    known_state(argv[0], NULL);
    switch (options_parse(&options, argc, argv, message, sizeof message)) {
    case OPTIONS_HELP:
        options_usage(stdout);
        status = fflush(stdout) == EOF ? EXIT_FAILED : EXIT_OK;
        break;
    case OPTIONS_BAD:
        if (*message)
            complain(EXIT_USAGE, message, 0);
        break;
    case OPTIONS_RUN:
        status = prepare_and_run(&options);
        break;
    }
    options_free(&options);
    return status;
}
