#include "micro.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "die.h"

#define MAX_OPTIONS 8
#define LEAST_PAGE  4096 /* the smallest page of any processor here */

uint64_t now_ns(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) == -1)
        die_errno("clock_gettime");
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

int64_t waited_ns(void)
{
    char text[96];
    int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (fd == -1)
        return -1;
    ssize_t length = read(fd, text, sizeof text - 1);
    if (close(fd) == -1 || length <= 0)
        return -1;
    text[length] = '\0';
    char *ran_ends, *waited_ends;
    unsigned long long ran = strtoull(text, &ran_ends, 10);
    unsigned long long waited = strtoull(ran_ends, &waited_ends, 10);
    /* Zeros alone are what a kernel says that does not count. */
    if (waited_ends == ran_ends || (ran == 0 && waited == 0))
        return -1;
    return (int64_t)waited;
}

static void usage(FILE *out, const struct command_line *line)
{
    fprintf(out, "usage: %s", program_name);
    for (size_t i = 0; i < line->count; i++)
        fprintf(out, " [-%c %s]", line->options[i].letter, line->options[i].what);
    fprintf(out, "%s%s", *line->arguments != '\0' ? " " : "", line->arguments);
    for (size_t i = 0; i < line->count; i++) {
        const struct number_option *option = &line->options[i];
        fprintf(out, "%s%s %lu to %lu, default %lu", i == 0 ? "   (" : "; ", option->what,
                (unsigned long)option->least, (unsigned long)option->most,
                (unsigned long)option->fallback);
    }
    fputs(line->count > 0 ? ")\n" : "\n", out);
}

void refuse(const struct command_line *line)
{
    usage(stderr, line);
    exit(EXIT_USAGE);
}

/* Whether text is such a number: strtoul takes signs and blanks, we do not. */
static bool parse_number(const char *text, struct number_option *option)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || *end != '\0' || value < option->least || value > option->most)
        return false;
    option->value = value;
    return true;
}

static struct number_option *find(const struct command_line *line, int letter)
{
    for (size_t i = 0; i < line->count; i++)
        if (line->options[i].letter == letter)
            return &line->options[i];
    return NULL;
}

char **read_command_line(int argc, char *argv[], const struct command_line *line)
{
    char letters[2 * MAX_OPTIONS + 3] = "+h"; /* "+": glibc too ends at the first argument */
    int letter;
    set_program_name(argv[0]);
    if (line->count > MAX_OPTIONS)
        die(EXIT_FAILURE, "more than %d options", MAX_OPTIONS);
    for (size_t i = 0; i < line->count; i++) {
        line->options[i].value = line->options[i].fallback;
        letters[2 + 2 * i] = line->options[i].letter;
        letters[3 + 2 * i] = ':';
    }
    opterr = 0; /* our usage line says it all */
    while ((letter = getopt(argc, argv, letters)) != -1) {
        struct number_option *option = find(line, letter);
        if (letter == 'h') {
            usage(stdout, line);
            exit(EXIT_SUCCESS);
        }
        if (option == NULL || !parse_number(optarg, option))
            refuse(line);
    }
    if (argc - optind < line->least || argc - optind > line->most)
        refuse(line);
    return &argv[optind];
}

size_t count_option(int argc, char *argv[], const char *what, size_t fallback, size_t max)
{
    struct number_option count = {'n', what, 1, max, fallback, 0};
    read_command_line(argc, argv,
                      &(struct command_line){.options = &count, .count = 1, .arguments = ""});
    return count.value;
}

void *samples_new(size_t count, size_t element_size)
{
    size_t bytes = count * element_size; /* calloc() has looked whether that is too much */
    volatile char *samples = calloc(count, element_size);
    if (samples == NULL)
        die_errno("calloc");
    /* calloc may hand out pages that exist only once they are written to. Not by memset() of 0:
     * compilers know that calloc has done that, and leave it out. */
    for (size_t i = 0; i < bytes; i += LEAST_PAGE)
        samples[i] = 0;
    if (bytes > 0)
        samples[bytes - 1] = 0;
    return (void *)samples;
}

const char *error_name(int error)
{
    static char text[32];
    switch (error) {
    case 0:
        return "-";
    case EAGAIN:
        return "EAGAIN";
    case ENOMEM:
        return "ENOMEM";
    case EPERM:
        return "EPERM";
    case ENOSYS:
        return "ENOSYS";
    case EMFILE:
        return "EMFILE";
    case ENFILE:
        return "ENFILE";
    case EADDRINUSE:
        return "EADDRINUSE";
    case EADDRNOTAVAIL:
        return "EADDRNOTAVAIL";
    }
    snprintf(text, sizeof text, "errno-%d", error);
    return text;
}

void samples_finish(void)
{
    if (fflush(stdout) == EOF || ferror(stdout))
        die_errno("write to stdout");
}
