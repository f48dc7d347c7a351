#include "children.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "die.h"
#include "micro.h"

static char too_late[128]; /* the message of on_alarm, made where printf is still allowed */

static void on_alarm(int signal_number)
{
    (void)signal_number;
    /* If this write fails the status has to say it alone. */
    if (write(STDERR_FILENO, too_late, strlen(too_late)) == -1)
        _exit(EXIT_FAILURE);
    _exit(EXIT_FAILURE);
}

static void handle(int signal_number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    if (sigaction(signal_number, &action, NULL) == -1)
        die_errno("sigaction");
}

void children_signals(void)
{
    sigset_t ending;
    handle(SIGCHLD, SIG_DFL);
    handle(SIGTERM, SIG_DFL);
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGALRM);
    if (sigprocmask(SIG_UNBLOCK, &ending, NULL) == -1)
        die_errno("sigprocmask");
}

void children_open(struct children *children, unsigned patience)
{
    children_signals();
    handle(SIGALRM, on_alarm);
    if (pipe(children->report) == -1 || pipe(children->life) == -1)
        die_errno("pipe");
    snprintf(too_late, sizeof too_late, "%s: not finished after %u s\n", program_name, patience);
    alarm(patience); /* children do not inherit it */
}

bool child_sleep(const struct children *children)
{
    char byte = 0;
    ssize_t n;
    do {
        n = write(children->report[1], &byte, 1);
    } while (n == -1 && errno == EINTR);
    if (n != 1)
        return false;
    /* Our copy of the write end would keep us, and all children made after us, alive for ever. */
    if (close(children->life[1]) == -1)
        return false;
    do {
        n = read(children->life[0], &byte, 1);
    } while (n == -1 && errno == EINTR);
    return n == 0;
}

_Noreturn void child_live(const struct children *children)
{
    _exit(child_sleep(children) ? EXIT_SUCCESS : EXIT_FAILURE);
}

void children_await_one(const struct children *children)
{
    char byte;
    ssize_t n;
    do {
        n = read(children->report[0], &byte, 1);
    } while (n == -1 && errno == EINTR);
    if (n != 1)
        die_errno("read from a child"); /* 0 is not possible: we hold a write end ourselves */
}

void children_end(struct children *children, size_t count)
{
    int failed = 0;
    if (close(children->life[1]) == -1)
        die_errno("close");
    while (count > 0) {
        int status;
        if (waitpid(-1, &status, 0) != -1) {
            count--;
            failed |= status != 0;
        } else if (errno != EINTR) {
            die_errno("waitpid");
        }
    }
    alarm(0);
    if (failed)
        die(EXIT_FAILURE, "a child failed");
}

#define SPINS 1000000 /* between two looks for the parent: about a millisecond */

static _Noreturn void spin(pid_t parent, int nicer)
{
    errno = 0;
    if (nice(nicer) == -1 && errno != 0)
        _exit(EXIT_FAILURE);
    /* A new parent means that ours is dead. A pipe, as above, would have to be read. */
    while (getppid() == parent)
        for (volatile int i = 0; i < SPINS; i++)
            ;
    _exit(EXIT_FAILURE);
}

bool spinners_start(struct spinners *spinners, size_t count, int nicer)
{
    pid_t parent = getpid();
    spinners->pid = samples_new(count + 1, sizeof *spinners->pid);
    for (spinners->count = 0; spinners->count < count; spinners->count++) {
        pid_t pid = fork();
        if (pid == 0)
            spin(parent, nicer);
        if (pid == -1)
            return false;
        spinners->pid[spinners->count] = pid;
    }
    return true;
}

void spinners_end(struct spinners *spinners)
{
    for (size_t i = 0; i < spinners->count; i++)
        if (kill(spinners->pid[i], SIGKILL) == -1)
            die_errno("kill");
    for (size_t i = 0; i < spinners->count; i++) {
        int status;
        while (waitpid(spinners->pid[i], &status, 0) == -1)
            if (errno != EINTR)
                die_errno("waitpid");
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
            die(EXIT_FAILURE, "a spinner ended by itself");
    }
    free(spinners->pid);
}

void fork_once(struct fork_sample *sample)
{
    int status;
    pid_t ended;
    uint64_t start = now_ns();
    pid_t pid = fork();
    if (pid == 0)
        _exit(EXIT_SUCCESS);
    sample->fork_ns = now_ns() - start;
    if (pid == -1) {
        sample->error = errno;
        return;
    }
    do {
        ended = waitpid(pid, &status, 0);
    } while (ended == -1 && errno == EINTR);
    sample->total_ns = now_ns() - start;
    if (ended == -1)
        die_errno("waitpid");
    if (status != 0)
        die(EXIT_FAILURE, "a child failed");
}

void fork_print(const struct fork_sample *samples, size_t count, const char *x_name)
{
    printf("%s\tfork_ns\ttotal_ns\terror\n", x_name);
    for (size_t i = 0; i < count; i++)
        printf("%lu\t%llu\t%llu\t%s\n", (unsigned long)samples[i].x,
               (unsigned long long)samples[i].fork_ns, (unsigned long long)samples[i].total_ns,
               error_name(samples[i].error));
    samples_finish();
}
