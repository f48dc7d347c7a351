# Micro-benchmarks: one question each. Built in every variant: libc and link mode are among the
# questions.

MICRO_COMMON := benchmarks/micro/micro.c code/common/die.c

PROGRAMS += fork-latency fork-reap clock-cost spawn nothing thread-create fork-memory fork-mappings \
            cow-pages malloc-dirty lazy-binding getrusage
fork-latency_SRC := benchmarks/micro/fork-latency.c benchmarks/micro/children.c $(MICRO_COMMON)
fork-reap_SRC    := benchmarks/micro/fork-reap.c benchmarks/micro/children.c $(MICRO_COMMON)
clock-cost_SRC   := benchmarks/micro/clock-cost.c $(MICRO_COMMON)
nothing_SRC      := benchmarks/micro/nothing.c
spawn_SRC        := $(addprefix benchmarks/micro/,spawn.c resident.c children.c) $(MICRO_COMMON)

thread-create_SRC  := $(addprefix benchmarks/micro/,thread-create.c children.c) $(MICRO_COMMON)
thread-create_LIBS := -pthread

fork-memory_SRC   := $(addprefix benchmarks/micro/,fork-memory.c watched.c resident.c children.c) $(MICRO_COMMON)
fork-mappings_SRC := $(addprefix benchmarks/micro/,fork-mappings.c resident.c children.c) $(MICRO_COMMON)

PROGRAMS += sched-switch run-queue mmap-pages fault-around wake-latency fairness ticks
sched-switch_SRC := $(addprefix benchmarks/micro/,sched-switch.c children.c) $(MICRO_COMMON)
run-queue_SRC    := $(addprefix benchmarks/micro/,run-queue.c children.c) $(MICRO_COMMON)
mmap-pages_SRC   := $(addprefix benchmarks/micro/,mmap-pages.c) $(MICRO_COMMON)
fault-around_SRC := benchmarks/micro/fault-around.c $(MICRO_COMMON)
wake-latency_SRC := $(addprefix benchmarks/micro/,wake-latency.c children.c) $(MICRO_COMMON)
fairness_SRC     := $(addprefix benchmarks/micro/,fairness.c children.c) $(MICRO_COMMON)
ticks_SRC        := $(addprefix benchmarks/micro/,ticks.c children.c) $(MICRO_COMMON)

WATCHED_SRC      := $(addprefix benchmarks/micro/,watched.c children.c) $(MICRO_COMMON)
cow-pages_SRC    := $(addprefix benchmarks/micro/,cow-pages.c resident.c) $(WATCHED_SRC)
malloc-dirty_SRC := benchmarks/micro/malloc-dirty.c $(WATCHED_SRC)

lazy-binding_SRC := $(addprefix benchmarks/micro/,lazy-binding.c watched.c children.c) $(MICRO_COMMON)

# What a child costs, in time or in pages: where names are looked up when they are first called, that is a part of it, which
# chapters/process-cost.md takes out by LD_BIND_NOW.
BOUND_LAZILY += fork-latency fork-reap spawn fork-memory fork-mappings cow-pages malloc-dirty lazy-binding as-lmbench

PROGRAMS += first-read
first-read_SRC  := benchmarks/micro/first-read.c $(MICRO_COMMON)
first-read_LIBS := -pthread

getrusage_SRC := $(addprefix benchmarks/micro/,getrusage.c resident.c) $(MICRO_COMMON)

# Not a measurement: a helper beside a server that is looked at.
PROGRAMS += hold-connections
hold-connections_SRC := benchmarks/micro/hold-connections.c $(MICRO_COMMON)

# What waits for one socket, and how, is Linux's; dietlibc does not know all of it.
PROGRAMS += prefork-herd
prefork-herd_SRC := $(addprefix benchmarks/micro/,prefork-herd.c children.c) $(MICRO_COMMON)

