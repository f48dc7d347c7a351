/* Command line; see options.h. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "clock.h"

enum {
    DEFAULT_TIMEOUT_S = 10,
    DEFAULT_DRIP_MS = 100,
    DEFAULT_OPEN_LOOP_CONNECTIONS = 64,

    OPTION_SEED = 256,
    OPTION_SOURCE,
    OPTION_ALLOW_HOST,
    OPTION_SAMPLES,
    OPTION_CHECK,
    OPTION_CROWD,
    OPTION_SLOW,
    OPTION_SLOW_READ,
    OPTION_HALF_DEAD,
    OPTION_IDLE,
    OPTION_HERD,
    OPTION_DRIP,
    OPTION_RAMP,
    OPTION_HEAD,
    OPTION_QUICKACK,
    OPTION_JSON
};

static const char usage[] =
    "usage: hammer [OPTION]... {URL... | -i FILE}     (-n, -s or both, or a crowd)\n"
    "\n"
    "  -c, --connections N   parallel connections (default 1; with -r 64)\n"
    "  -n, --requests N      end after N fetches\n"
    "  -s, --seconds S       end after S seconds\n"
    "  -w, --warm-up S       run S seconds first and report them apart\n"
    "  -r, --rate R          open loop: R requests a second, whatever the server does\n"
    "  -t, --timeout S       give a request up after S seconds (default 10)\n"
    "  -k, --keep-alive      reuse connections (default: one for each request)\n"
    "  -i, --input FILE      a URL a line; each request picks one at random\n"
    "      --seed N          seed of that choice (default: a new one, which is reported)\n"
    "      --head            HEAD instead of GET\n"
    "      --quickack        acknowledge what comes at once, and not 40 ms later\n"
    "      --check           the same URL must always have the same length\n"
    "      --samples FILE    write every request as a line of tab-separated values\n"
    "      --source LIST     connect from these addresses in turn: 127.0.0.2,127.0.1.1-127.0.1.9\n"
    "      --allow-host ADDR allow a target that is not loopback (may be given again)\n"
    "      --slow N          N more clients that send and read one byte at a time\n"
    "      --slow-read N     N more clients that ask at once and read one byte at a time\n"
    "      --half-dead N     N more clients that send half a request and then nothing\n"
    "      --idle N          N more clients that connect and send nothing\n"
    "      --crowd N         N more clients: of the kinds above those with a share, as in\n"
    "                        --slow 9%, and idle ones\n"
    "      --herd N          N connections that are served once, kept alive, and then silent\n"
    "                        (without -n and -s crowd and herd are all: held until a signal)\n"
    "      --drip MS         pause of a slow client between bytes, and of any of the crowd\n"
    "                        before it comes again (default 100)\n"
    "      --ramp R          the crowd opens R connections a second (default: all at once)\n"
    "      --json            the result as one JSON object\n"
    "  -h, --help            this text\n"
    "\n"
    "URL: http://ADDRESS[:PORT]/PATH; ADDRESS is numeric or localhost.\n"
    "Exit status: 0, 1 nothing fetched or set-up failed, 2 bad usage, 130 interrupted.\n";

static const struct option long_options[] = {
    {"connections", required_argument, NULL, 'c'},
    {"requests", required_argument, NULL, 'n'},
    {"seconds", required_argument, NULL, 's'},
    {"warm-up", required_argument, NULL, 'w'},
    {"rate", required_argument, NULL, 'r'},
    {"timeout", required_argument, NULL, 't'},
    {"keep-alive", no_argument, NULL, 'k'},
    {"input", required_argument, NULL, 'i'},
    {"help", no_argument, NULL, 'h'},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"source", required_argument, NULL, OPTION_SOURCE},
    {"allow-host", required_argument, NULL, OPTION_ALLOW_HOST},
    {"samples", required_argument, NULL, OPTION_SAMPLES},
    {"check", no_argument, NULL, OPTION_CHECK},
    {"crowd", required_argument, NULL, OPTION_CROWD},
    {"slow", required_argument, NULL, OPTION_SLOW},
    {"slow-read", required_argument, NULL, OPTION_SLOW_READ},
    {"half-dead", required_argument, NULL, OPTION_HALF_DEAD},
    {"idle", required_argument, NULL, OPTION_IDLE},
    {"herd", required_argument, NULL, OPTION_HERD},
    {"drip", required_argument, NULL, OPTION_DRIP},
    {"ramp", required_argument, NULL, OPTION_RAMP},
    {"head", no_argument, NULL, OPTION_HEAD},
    {"quickack", no_argument, NULL, OPTION_QUICKACK},
    {"json", no_argument, NULL, OPTION_JSON},
    {NULL, 0, NULL, 0}};

/* Options with a number. The value is stored as scale * number: seconds become nanoseconds. */
struct number_option {
    int code;
    const char *name;
    size_t offset; /* of a uint64_t in struct options */
    double min;
    double max;
    double scale; /* 1: whole numbers only */
};

