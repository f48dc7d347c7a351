# The servers, and the table of contents of this folder. Every server stands on code/common (options, listening, stopping) and
# code/http (the request, the reply). Beside those:
#
#   00-client        client.c
#   01-iterative     server.c, serve_client.[ch]: a client from its first request to its last reply
#   02-fork          server.c, children.[ch]                                    + 01 serve_client
#   02-inetd         server.c                                                   + 01 serve_client
#   03-prefork       server.c                                                   + 01 serve_client, 02 children
#   04-threads       server.c, connections.[ch], first_thread.[ch]              + 01 serve_client
#   05-pool          server.c, queue.[ch]                                       + 01 serve_client, 04 connections, first_thread
#   05b-nonblocking  one.c, conn.[ch]: a connection that never waits
#   06-select        server.c, clients.[ch]: many such connections              + 05b conn
#   07-poll          server.c                                                   + 05b conn, 06 clients
#   08-sigio         server.c                                                   + 05b conn, 06 clients
#   09-epoll         server.c                                                   + 05b conn, 06 clients
#   10-kqueue        server.c, closing.[ch]; on Linux linux/kqueue.c            + 05b conn, 06 clients
#   11-sendfile      server.c, send_path.[ch], body_*.c, join_*.c, cork.h, cork_*.c     + 05b conn, 06 clients
#   12-aio           server.c, cached.[ch], look_up.[ch], job.[ch], backend.[ch], piece.c, backend_posix.c, backend_linux.c
#                                       + 05b conn, 06 clients; appendix/ beside
#   13-uring         server.c, steps, conn, job, ring (.[ch] each)  + 12 cached
#   14-owfat         server.c, conn.[ch], watching.[ch]
#   15-slashdot      server.c, master.[ch], workers.c, confine.[ch], successor.[ch], file_cache.[ch], transfer.h, find_reply.c, send_reply.c
#                                       + 05b conn, 06 clients, 12 cached, job, look_up
#   16-coroutines    server.c, serve.[ch], coroutine.[ch], switch.h, switch_asm.c or switch_ucontext.c
#                                       + 06 clients
#
# A chapter links, by name, the file of an earlier chapter that taught what it needs. Who calls whom: code/README.md.

CPPFLAGS += -Icode -Icode/http

COMMON_SRC := $(addprefix code/common/,acknowledged.c clock.c die.c end_with_parent.c known_state.c linger.c log.c net.c open_below_walk.c \
              options.c privileges.c refusal.c stop.c unsent.c) \
              $(addprefix code/http/,http_parse.c http_date.c reply.c)

# How a file is kept below the docroot: by the kernel, or by walking where a libc or a system has no way to ask for that.
OPEN_BELOW_Linux   := openat2
OPEN_BELOW_FreeBSD := resolve_beneath
OPEN_BELOW_any     := code/common/open_below_$(or $(OPEN_BELOW_$(SYSTEM)),portable).c
OPEN_BELOW_diet    := code/common/open_below_portable.c

BLOCKING_SRC := $(COMMON_SRC) code/01-iterative/serve_client.c

THREADS_SRC  := $(BLOCKING_SRC) code/04-threads/connections.c code/04-threads/first_thread.c
CONN_SRC     := $(COMMON_SRC) code/05b-nonblocking/conn.c
CLIENTS_SRC  := $(CONN_SRC) code/06-select/clients.c

SERVERS := 01-iterative 02-fork 02-inetd 03-prefork 04-threads 05-pool 05b-nonblocking 06-select 07-poll 08-sigio 09-epoll 10-kqueue 11-sendfile 12-aio
SERVERS += 13-uring 14-owfat 15-slashdot 16-coroutines

# Linux has no kqueue. One made of epoll stands in for the system's, for those who include <sys/event.h> only.
KQUEUE_SRC      := $(if $(filter Linux,$(SYSTEM)),code/10-kqueue/linux/kqueue.c)
KQUEUE_CPPFLAGS := $(if $(KQUEUE_SRC),-Icode/10-kqueue/linux)
$(foreach v,$(filter-out libkqueue,$(VARIANTS)),$(addprefix $(BUILD)/obj/$(v)/,code/10-kqueue/%.o tests/unit/kqueue_test.o benchmarks/micro/wait_ways_kqueue.o)): CPPFLAGS += $(KQUEUE_CPPFLAGS)

00-client_SRC    := code/00-client/client.c code/common/die.c code/common/known_state.c
constant_SRC     := code/01-iterative/constant.c code/common/die.c
01-iterative_SRC := code/01-iterative/server.c $(BLOCKING_SRC)
02-fork_SRC      := code/02-fork/server.c code/02-fork/children.c $(BLOCKING_SRC)
02-inetd_SRC     := code/02-inetd/server.c $(BLOCKING_SRC)
03-prefork_SRC   := code/03-prefork/server.c code/02-fork/children.c $(BLOCKING_SRC)
04-threads_SRC   := code/04-threads/server.c $(THREADS_SRC)
05-pool_SRC      := code/05-pool/server.c code/05-pool/queue.c $(THREADS_SRC)