# Which process gets a connection, and what that does to the others' wait. EPOLLEXCLUSIVE is Linux's, and dietlibc lacks it.
PROGRAMS += accept-share one-slow
accept-share_SRC      := benchmarks/micro/children.c $(MICRO_COMMON)
accept-share_SRC_any  := $(addprefix benchmarks/micro/,accept-share.c accept_ways.c)
accept-share_SRC_diet := benchmarks/micro/not_here.c
one-slow_SRC           = $(addprefix benchmarks/micro/,one-slow.c accept_ways.c) $(COMMON_SRC)
one-slow_SRC_any       = $(OPEN_BELOW_any)
one-slow_VARIANTS     := glibc asan

# The wait for a thread of a pool: starts one of the servers, which are not built in each variant.
PROGRAMS += pool-knee
pool-knee_SRC      := benchmarks/micro/pool-knee.c code/common/end_with_parent.c $(MICRO_COMMON)
pool-knee_LIBS     := -lm
pool-knee_VARIANTS := glibc asan

# Debian has liburing for glibc alone, as for 13-uring.
PROGRAMS += ring-map
ring-map_SRC      := $(addprefix benchmarks/micro/,ring-map.c askers.c) code/common/end_with_parent.c $(MICRO_COMMON)
ring-map_NEEDS    := liburing.h
ring-map_LIBS     := -luring
ring-map_VARIANTS := glibc asan

PROGRAMS += epoll-facts nagle zerocopy
epoll-facts_SRC      := $(MICRO_COMMON)
epoll-facts_SRC_any  := benchmarks/micro/epoll-facts.c
epoll-facts_SRC_diet := benchmarks/micro/not_here.c
epoll-facts_LIBS     := -pthread
# What TCP_INFO and the queue of errors tell stands in linux/*.h alone.
define linux_headers
$(1)_SRC      := $(MICRO_COMMON)
$(1)_SRC_any  := benchmarks/micro/$(1).c
$(1)_SRC_diet := benchmarks/micro/not_here.c
$(1)_SRC_musl := benchmarks/micro/not_here.c
endef
$(foreach p,nagle zerocopy,$(eval $(call linux_headers,$(p))))

PROGRAMS += fd-alloc
fd-alloc_SRC  := benchmarks/micro/fd-alloc.c $(MICRO_COMMON)
fd-alloc_LIBS := -pthread

# Some ways to wait are Linux's; dietlibc lacks one, and its timerfd_create() does not work.
PROGRAMS += timeout-accuracy
timeout-accuracy_SRC := benchmarks/micro/timeout-accuracy.c $(MICRO_COMMON)

# It uses what lmbench uses; that its server ends with it is Linux's.
PROGRAMS += as-lmbench
as-lmbench_SRC := $(addprefix benchmarks/micro/,as-lmbench.c children.c) $(MICRO_COMMON)

# musl's resolver cannot be told of another port.
PROGRAMS += resolver
resolver_SRC      := benchmarks/micro/children.c $(MICRO_COMMON)
resolver_SRC_any  := benchmarks/micro/resolver.c
resolver_SRC_musl := benchmarks/micro/not_here.c

PROGRAMS += port-bind
port-bind_SRC := $(addprefix benchmarks/micro/,port-bind.c children.c) $(MICRO_COMMON)

# Linux has more ways to wait for many sockets than select and poll; 10-kqueue brings one more.
PROGRAMS += event-wait event-rate
WAIT_WAYS := $(addprefix benchmarks/micro/,wait_ways.c wait_ways_linux.c)
event-wait_SRC := benchmarks/micro/event-wait.c $(WAIT_WAYS) $(MICRO_COMMON)
event-rate_SRC := $(addprefix benchmarks/micro/,event-rate.c children.c) $(WAIT_WAYS) $(MICRO_COMMON)
event-wait_SRC_any   = benchmarks/micro/wait_ways_kqueue.c $(KQUEUE_SRC)
event-rate_SRC_any   = $(event-wait_SRC_any)
event-wait_SRC_diet := benchmarks/micro/wait_ways_kqueue.c
event-rate_SRC_diet := $(event-wait_SRC_diet)

