# The tests: `make test` (variant glibc, and everything in tests/), `make check` (the servers in every variant).

DISK_TESTS := disk_cache_test disk_files_test disk_model_test
UNIT_TESTS := confine_test conn_test coroutine_test file_cache_test queue_test http_date_test http_parse_test kqueue_test micro_test open_below_test reply_test $(DISK_TESTS)

conn_test_SRC       := tests/unit/conn_test.c code/06-select/clients.c \
                       $(addprefix code/common/,acknowledged.c clock.c die.c linger.c log.c net.c open_below_walk.c privileges.c refusal.c stop.c unsent.c) \
                       $(addprefix code/http/,http_date.c http_parse.c reply.c)
coroutine_test_SRC  := tests/unit/coroutine_test.c $(addprefix code/16-coroutines/,coroutine.c switch_$(SWITCH).c)
confine_test_SRC    := tests/unit/confine_test.c code/15-slashdot/confine.c code/common/die.c code/common/open_below_walk.c
confine_test_LIBS   := -pthread
file_cache_test_SRC := tests/unit/file_cache_test.c code/15-slashdot/file_cache.c code/common/die.c code/common/log.c \
                       code/common/open_below_walk.c $(addprefix code/http/,http_date.c http_parse.c reply.c)
queue_test_SRC      := tests/unit/queue_test.c code/05-pool/queue.c code/12-aio/job.c code/common/clock.c code/common/die.c code/common/log.c \
                       code/common/open_below_walk.c $(addprefix code/http/,http_date.c http_parse.c reply.c)
http_date_test_SRC  := tests/unit/http_date_test.c code/http/http_date.c
http_parse_test_SRC := tests/unit/http_parse_test.c code/http/http_parse.c
kqueue_test_SRC_any := tests/unit/kqueue_test.c $(KQUEUE_SRC)
kqueue_test_SRC_libkqueue := tests/unit/kqueue_test.c
micro_test_SRC      := tests/unit/micro_test.c benchmarks/micro/micro.c code/common/die.c
open_below_test_SRC := tests/unit/open_below_test.c code/common/open_below_walk.c
reply_test_SRC      := tests/unit/reply_test.c code/common/die.c code/common/log.c code/common/open_below_walk.c \
                       $(addprefix code/http/,http_date.c http_parse.c reply.c)
$(foreach t,$(DISK_TESTS),$(eval $(t)_SRC := tests/unit/$(t).c benchmarks/disk/$(patsubst disk_%_test,%,$(t)).c)$(eval $(t)_LIBS := -lm))

$(foreach t,confine_test conn_test file_cache_test open_below_test queue_test reply_test,$(eval $(t)_SRC_any := $(OPEN_BELOW_any))$(eval $(t)_SRC_diet := $(OPEN_BELOW_diet)))
$(foreach t,$(UNIT_TESTS),$(eval $(t)_SRC += tests/unit/tap.c)$(eval $(t)_VARIANTS := glibc static static-pie diet musl asan))
confine_test_VARIANTS := glibc static # as 15-slashdot; a sanitizer's build is not confined
coroutine_test_VARIANTS := glibc static asan # some of those in which every processor has 16-coroutines
file_cache_test_VARIANTS := glibc static static-pie musl asan # dietlibc's struct stat has no nanoseconds
queue_test_VARIANTS := glibc static static-pie musl asan # dietlibc has no eventfd()
kqueue_test_VARIANTS := glibc static static-pie musl asan libkqueue # dietlibc's timerfd_create() is broken
$(foreach t,$(DISK_TESTS),$(eval $(t)_VARIANTS := glibc static static-pie musl asan)) # dietlibc has no llround()

