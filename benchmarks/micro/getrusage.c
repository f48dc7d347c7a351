/*
 * getrusage: which of its fields does this kernel fill in?
 *
 * Shows: one line with what getrusage(RUSAGE_SELF) says of a process that has written to MIB of
 * memory, has slept, has caught ten signals and has sent itself ten messages. ixrss, idrss and
 * isrss are sums of KiB over clock ticks where they are kept, maxrss is in KiB, utime and stime are
 * in µs, the others are counts. maxrss outlives exec: it is that of the program which started this
 * one, if that one held more.
 * Needs: MIB of free memory.
 * Run:   getrusage -n 64
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "die.h"
#include "micro.h"
#include "resident.h"

#define DEFAULT_MIB 64
#define MAX_MIB     65536
#define SIGNALS     10
#define MESSAGES    10
#define SLEEP_NS    1000000

static void on_signal(int signal_number)
{
    (void)signal_number;
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGUSR1, &action, NULL) == -1)
        die_errno("sigaction");
    for (int i = 0; i < SIGNALS; i++)
        if (kill(getpid(), SIGUSR1) == -1)
            die_errno("kill");
}

static void send_messages(void)
{
    int pair[2];
    char byte = 0;
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == -1)
        die_errno("socketpair");
    for (int i = 0; i < MESSAGES; i++)
        if (send(pair[0], &byte, 1, 0) != 1 || recv(pair[1], &byte, 1, 0) != 1)
            die_errno("a message to ourselves");
    if (close(pair[0]) == -1 || close(pair[1]) == -1)
        die_errno("close");
}

static void sleep_a_little(void)
{
    struct timespec left = {.tv_nsec = SLEEP_NS};
    while (nanosleep(&left, &left) == -1)
        if (errno != EINTR)
            die_errno("nanosleep");
}

static long long microseconds(const struct timeval *time)
{
    return (long long)time->tv_sec * 1000000 + time->tv_usec;
}

static void print(const struct rusage *u)
{
    puts(
        "maxrss_kib\tixrss\tidrss\tisrss\tminflt\tmajflt\tnswap\tinblock\toublock\tmsgsnd\tmsgrcv\t"
        "nsignals\tnvcsw\tnivcsw\tutime_us\tstime_us");
    printf("%ld\t%ld\t%ld\t%ld\t%ld\t%ld\t%ld\t%ld\t%ld\t%ld\t%ld\t%ld\t%ld\t%ld\t%lld\t%lld\n",
           (long)u->ru_maxrss, (long)u->ru_ixrss, (long)u->ru_idrss, (long)u->ru_isrss,
           (long)u->ru_minflt, (long)u->ru_majflt, (long)u->ru_nswap, (long)u->ru_inblock,
           (long)u->ru_oublock, (long)u->ru_msgsnd, (long)u->ru_msgrcv, (long)u->ru_nsignals,
           (long)u->ru_nvcsw, (long)u->ru_nivcsw, microseconds(&u->ru_utime),
           microseconds(&u->ru_stime));
    samples_finish();
}

int main(int argc, char *argv[])
{
    size_t bytes = count_option(argc, argv, "MIB", DEFAULT_MIB, MAX_MIB) * MIB;
    struct rusage usage;
    char *memory = resident_reserve(bytes, SMALL_PAGES);
    resident_fill(memory, memory + bytes);
    catch_signals();
    send_messages();
    sleep_a_little();
    if (getrusage(RUSAGE_SELF, &usage) == -1)
        die_errno("getrusage");
    print(&usage);
    return EXIT_SUCCESS;
}