static const struct number_option number_options[] = {
    {'c', "-c", offsetof(struct options, connections), 1, 1e6, 1},
    {'n', "-n", offsetof(struct options, requests), 1, 1e12, 1},
    {'s', "-s", offsetof(struct options, seconds_ns), 1e-3, 1e6, 1e9},
    {'w', "-w", offsetof(struct options, warm_up_ns), 0, 1e6, 1e9},
    {'t', "-t", offsetof(struct options, timeout_ns), 1e-3, 1e6, 1e9},
    {OPTION_CROWD, "--crowd", offsetof(struct options, crowd), 0, 1e6, 1},
    {OPTION_SLOW, "--slow", offsetof(struct options, wanted[CROWD_SLOW]), 0, 1e6, 1},
    {OPTION_SLOW_READ, "--slow-read", offsetof(struct options, wanted[CROWD_SLOW_READ]), 0, 1e6, 1},
    {OPTION_HALF_DEAD, "--half-dead", offsetof(struct options, wanted[CROWD_HALF_DEAD]), 0, 1e6, 1},
    {OPTION_IDLE, "--idle", offsetof(struct options, wanted[CROWD_IDLE]), 0, 1e6, 1},
    {OPTION_HERD, "--herd", offsetof(struct options, herd), 0, 1e6, 1},
    {OPTION_DRIP, "--drip", offsetof(struct options, drip_ns), 1, 1e6, 1e6},
};

/* Shares of --crowd, which may come later: "9%". */
static const struct number_option share_options[] = {
    {OPTION_SLOW, "--slow", offsetof(struct options, percent[CROWD_SLOW]), 0, 100, 1},
    {OPTION_SLOW_READ, "--slow-read", offsetof(struct options, percent[CROWD_SLOW_READ]), 0, 100,
     1},
    {OPTION_HALF_DEAD, "--half-dead", offsetof(struct options, percent[CROWD_HALF_DEAD]), 0, 100,
     1},
};

static bool parse_number(const char *text, const char *unit, double min, double max, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && strcmp(end, unit) == 0 && *value >= min && *value <= max;
}

static bool parse_number_option(struct options *o, const struct number_option *n, const char *unit,
                                char *message, size_t message_size)
{
    double value;
    if (!parse_number(optarg, unit, n->min, n->max, &value) ||
        (n->scale == 1 && value != (double)(uint64_t)value)) {
        snprintf(message, message_size, "%s: '%.400s' is not a %snumber from %.10g to %.10g%s",
                 n->name, optarg, n->scale == 1 ? "whole " : "", n->min, n->max, unit);
        return false;
    }
    uint64_t *field = (uint64_t *)(void *)((char *)o + n->offset);
    *field = (uint64_t)(value * n->scale);
    return true;
}

static bool parse_seed(struct options *o, char *message, size_t message_size)
{
    char *end;
    errno = 0;
    o->seed = strtoull(optarg, &end, 10);
    if (errno == 0 && end != optarg && *end == '\0' && *optarg != '-')
        return true;
    snprintf(message, message_size, "--seed: '%.400s' is not a whole number below 2^64", optarg);
    return false;
}

static bool parse_rate(struct options *o, char *message, size_t message_size)
{
    if (parse_number(optarg, "", 1e-3, 1e7, &o->rate))
        return true;
    snprintf(message, message_size, "-r: '%.400s' is not a number from 0.001 to 10000000", optarg);
    return false;
}

static bool parse_source(struct options *o, char *message, size_t message_size)
{
    const char *problem = source_list_parse(&o->sources, optarg);
    if (problem)
        snprintf(message, message_size, "--source: '%.400s': %s", optarg, problem);
    return !problem;
}

static bool parse_ramp(struct options *o, char *message, size_t message_size)
{
    if (parse_number(optarg, "", 1, 1e7, &o->ramp))
        return true;
    snprintf(message, message_size, "--ramp: '%.400s' is not a number from 1 to 10000000", optarg);
    return false;
}

static bool parse_allow_host(struct options *o, char *message, size_t message_size)
{
    if (o->allowed_count == MAX_ALLOWED_HOSTS) {
        snprintf(message, message_size, "--allow-host: at most %d of them", MAX_ALLOWED_HOSTS);
        return false;
    }
    if (endpoint_parse(&o->allowed[o->allowed_count], optarg, 0)) {
        o->allowed_count++;
        return true;
    }
    snprintf(message, message_size, "--allow-host: '%.400s' is not a numeric address", optarg);
    return false;
}