# A server in a simulated world, as sim.c tells: what it asks of the kernel and of the C library goes to tests/sim/.
SIMULATED := 05b-nonblocking 06-select 07-poll 09-epoll 10-kqueue 11-sendfile 12-aio 15-slashdot
SIMS      := $(SIMULATED:=_sim)
SIM_CALLS := main exit _exit malloc calloc realloc free mmap64 munmap malloc_trim clock_gettime time sigaction alarm getrlimit64 setrlimit64 \
             socket bind listen getsockname setsockopt accept4 recv send sendmsg writev sendfile64 shutdown close ioctl dup fcntl64 open64 \
             read write fstat64 pread64 readahead eventfd epoll_create1 epoll_ctl epoll_wait poll select \
             open_below conn_handle conn_end serve_refusal pool_start pool_run job_give_up_if_lost jobs_refused
SIM_SRC   := $(addprefix tests/sim/,sim.c kernel.c net.c waits.c files.c peers.c)
# What else is in place of what.
10-kqueue_SIM   := tests/sim/kqueue.c
10-kqueue_OUT   := $(KQUEUE_SRC)
12-aio_SIM      := tests/sim/jobs.c
12-aio_OUT      := code/12-aio/cached.c
15-slashdot_SIM := tests/sim/jobs.c tests/sim/worker.c
15-slashdot_OUT := code/12-aio/cached.c $(addprefix code/15-slashdot/,master.c workers.c successor.c confine.c)
$(foreach s,$(SIMULATED),$(eval $(s)_sim_SRC := $(filter-out $($(s)_OUT),$($(s)_SRC) $($(s)_SRC_any)) $(SIM_SRC) $($(s)_SIM)))
$(foreach s,$(SIMULATED),$(eval $(s)_sim_VARIANTS := asan)$(eval $(s)_sim_LIBS := $($(s)_LIBS) $(addprefix -Wl$(comma)--wrap=,$(SIM_CALLS))))
PROGRAMS += $(SIMS)
$(BUILD)/obj/asan/tests/sim/kqueue.o: CPPFLAGS += $(KQUEUE_CPPFLAGS)

PROGRAMS += $(UNIT_TESTS)
PORTABLE += $(filter-out confine_test coroutine_test file_cache_test queue_test $(DISK_TESTS),$(UNIT_TESTS))

# ASan finds what it can find in the servers as they are; TSan is for those with threads. Which tests run where, and why:
# tests/conformance/matrix.py.
CHECK_VARIANTS := $(filter glibc static static-pie diet musl asan,$(VARIANTS_HERE))
CHECK_TSAN     := $(if $(filter tsan,$(VARIANTS_HERE)),$(addprefix $(BUILD)/tsan/,04-threads 05-pool 12-aio 15-slashdot))

empty :=
joined = $(subst $(empty) $(empty),$(comma),$(strip $(1)))

# Most tests wait, for a time-out or for a reply that must not come: more workers than processors. Without
# pytest-xdist the same tests run one after the other. tests/scheduling.py: which comes when.
TEST_JOBS ?= $(shell echo $$(($(JOBS) < 8 ? 4 * $(JOBS) : 2 * $(JOBS))))
# PYTEST_ARGS=--lf runs what failed the last time. Of two -m the last counts.
PYTEST = $(PYTHON) -m pytest -q --build=$(BUILD) $(if $(shell $(PYTHON) -E -c 'import xdist' 2>&1),,-n $(TEST_JOBS)) $(LEFT_OUT) $(PYTEST_ARGS)

.PHONY: test check attacks soak soak-mixed soak-restarts soak-sim sim-faults fuzz tests-of-all tests-of-variants test-book test-labs

# To compile them with the sanitizers takes longer than to run them: that of one server, or all.
sim_of_one = $(filter $(CH)_sim,$(SIMS))
sims_here  = $(if $(CH),$(sim_of_one),$(if $(if $(ONLY),$(filter sim,$(ONLY)),$(ALL)),$(SIMS)))

test: LEFT_OUT = $(if $(CH),$(if $(ALL),,-m 'not slow'))
# make's own clock starts anew once the tools are there, as in `all`.
test:
	$(Q)sh setup/deps.sh build test
	$(Q)$(PYTHON) -c 'import pytest' 2> /dev/null || { echo "make test: pytest is not installed (Debian: python3-pytest); make deps installs it" >&2; exit 1; }
	$(Q)$(MAKE) --no-print-directory $(parallel) servers $(addprefix $(BUILD)/asan/,$(sims_here))