05b-nonblocking_SRC := code/05b-nonblocking/one.c $(CONN_SRC)
06-select_SRC       := code/06-select/server.c $(CLIENTS_SRC)
07-poll_SRC         := code/07-poll/server.c $(CLIENTS_SRC)
08-sigio_SRC        := code/08-sigio/server.c $(CLIENTS_SRC)
09-epoll_SRC        := code/09-epoll/server.c $(CLIENTS_SRC)
10-kqueue_SRC       := code/10-kqueue/server.c $(CLIENTS_SRC)

# Two of the ways to send have another name elsewhere.
SEND_PATH_SRC := $(addprefix code/11-sendfile/,send_path.c join_two.c join_nodelay.c join_writev.c join_more.c join_cork.c \
                 $(if $(filter Linux,$(SYSTEM)),cork_linux.c,$(if $(filter NetBSD,$(SYSTEM)),,cork_bsd.c)) \
                 body_read.c body_mmap.c body_splice.c body_sendfile_$(if $(filter Linux,$(SYSTEM)),linux,others).c)
11-sendfile_SRC := code/11-sendfile/server.c $(CLIENTS_SRC) $(SEND_PATH_SRC)

# Linux and glibc only: eventfd, the kernel's own asynchronous I/O, aio_init().
12-aio_APPENDIX := $(addprefix code/12-aio/appendix/,appendix.c helper.c threads_sendfile.c readahead.c) \
                   $(addprefix code/11-sendfile/,body_mmap.c body_sendfile_linux.c)
12-aio_SRC      := code/12-aio/server.c $(CLIENTS_SRC) $(12-aio_APPENDIX) \
                   $(addprefix code/12-aio/,cached.c job.c look_up.c piece.c backend.c backend_posix.c backend_linux.c)
12-aio_VARIANTS := glibc static asan tsan
12-aio_LIBS     := -pthread

# One thread, so there is nothing for TSan; and the libraries that Debian has are glibc's.
13-uring_SRC      := $(addprefix code/13-uring/,server.c steps.c conn.c job.c ring.c) code/12-aio/cached.c $(COMMON_SRC)
13-uring_NEEDS    := liburing.h
13-uring_LIBS     := -luring
13-uring_VARIANTS := glibc static static-pie asan

# The library is Debian's, made for glibc; with dietlibc or musl one would have to make it oneself.
14-owfat_SRC      := $(addprefix code/14-owfat/,server.c conn.c watching.c) $(COMMON_SRC)
14-owfat_LIBS     := -lowfat
14-owfat_NEEDS    := iob.h
14-owfat_VARIANTS := glibc asan
# Debian 13 has them in a folder of their own. It is looked into last: their names are everyday words.
14-owfat_CPPFLAGS := -idirafter /usr/include/libowfat
$(addprefix $(BUILD)/obj/,$(14-owfat_VARIANTS:=/code/14-owfat/%.o)): CPPFLAGS += $(14-owfat_CPPFLAGS)

# Linux alone: signalfd, EPOLLEXCLUSIVE, openat2 with RESOLVE_CACHED.
15-slashdot_SRC      := $(addprefix code/15-slashdot/,server.c master.c workers.c confine.c successor.c file_cache.c find_reply.c send_reply.c) \
                        $(CLIENTS_SRC) code/12-aio/cached.c code/12-aio/job.c code/12-aio/look_up.c
15-slashdot_VARIANTS := glibc static asan tsan
15-slashdot_LIBS     := -pthread

# From stack to stack: by hand where the processor is one of these, else by the C library, if it has swapcontext().
SWITCH := $(if $(filter x86_64 aarch64 arm64,$(PROCESSOR)),asm,ucontext)
16-coroutines_SRC      := $(addprefix code/16-coroutines/,server.c serve.c coroutine.c switch_$(SWITCH).c) $(COMMON_SRC) code/06-select/clients.c
16-coroutines_VARIANTS := $(if $(filter asm,$(SWITCH)),$(filter-out tsan libkqueue,$(VARIANTS)),glibc static static-pie asan)

04-threads_LIBS := -pthread
05-pool_LIBS    := -pthread

$(foreach s,$(SERVERS),$(eval $(s)_SRC_any := $(OPEN_BELOW_any))$(eval $(s)_SRC_diet := $(OPEN_BELOW_diet)))

10-kqueue_SRC_libkqueue := $(OPEN_BELOW_any) code/10-kqueue/closing.c
10-kqueue_SRC_any       += $(KQUEUE_SRC) code/10-kqueue/closing.c
10-kqueue_CPPFLAGS      := $(KQUEUE_CPPFLAGS)
$(BUILD)/obj/libkqueue/code/10-kqueue/%.o: CPPFLAGS += -DLIBKQUEUE
10-kqueue_VARIANTS := $(filter-out diet,$(VARIANTS)) # the timers of linux/kqueue.c: dietlibc's timerfd_create() is broken

PROGRAMS += 00-client constant $(SERVERS)
PORTABLE += 00-client constant 01-iterative 02-fork 02-inetd 03-prefork 04-threads 05-pool 05b-nonblocking 06-select 07-poll 10-kqueue
PORTABLE_SRC += $(SEND_PATH_SRC)
