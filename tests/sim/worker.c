/* worker.c: one worker of 15-slashdot, without its master. */
#include "15-slashdot/confine.h"
#include "15-slashdot/master.h"
#include "known_state.h"
#include "net.h"
#include "sim.h"
#include "stop.h"

void master_begin(const char *argv0)
{
    known_state(argv0, NULL);
}

int master_run(const struct options *o, char **argv, const int *sockets, int count)
{
    (void)o, (void)argv, (void)sockets, (void)count;
    return 0;
}

void worker_tells_master(int number, int signal_fd)
{
    (void)number, (void)signal_fd;
}

int workers_listen(const struct options *o, int *sockets, int count)
{
    (void)count;
    sockets[0] = tcp_listen(o);
    return 1;
}

void workers_listen_again(int fd, const struct options *o)
{
    (void)fd, (void)o;
}

int workers_own(const int *sockets, int number, int worker)
{
    (void)number, (void)worker;
    return sockets[0];
}

int workers_signal_fd(void)
{
    return new_fd(A_SIGNALFD);
}

/* Here it is free. */
void confine_files(bool wanted, const struct options *o)
{
    (void)wanted, (void)o;
}

void confine_calls(bool wanted, const struct options *o)
{
    (void)wanted, (void)o;
}

/* The signal to stop, or that to retire: which accepts no more, and waits for all to leave. */
void workers_signals(int fd, bool *retiring)
{
    get_fd(fd, "read()")->count = 0;
    *retiring = false;
    shut_listener();
    stop_begin();
}