# Two ways from stack to stack; musl and dietlibc have no swapcontext(). Not `:=`: code/module.mk, which is read later, says which.
PROGRAMS += resume-cost resume-cost-ucontext
resume-cost_SRC                = benchmarks/micro/resume-cost.c $(addprefix code/16-coroutines/,coroutine.c switch_$(SWITCH).c) $(MICRO_COMMON)
resume-cost_VARIANTS           = $(16-coroutines_VARIANTS)
resume-cost-ucontext_SRC      := $(MICRO_COMMON)
resume-cost-ucontext_SRC_any  := benchmarks/micro/resume-cost.c $(addprefix code/16-coroutines/,coroutine.c switch_ucontext.c)
resume-cost-ucontext_SRC_diet := benchmarks/micro/not_here.c
resume-cost-ucontext_SRC_musl := benchmarks/micro/not_here.c
resume-cost-ucontext_VARIANTS := $(filter-out tsan libkqueue,$(VARIANTS))

PROGRAMS += sigio-overflow
sigio-overflow_SRC := benchmarks/micro/sigio-overflow.c $(MICRO_COMMON)

PROGRAMS += readiness-facts
readiness-facts_SRC := $(addprefix benchmarks/micro/,readiness-facts.c fd_set_checked.c fd_set_plain.c children.c) \
                       $(MICRO_COMMON)

PROGRAMS += write-parts in-flight
write-parts_SRC := benchmarks/micro/write-parts.c $(MICRO_COMMON)
in-flight_SRC   := benchmarks/micro/in-flight.c $(MICRO_COMMON)

# File systems of one's own, asynchronous reads and what tells the page cache to forget are Linux's; dietlibc lacks most of
# the calls (aio.h, syscall(), nftw(), mkdirat(), posix_fadvise()), and musl-gcc finds no linux/*.h.
FILES_PROGRAMS := mmap-files stat-cost directory-size aio-threads kernel-aio
PROGRAMS       += $(FILES_PROGRAMS)
BLOCKS_SRC     := $(addprefix benchmarks/micro/,blocks.c micro.c)
OWN_FILES_SRC  := $(addprefix benchmarks/micro/,own_files.c micro.c)
mmap-files_LINUX     := $(OWN_FILES_SRC)
stat-cost_LINUX       = $(OWN_FILES_SRC) code/common/open_below_walk.c $(OPEN_BELOW_any)
directory-size_LINUX := $(OWN_FILES_SRC)
aio-threads_LINUX    := $(BLOCKS_SRC)
kernel-aio_LINUX     := $(BLOCKS_SRC) $(filter-out %/micro.c,$(OWN_FILES_SRC))
define files_program
$(1)_SRC      := code/common/die.c
$(1)_SRC_any   = $$(if $$(filter Linux,$$(SYSTEM)),benchmarks/micro/$(1).c $$($(1)_LINUX),benchmarks/micro/not_here.c)
$(1)_SRC_diet := benchmarks/micro/not_here.c
endef
$(foreach p,$(FILES_PROGRAMS),$(eval $(call files_program,$(p))))
$(foreach p,$(filter-out aio-threads,$(FILES_PROGRAMS)),$(eval $(p)_SRC_musl := benchmarks/micro/not_here.c))
aio-threads_LIBS := -pthread
kernel-aio_LIBS  := -pthread
# The threads that glibc starts have too small a stack for the sanitizer.
aio-threads_VARIANTS := $(filter-out tsan,$(VARIANTS))
kernel-aio_VARIANTS  := $(filter-out tsan,$(VARIANTS))

# What POSIX has is enough for these. Not for those that read /proc (watched.c, ticks.c) or choose the size of their pages
# (resident.c), and what prefork-herd compares is Linux's.
PORTABLE += fork-latency fork-reap clock-cost nothing thread-create sched-switch mmap-pages fault-around wake-latency \
            fairness first-read hold-connections fd-alloc timeout-accuracy event-wait event-rate readiness-facts \
            write-parts in-flight

# The time is the disk's: one variant will do.
PROGRAMS += disk-read
disk-read_SRC      := benchmarks/micro/disk-read.c $(MICRO_COMMON)
disk-read_LIBS     := -pthread
disk-read_VARIANTS := glibc asan

# The limit that servers are measured against; epoll, accept4() and sendfile() are Linux's.
PROGRAMS += null-server
null-server_SRC       = benchmarks/micro/null-server.c $(COMMON_SRC)
null-server_SRC_any   = $(OPEN_BELOW_any)
null-server_VARIANTS := glibc static asan