/* Options that are not in number_options. */
static bool parse_other(struct options *o, int code, char *message, size_t message_size)
{
    switch (code) {
    case 'k':
        o->keep_alive = true;
        return true;
    case 'i':
        o->url_file = optarg;
        return true;
    case 'r':
        return parse_rate(o, message, message_size);
    case OPTION_RAMP:
        return parse_ramp(o, message, message_size);
    case OPTION_SEED:
        return parse_seed(o, message, message_size);
    case OPTION_SOURCE:
        return parse_source(o, message, message_size);
    case OPTION_ALLOW_HOST:
        return parse_allow_host(o, message, message_size);
    case OPTION_SAMPLES:
        o->samples_path = optarg;
        return true;
    case OPTION_CHECK:
        o->check = true;
        return true;
    case OPTION_HEAD:
        o->head = true;
        return true;
    case OPTION_QUICKACK:
        o->quickack = true;
        return true;
    case OPTION_JSON:
        o->json = true;
        return true;
    default: /* getopt_long has written what is wrong */
        return false;
    }
}

static bool parse_option(struct options *o, int code, char *message, size_t message_size)
{
    for (size_t i = 0; i < sizeof share_options / sizeof *share_options; i++)
        if (share_options[i].code == code && strchr(optarg, '%'))
            return parse_number_option(o, &share_options[i], "%", message, message_size);
    for (size_t i = 0; i < sizeof number_options / sizeof *number_options; i++)
        if (number_options[i].code == code)
            return parse_number_option(o, &number_options[i], "", message, message_size);
    return parse_other(o, code, message, message_size);
}

uint64_t options_crowd_size(const struct options *o)
{
    uint64_t n = 0;
    for (enum crowd_kind kind = 0; kind < CROWD_KINDS; kind++)
        n += o->wanted[kind];
    return n;
}

bool options_hold_only(const struct options *o)
{
    return (o->herd || options_crowd_size(o)) && !o->requests && !o->seconds_ns;
}

/* --crowd, by the shares of its kinds. NULL, or what is wrong with them. */
static const char *divide_crowd(struct options *o)
{
    uint64_t idle = o->crowd;
    uint64_t percent = 0;

    for (enum crowd_kind kind = 0; kind < CROWD_KINDS; kind++) {
        uint64_t share = o->crowd * o->percent[kind] / 100;
        percent += o->percent[kind];
        o->wanted[kind] += share;
        idle -= share;
        if (percent > 100)
            return "the shares are more than the whole of --crowd";
    }
    if (percent > 0 && o->crowd == 0)
        return "a share needs --crowd N";
    o->wanted[CROWD_IDLE] += idle;
    return NULL;
}

/* What no single option can know. */
static const char *check_together(const struct options *o)
{
    if (!o->requests && !o->seconds_ns && !options_hold_only(o))
        return "say when to end: -n N, -s SECONDS or both";
    if (!o->url_file && !*o->urls)
        return "no URL given";
    if (o->url_file && *o->urls)
        return "URLs as arguments and -i FILE exclude each other";
    return NULL;
}

/* 32 bits: enough to differ, and short enough to be typed again after --seed. */
static uint64_t new_seed(void)
{
    uint32_t seed;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        seed = (uint32_t)clock_now();
    return seed;
}

enum options_result options_parse(struct options *o, int argc, char **argv, char *message,
                                  size_t message_size)
{
    int code;

    *message = '\0';
    *o = (struct options){.timeout_ns = DEFAULT_TIMEOUT_S * NS_PER_S,
                          .drip_ns = DEFAULT_DRIP_MS * NS_PER_MS};
    o->seed = new_seed();
    while ((code = getopt_long(argc, argv, "c:n:s:w:r:t:ki:h", long_options, NULL)) != -1) {
        if (code == 'h')
            return OPTIONS_HELP;
        if (!parse_option(o, code, message, message_size))
            return OPTIONS_BAD;
    }
    o->urls = argv + optind;
    if (o->connections == 0)
        o->connections = o->rate > 0 ? DEFAULT_OPEN_LOOP_CONNECTIONS : 1;
    const char *problem = divide_crowd(o);
    if (!problem)
        problem = check_together(o);
    if (problem)
        snprintf(message, message_size, "%s (hammer -h explains)", problem);
    return problem ? OPTIONS_BAD : OPTIONS_RUN;
}

void options_usage(FILE *out)
{
    fputs(usage, out);
}

void options_free(struct options *options)
{
    source_list_free(&options->sources);
}
