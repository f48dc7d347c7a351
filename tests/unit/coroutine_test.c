/*
 * coroutine_test: what a coroutine is given and gives, what it keeps while others run, that its
 * stack is used again, and the end of one that needs more than it has.
 *
 * Run: build/asan/coroutine_test
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "16-coroutines/coroutine.h"
#include "tap.h"

#define MANY  200 /* more than are kept as spare ones */
#define LAPS  5
#define DEPTH 20

/* Gives the sum of its number and of all it was given. */
static int count_up(void *arg)
{
    int number = *(int *)arg, sum = number;
    double half = number / 2.0; /* in a register, where the processor keeps some across a call */

    for (int lap = 0; lap < LAPS; lap++)
        sum += coroutine_yield(sum);
    return half + half == number ? sum : -1;
}

static int mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    int count = 0, c;

    if (maps == NULL)
        return 0;
    while ((c = getc(maps)) != EOF)
        count += c == '\n';
    fclose(maps);
    return count;
}

static void check_turns(void)
{
    struct coroutine *all[MANY];
    int numbers[MANY], sums[MANY], wrong = 0, over = 0;

    for (int i = 0; i < MANY; i++) {
        numbers[i] = sums[i] = 1000 * i;
        if ((all[i] = coroutine_new(count_up, &numbers[i])) == NULL)
            abort();
    }
    for (int lap = 0; lap <= LAPS; lap++)
        for (int i = 0; i < MANY; i++) {
            sums[i] += lap; /* the first time 0, which is lost */
            wrong += coroutine_resume(all[i], lap) != sums[i];
            over += coroutine_is_over(all[i]);
        }
    tap_ok(wrong == 0, "%d of %d values were not those of their coroutine", wrong,
           MANY * (LAPS + 1));
    tap_ok(over == MANY, "%d of %d were over, each after its last value", over, MANY);
    int during = mappings();
    for (int i = 0; i < MANY; i++)
        coroutine_free(all[i]);
    tap_ok(during == 0 || during - mappings() > MANY, "%d mappings, then %d: few are kept", during,
           mappings());
}

/* Yields at the end of a chain of calls, each of which has something on the stack. */
static int dive(int depth)
{
    char room[200];

    memset(room, depth, sizeof room);
    int got = depth > 0 ? dive(depth - 1) : coroutine_yield(1);
    for (size_t i = 0; i < sizeof room; i++)
        if (room[i] != depth)
            return -1;
    return got;
}

static int dive_deep(void *arg)
{
    return dive(*(int *)arg);
}

static void check_depth(void)
{
    int depth = DEPTH;
    struct coroutine *one = coroutine_new(dive_deep, &depth);
    struct coroutine *two = coroutine_new(dive_deep, &depth);

    if (one == NULL || two == NULL)
        abort();
    int first = coroutine_resume(one, 0) + coroutine_resume(two, 0);
    int second = coroutine_resume(one, 30) + coroutine_resume(two, 12);
    tap_ok(first == 2 && second == 42, "%d calls deep: %d, then %d", DEPTH, first, second);
    coroutine_free(one);
    coroutine_free(two);
}

static void one_after_the_other(int times)
{
    int number = 0;

    for (int i = 0; i < times; i++) {
        struct coroutine *co = coroutine_new(count_up, &number);
        if (co == NULL)
            abort();
        while (!coroutine_is_over(co))
            coroutine_resume(co, 0);
        coroutine_free(co);
    }
}

static void check_stacks(void)
{
    one_after_the_other(1);
    int before = mappings();
    one_after_the_other(1000);
    tap_ok(mappings() == before, "after 1000 more %d mappings, and %d before", mappings(), before);
}

/* Returns the signal by which a child ends that calls so deeply in a coroutine; 0: by none. */
static int signal_at(int depth)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(SIGSEGV, SIG_DFL); /* a sanitizer would write a report */
        struct coroutine *co = coroutine_new(dive_deep, &depth);
        if (co != NULL)
            coroutine_resume(co, 0);
        _exit(0);
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        abort();
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

int main(void)
{
    check_turns();
    check_depth();
    check_stacks();
    tap_ok(signal_at(DEPTH) == 0, "%d calls of 200 bytes fit on a stack", DEPTH);
    tap_ok(signal_at(2000) == SIGSEGV, "2000 do not: signal %d", signal_at(2000));
    return tap_done();
}