ifneq ($(CH),)
	$(Q)$(PYTEST) --about=$(CH) $(addprefix tests/,conformance unit labs bsd $(if $(sim_of_one),sim))
else ifneq ($(ONLY),)
	$(Q)tests="$$($(QUEST) tests-of $(call quoted,ONLY=$(ONLY)))" && $(PYTEST) -m 'not long and not slow and not others and not quiet' $$tests
else
	$(Q)$(MAKE) --no-print-directory $(parallel) figures book epub slides
	$(Q)$(MAKE) --no-print-directory tests-of-all
endif

# With CH it is the check of a student's lab: labs/module.mk.
ifeq ($(CH),)
check:
	@echo "make check: all servers in every build variant, ten minutes (your lab: make check CH=02)"
	$(Q)sh setup/deps.sh build test
	$(Q)$(MAKE) --no-print-directory $(parallel) $(foreach v,$(CHECK_VARIANTS),$(call programs_in,$(v))) $(CHECK_TSAN)
	$(Q)$(MAKE) --no-print-directory tests-of-variants
	$(Q)$(MAKE) --no-print-directory frozen
endif

# pytest rewrites the asserts of each file of tests and keeps the result. Where nothing is kept yet, as in a fresh clone, each
# of its workers would rewrite all of them, and that takes 10 s of processor time each.
REWRITTEN = [ $$(ls tests/*/__pycache__/test_*-pytest-*.pyc 2> /dev/null | wc -l) -ge $(words $(wildcard tests/*/test_*.py)) ] || \
	printf '%s\n' $(wildcard tests/*/) | xargs -P $(JOBS) -n 5 $(PYTHON) -m pytest --collect-only -qq -p no:cacheprovider --build=$(BUILD) > /dev/null 2>&1 || :

# What a contributor waits for: CONTRIBUTING.md has the rule by which a test is `slow`. What is slow without it is shown, too.
tests-of-all: LEFT_OUT = $(if $(ALL),,--ignore=tests/sim -m 'not slow and not others') --durations=12 --durations-min=10
tests-of-all:
	$(Q)$(REWRITTEN)
	$(Q)$(PYTEST) tests

tests-of-variants:
	$(Q)$(PYTEST) --variants=$(call joined,$(CHECK_VARIANTS)) tests/conformance tests/unit tests/micro
	$(Q)$(if $(CHECK_TSAN),$(PYTEST) --variants=tsan --servers=$(call joined,$(notdir $(CHECK_TSAN))) tests/conformance)
	$(Q)BIN=$(BUILD)/asan $(PYTEST) tests/hammer tests/disk

# Ten solutions of each lab, beside a machine that is busy, before it is given out: LAB_RUNS=10.
test-labs:
	$(Q)LAB_RUNS=$${LAB_RUNS:-1} $(PYTEST) --longest=0 tests/labs

test-book:
	$(Q)$(PYTEST) tests/book

# Where libkqueue is installed, 10-kqueue and the test of kqueue run on that, too. The test shows where libkqueue does not keep
# to the manual pages; it may wait there for what never comes, and ends after a minute.
.PHONY: libkqueue
libkqueue:
ifeq ($(filter libkqueue,$(VARIANTS_HERE)),)
	$(Q)echo "make libkqueue needs libkqueue, and pkg-config to find it; Debian 12 has no package of it" >&2; exit 1
else
	$(Q)$(MAKE) --no-print-directory $(parallel) $(addprefix $(BUILD)/libkqueue/,10-kqueue kqueue_test 00-client constant)
	$(Q)$(PYTEST) --servers=10-kqueue --variants=libkqueue tests/conformance
	$(Q)timeout 60 $(BUILD)/libkqueue/kqueue_test || echo "not ok, or an early end: there libkqueue differs from the manual pages"
endif

# Each cell is tried here: one that is wrong is the end of make, too.
.PHONY: server-tables
server-tables: servers
	$(Q)$(PYTHON) -m tests.conformance.inherited $(BUILD)
	$(Q)$(PYTHON) -m tests.conformance.refused $(BUILD)

# Connections opened and closed for minutes: what grows?
soak: servers
	$(Q)$(PYTHON) -m tests.soak.soak --herd 18000 --build $(BUILD) --seconds $(or $(SECONDS),300) $(if $(CH),--server $(CH))

attacks: servers
	$(Q)$(PYTHON) -m tests.soak.attacks --build $(BUILD)

soak-mixed: servers
	$(Q)$(PYTHON) -m tests.soak.soak --build $(BUILD) --seconds $(or $(SECONDS),300) --restarts 600 $(if $(CH),--server $(CH))

soak-restarts: servers
	$(Q)$(PYTHON) -m tests.soak.soak --restarts 2 --follow --build $(BUILD) --seconds $(or $(SECONDS),60)

soak-sim: $(addprefix $(BUILD)/asan/,$(SIMS))
	$(if $(filter $(or $(CH),$(SIMULATED)),$(SIMULATED)),,$(error make soak-sim: $(CH) is not simulated. There are: $(SIMULATED)))
	$(Q)for s in $(or $(CH),$(SIMULATED)); do $(BUILD)/asan/$${s}_sim --seed $(or $(SEED),$$(date +%s)) \
		--seconds $$((($(or $(SECONDS),60) + 7) / $(if $(CH),1,$(words $(SIMULATED))))) || exit 1; done

sim-faults: $(addprefix $(BUILD)/asan/,$(SIMS))
	$(Q)$(PYTHON) tests/sim/planted.py $(BUILD) $(subst $(comma), ,$(ONLY))

# Nothing of it is in `make deps`: it says itself what is missing. tests/bsd/README.md.
.PHONY: vm
vm:
	$(Q)BUILD=$(BUILD) OS=$(or $(OS),freebsd) IMAGE=$(call quoted,$(IMAGE)) KEY=$(call quoted,$(KEY)) sh tests/bsd/vm.sh $(VM_ARGS)

# The request parser against libFuzzer: FUZZ_SECONDS of inputs nobody would think of.
FUZZ_SECONDS ?= 30
FUZZ_SRC := tests/fuzz/http_parse_fuzz.c $(addprefix code/http/,http_parse.c reply.c http_date.c) \
            $(addprefix code/common/,die.c log.c open_below_walk.c open_below_portable.c)

fuzz: $(BUILD)/fuzz/http_parse_fuzz
	$(Q)mkdir -p $(BUILD)/fuzz/corpus
	$(Q)cd $(BUILD)/fuzz && ./http_parse_fuzz -max_total_time=$(FUZZ_SECONDS) -max_len=9000 -timeout=5 -verbosity=0 -print_final_stats=1 corpus

$(BUILD)/fuzz/http_parse_fuzz: $(FUZZ_SRC) $(wildcard code/http/*.h code/common/*.h)
	@mkdir -p $(@D)
	$(Q)command -v clang > /dev/null || { echo "make fuzz needs clang and its libFuzzer (Debian: clang, libclang-rt-dev)" >&2; exit 1; }
	$(call say,FUZZ,$@)
	$(Q)clang -std=c11 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all $(CPPFLAGS) -o $@ $(FUZZ_SRC)

# Faults that are made by a program, each given to the tests that concern it: tests/README.md. As root, and about an hour.
.PHONY: mutants
mutants:
	$(Q)$(MAKE) --no-print-directory $(parallel) servers
	$(Q)PYTHONDONTWRITEBYTECODE=1 $(PYTHON) -m tests.mutants.mutants $(if $(N),-n $(N)) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY)) \
		$(if $(RESULTS_OF),--results $(call quoted,$(RESULTS_OF))) $(if $(BEFORE),--before $(call quoted,$(BEFORE)))
