# The Quest for a Good Web Server.
#
#   make          what is missing is installed (after a yes), then: build, measure, draw, write the book and the deck
#   make test     the tests
#   make help     every target
#
# One non-recursive Makefile: each folder names its programs and rules in a module.mk, included below. A program is
# two lines there (PROGRAMS += x, x_SRC := files) and is then built in every variant: build/bin/x, build/diet/x, ...
# Useful settings: V=1 (show the commands), DEPS=ask|yes|skip, PROFILE=smoke|quick|full, CLIENT=user@host (make bench),
# RESULTS=reference, CH=02-fork. Goals and settings, with what they mean, are one table: quest/command/goals.py. Here stands
# what is built, and how.

ifeq ($(filter 4.% 5.%,$(MAKE_VERSION)),)
$(error make $(MAKE_VERSION) is too old: 4.0 or newer is needed (macOS: brew install make, then gmake))
endif

ifeq ($(wildcard quest/command/goals.py),)
$(error make is run from the root of the tree, the folder of $(lastword $(MAKEFILE_LIST)))
endif

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

# The name of a folder or of a student may be chosen by somebody else, and hold $(shell ...): it is taken to the letter. Before
# the first $(shell) below, which newer makes give all that was given, expanded.
LITERAL := $(foreach v,DIR CSV JSON LOGS CLASS GRADEBOOK STUDENT RUNS NAMES A B,$(if $(filter command,$(origin $(v))),$(v)))
$(foreach v,$(LITERAL),$(eval override $(v) := $$(value $(v))))

# ---- started by anybody

# A shell, an editor, a hook of git or another make starts this one. What they leave in the environment was meant for others:
# settings come from the command line, but for those that are documented as the environment's (CLIENT, SERVER, MANY).
# Their names, and those of the goals, are read from the table of goals: Setting("NAME", name="NAME", Goal("name". The first
# ones go with any goal. CI gives some of them to its make, which puts them into the environment of all that it starts.
TABLE    := quest/command/goals.py
SETTINGS := LOGS LINT PYTEST_ARGS TEST_JOBS V WERROR $(filter-out CLIENT SERVER MANY,$(shell awk -F'"' \
	'{for (i = 1; i < NF; i++) if ($$i ~ /(Setting.|name=)$$/ && $$(i + 1) ~ /^[A-Z_]+$$/) print $$(i + 1)}' $(TABLE)))
# VPATH and GPATH name folders in which another make looks for its files: what is built there would not be built here.
$(foreach s,$(SETTINGS) VPATH GPATH,$(if $(filter environment%,$(origin $(s))),$(eval override undefine $(s))))

# What Python, the shell and git obey. Python speaks UTF-8 whatever the locale is, and sort, awk and gnuplot know no other
# language where there is C.UTF-8. A hook of git names a repository, and perhaps not this one.
unexport $(filter-out PYTHON PYTHONUTF8 PYTHONPATH PYTHONUSERBASE PYTHONNOUSERSITE,$(filter PYTHON%,$(.VARIABLES)))
unexport BASH_ENV ENV CDPATH SHELLOPTS BASHOPTS POSIXLY_CORRECT GREP_OPTIONS GREP_COLOR GREP_COLORS LS_COLORS \
	GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_COMMON_DIR GIT_NAMESPACE GIT_PREFIX
override export PYTHONUTF8 := 1
override export PYTHONPATH := .
ifeq ($(shell LC_ALL=C.UTF-8 locale charmap 2>/dev/null),UTF-8)
override export LC_ALL := C.UTF-8
endif
# make -R forgets it.
ifneq ($(filter undefined,$(origin CC)),)
CC := cc
endif

# With -i a failure, and with -t what was never made, would be reported as done.
flags := $(filter-out --%,$(firstword -$(MAKEFLAGS)))
$(foreach f,i t,$(if $(findstring $(f),$(flags)),$(error make -$(f) would report success where there is none: leave it away)))

# What nobody here could use, or enter, is not made.
FILES_LEAST := 32
MISPLACED := $(shell case $$(umask) in ([1-7]??|0[1-7]??) echo umask;; esac; [ -z "$$TMPDIR" ] || [ -d "$$TMPDIR" ] || echo TMPDIR; \
	case $$(ulimit -n) in (unlimited) ;; (*) [ $$(ulimit -n) -ge $(FILES_LEAST) ] || echo files;; esac)
ifneq ($(filter files,$(MISPLACED)),)
$(error ulimit -n $(shell ulimit -n) allows too few open files: at least $(FILES_LEAST) are needed)
endif
ifneq ($(filter umask,$(MISPLACED)),)
$(error umask $(shell umask) takes your own files away from you: umask 022)
endif
ifneq ($(filter TMPDIR,$(MISPLACED)),)
unexport TMPDIR
endif

comma   := ,
hash    := \#
BUILD   := build
# Of it `make clean` removes all, and of no folder find would take the tree. (A blank in its name makes words of it.)
one_word = $(subst $(NOTHING) $(NOTHING),?,$(1))
ifeq ($(strip $(BUILD)),)
$(error BUILD= names no folder: leave it away)
endif
ifneq ($(or $(filter /,$(abspath $(BUILD))),$(filter $(call one_word,$(abspath $(BUILD)))/%,$(call one_word,$(CURDIR))/)),)
$(error BUILD=$(BUILD) holds the tree itself: what is made needs a folder of its own)
endif
# It is a part of names of targets, and of lines for the shell: `make distclean BUILD="a b"` would remove two other folders,
# and BUILD=~ of a shell that leaves the ~ to us the home.
meant_otherwise = $(strip $(foreach c,' " ` \ ; & | < > ( ) { } [ ] * ? ! $$ % : = ~,$(findstring $(c),$(BUILD))) $(foreach c,$(hash) $(comma),$(findstring $(c),$(BUILD))))
ifneq ($(BUILD)$(meant_otherwise),$(firstword $(BUILD)))
$(error BUILD=$(BUILD): only letters, digits and any of / . _ - + @ may be in its name)
endif
LDFLAGS :=
DEPS    ?= ask
RESULTS ?= here
export DEPS RESULTS

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-8s %s\n' $(1) $(2)
endif

# scipy comes with Debian's own python; a python3 found earlier in PATH may lack it. The phases of `make` inherit the
# answer, but only they: what `deps` installs changes it. PYTHON is used without quotes, as it may hold options (python3 -X dev): a
# path with a blank cannot be used, and PYTHON is then only `python3`, which the shell looks for in PATH.
ifndef PYTHON
PYTHON := $(or $(shell for p in python3 /usr/bin/python3; do $$p -E -c 'import sys, importlib.util as u; \
	sys.exit(not u.find_spec("scipy"))' 2>/dev/null && { command -v $$p | grep -v ' ' || echo $$p; } && break; done),\
	$(shell command -v python3 | grep -v ' ' || ! command -v python3 > /dev/null || echo python3))
endif
ifneq ($(filter everything tests-of-all,$(MAKECMDGOALS)),)
export PYTHON
endif
# $(call quoted,text): one word for the shell, whatever is in it.
quoted = '$(subst ','\'',$(1))'

# The one command line. With its settings a goal of ours is $(call quest,goal): those of this make's command line, and the
# folders. What was meant for another goal of the same line is left aside there.
QUEST = $(if $(PYTHON),,$(error Python is not here: apt-get install python3 (3.11 or newer). Servers alone need none: make PYTHON= servers$(comma) then build/bin/01-iterative code))$(PYTHON) -m quest
GIVEN := $(strip $(LITERAL) $(foreach v,$(.VARIABLES),$(if $(filter command,$(origin $(v))),$(v))))
# A line of a recipe ends where a value has a new line, in the middle of its quotes.
define NEW_LINE


endef
$(foreach v,$(GIVEN),$(if $(findstring $(NEW_LINE),$($(v))),$(error $(v)= has more than one line)))
quest = $(QUEST) $(call of_make,$(1))
of_make = --of-make $(1) $(call settings,$(sort $(GIVEN) BUILD WORK RESULTS))
settings = $(foreach v,$(1),$(call quoted,$(v)=$($(v))))

# A setting that no goal takes, or with a value that cannot be, is refused before anything is done; 9 is 09-epoll from here on.
# A make that this one has started is given more than a reader may give.
ifneq ($(if $(filter-out 0,$(MAKELEVEL)),$(INSIDE)),$(CURDIR))
export INSIDE := $(CURDIR)
ifneq ($(and $(GIVEN),$(PYTHON)),)
ifeq ($(shell command -v $(firstword $(PYTHON))),)
$(error PYTHON=$(PYTHON): there is no such program)
endif
CHECKED := $(shell $(PYTHON) -E -X utf8 -m quest settings $(call quoted,GOALS=$(MAKECMDGOALS)) $(call settings,$(GIVEN)) 2>&1)
ifneq ($(firstword $(CHECKED)),ok)
$(error $(or $(CHECKED),PYTHON=$(PYTHON): it is no Python that runs quest))
endif
$(foreach word,$(filter-out ok,$(CHECKED)),$(eval override $(word)))
endif
endif

PANDOC := $(shell command -v pandoc)
# What differs between systems and processors is chosen by file in module.mk; `make cross` sets both.
SYSTEM    := $(shell uname -s)
PROCESSOR := $(shell uname -m)

# ---- programs and their variants ------------------------------------------------------------------------------------

CPPFLAGS := -Icode/common -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes $(WERROR)
CFLAGS   := -std=c11 -O2 -g -fstack-protector-strong

# Where a mistake in C gets past us, it is to end in a crash and not in somebody else's hands. Every libc here has what the
# stack protector needs. Functions that check the room they are given against what the compiler knows of it are glibc's alone
# (feature_test_macros(7)), and the sanitizers see more than those.
FORTIFY_LEVEL := $(or $(filter 2 3,$(shell echo __USE_FORTIFY_LEVEL | \
	$(CC) -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -include stdio.h -E -P - 2>/dev/null | tail -n 1)),2)
FORTIFY       := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$(FORTIFY_LEVEL)
$(foreach v,glibc static static-pie libkqueue,$(eval CPPFLAGS_$(v) := $(FORTIFY)))

# The dynamic linker looks all names up at the start and makes the tables of their addresses read-only; a static program has
# no such tables. Not in programs whose subject is what lazy binding costs. The linker of macOS has no -z.
BOUND_LAZILY :=
binding = $(if $(filter-out Darwin,$(SYSTEM)),-z relro -z $(if $(filter $(1),$(BOUND_LAZILY)),lazy,now) -z noexecstack)

# A variant is a folder of build/, a compiler with its flags, and what the linker is told beside.
VARIANTS := glibc static static-pie diet musl asan tsan
# Of 10-kqueue alone: `make libkqueue`.
VARIANTS += libkqueue

# glibc's linker warns of getaddrinfo in static programs, dietlibc's of printf's size. Both are meant here.
LD_QUIET := $(shell ld --help 2>/dev/null | grep -q -e --no-warnings && echo -Wl,--no-warnings)

dir_glibc      := $(BUILD)/bin
cc_glibc       := $(CC)
ld_glibc        = $(binding)
dir_static     := $(BUILD)/static
cc_static      := $(CC)
ld_static      := -static $(LD_QUIET)
dir_static-pie := $(BUILD)/static-pie
cc_static-pie  := $(CC) -fPIE
ld_static-pie  := -static-pie $(LD_QUIET)
dir_diet       := $(BUILD)/diet
cc_diet        := diet $(CC)
ld_diet        := $(LD_QUIET)
dir_musl       := $(BUILD)/musl
cc_musl        := musl-gcc
ld_musl        := -static
dir_asan       := $(BUILD)/asan
cc_asan        := $(CC) -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
dir_tsan       := $(BUILD)/tsan
cc_tsan        := $(CC) -fsanitize=thread
dir_libkqueue  := $(BUILD)/libkqueue
cc_libkqueue   := $(CC) $(shell pkg-config --cflags libkqueue 2>/dev/null)
ld_libkqueue    = $(binding) -Wl,--no-as-needed $(shell pkg-config --libs libkqueue 2>/dev/null)

# A compiler that is not here takes its variant away; `make doctor` says which and how to get it.
VARIANTS_MISSING := $(if $(shell command -v diet),,diet) $(if $(shell command -v musl-gcc),,musl) \
                    $(if $(shell pkg-config --exists libkqueue 2>/dev/null && echo yes),,libkqueue)
VARIANTS_HERE    := $(filter-out $(VARIANTS_MISSING),$(VARIANTS))

PROGRAMS :=
PORTABLE :=
PORTABLE_SRC :=
include $(wildcard */module.mk) code/cross.mk

# Headers of libraries that not everybody has: 13-uring_NEEDS := liburing.h. Where one is missing the program is not built;
# packages.tsv says what brings it, and doctor, harness and tests say so. 14-owfat_CPPFLAGS := -idirafter ... names a folder.
HEADER_FOLDERS  := $(strip $(foreach p,$(PROGRAMS),$($(p)_CPPFLAGS)))
HEADERS_NEEDED  := $(sort $(foreach p,$(PROGRAMS),$($(p)_NEEDS)))
# Mostly all are here, and that is asked once: each make begins with it.
HEADERS_MISSING := $(shell $(CC) -E $(HEADER_FOLDERS) -x c $(addprefix -include ,$(HEADERS_NEEDED)) /dev/null > /dev/null 2>&1 || \
	for h in $(HEADERS_NEEDED); do $(CC) -E $(HEADER_FOLDERS) -x c -include $$h /dev/null > /dev/null 2>&1 || echo $$h; done)

# ... and its headers are not compiled by `make lint`.
FOLDERS_LEFT_OUT := $(foreach p,$(PROGRAMS),$(if $(filter $(HEADERS_MISSING),$($(p)_NEEDS)),code/$(p)/%))

# $(call variants_of,program): those it declares (or all) that can be built here.
variants_of = $(if $(filter $(HEADERS_MISSING),$($(1)_NEEDS)),,$(filter $(VARIANTS_HERE),$(or $($(1)_VARIANTS),$(VARIANTS))))
# $(call programs_in,variant): the paths of all programs built in it.
programs_in = $(foreach p,$(PROGRAMS),$(if $(filter $(1),$(call variants_of,$(p))),$(dir_$(1))/$(p)))

# An output appears whole, under the name of the shell's process until then: two makes may work in one build/. Neither deletes
# what the other has made (.PRECIOUS), even when it is stopped.
part = $(@:.o=.$(1)).$$$$.part

# Where the disk is full, a compiler says so in one of many lines, or says something else.
no_room = { [ "$$$$(df -Pk $(BUILD) | awk 'END {print $$$$4}')" -ge 256 ] || echo 'no space left for $(BUILD): df $(BUILD)' >&2; exit 1; }

# One set of objects a variant: code/common/net.c -> build/obj/diet/code/common/net.o
define variant_rules
.PRECIOUS: $(BUILD)/obj/$(1)/%.o
$(BUILD)/obj/$(1)/%.o: %.c Makefile
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)
	$$(Q)$$(cc_$(1)) $$(CPPFLAGS) $$(CPPFLAGS_$(1)) $$(CFLAGS) $$(WARNINGS) -MMD -MP -MF $$(call part,d) -MT $$@ -c -o $$(call part,o) $$< \
		&& mv -f $$(call part,d) $$(@:.o=.d) && mv -f $$(call part,o) $$@ || $(no_room)
endef
$(foreach v,$(VARIANTS_HERE),$(eval $(call variant_rules,$(v))))

define program_rule
.PRECIOUS: $(dir_$(2))/$(1)
$(dir_$(2))/$(1): $(patsubst %.c,$(BUILD)/obj/$(2)/%.o,$($(1)_SRC) $(or $($(1)_SRC_$(2)),$($(1)_SRC_any)))
	@mkdir -p $$(@D)
	$$(call say,LINK,$$@)
	$$(Q)$$(cc_$(2)) $$(CFLAGS) $$(LDFLAGS) $(call ld_$(2),$(1)) -o $$(call part) $$^ $$($(1)_LIBS) && mv -f $$(call part) $$@ || $(no_room)
endef
$(foreach p,$(PROGRAMS),$(foreach v,$(call variants_of,$(p)),$(eval $(call program_rule,$(p),$(v)))))

# ---- the reader's path ----------------------------------------------------------------------------------------------

JOBS := $(shell nproc 2>/dev/null || echo 1)
# Of a make of ours: `make -j8` has told all of them how many.
parallel = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(JOBS))

.PHONY: all everything readme deps doctor peers servers variants bench-programs run diff amalgamate lint help clean distclean

# What is missing is looked for when make starts, so the tools come first and the rest is a make of its own.
all:
	$(Q)sh setup/deps.sh build measure book slides test
	$(Q)$(MAKE) --no-print-directory everything

# What the next minutes are for.
stage = @echo "== $(1) of 4: $(2)"

everything:
	$(call stage,1,build: servers and micro-benchmarks$(comma) with each C library there is)
	$(Q)$(MAKE) --no-print-directory $(parallel) variants
	$(call stage,2,measure: what the talk$(comma) the book's first half and most claims rest on (2 to 3 minutes))
	$(Q)$(MAKE) --no-print-directory headline
	$(call stage,3,draw: your numbers$(comma) and the reference run's where you have none)
	$(Q)$(MAKE) --no-print-directory export
	$(Q)$(MAKE) --no-print-directory $(parallel) figures
	$(call stage,4,write: book and slides around them)
	$(Q)$(MAKE) --no-print-directory $(parallel) book epub slides
	$(Q)$(MAKE) --no-print-directory verdict

deps:
	$(Q)sh setup/deps.sh build measure book slides test

doctor:
	$(Q)$(if $(PYTHON),$(call quest,doctor),DEPS=skip sh setup/deps.sh)

peers:
	$(Q)sh setup/deps.sh peers

servers: $(call programs_in,glibc)

MEASURED_VARIANTS := glibc static static-pie diet musl
variants: $(foreach v,$(filter $(VARIANTS_HERE),$(MEASURED_VARIANTS)),$(call programs_in,$(v)))

# Ends make if one of these paths is that of no program: a mistyped command of an experiment.
all_known = $(foreach p,$(firstword $(filter-out $(PROGRAMS) $(notdir $(RUNTIMES)),$(notdir $(1)))),$(error $(p), which an experiment starts, is no program of a module.mk))

# For make bench: only what the experiments start (WANTED). What cannot be built here, the harness says.
bench-programs: $(if $(ONLY),$(filter $(RUNTIMES) $(foreach v,$(VARIANTS_HERE),$(call programs_in,$(v))),$(WANTED)),variants)
	$(call all_known,$(WANTED))@:

# ---- what Python does alone ------------------------------------------------------------------------------------------

# Each goal of the table that no makefile has a rule for.
OF_PYTHON := $(shell awk -F'[":]' 'FILENAME == "$(TABLE)" {if ($$1 ~ /^ *Goal.$$/) goals[$$2]; next} \
	/^[a-z][a-z -]*:([^=]|$$)/ {n = split($$1, names, " "); for (i = 1; i <= n; i++) delete goals[names[i]]} \
	END {for (goal in goals) print goal}' $(TABLE) Makefile $(wildcard */*.mk))
.PHONY: $(OF_PYTHON)
$(OF_PYTHON):
	$(Q)exec $(call quest,$@)

# What each object was made of: a thousand files, which a goal of Python alone does not wait for.
ifneq ($(filter-out $(OF_PYTHON),$(or $(MAKECMDGOALS),all)),)
-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
endif

# ---- one server: see its lesson, have it in one file --------------------------------------------------------------------

RUNNABLE := 00-client constant $(SERVERS)
# $(call program,NAME,example): the value of that setting, which is a program's name by now.
program = $(or $(filter $($(1)),$(RUNNABLE)),$(error $(1)=$($(1)) $(if $($(1)),is no program of the series,is missing: make $@ $(2))))

# The first source of a program is its own. diff's status 141: its reader has seen enough (make diff | head).
without_marks = sed -E '/^ *\/\* (end)?(region|solution): /d' $(firstword $($(1)_SRC)) > $(BUILD)/diff/$(1).c
diff: from = $(call program,FROM,FROM=07 TO=09)
diff: to = $(call program,TO,FROM=07 TO=09)
diff:
	$(Q)mkdir -p $(BUILD)/diff
	$(Q)$(call without_marks,$(from))
	$(Q)$(call without_marks,$(to))
	$(Q)diff -u --label $(from)/$(notdir $(firstword $($(from)_SRC))) --label $(to)/$(notdir $(firstword $($(to)_SRC))) \
		$(BUILD)/diff/$(from).c $(BUILD)/diff/$(to).c || case $$? in (1|141) ;; (*) exit 2;; esac

amalgamate:
	$(Q)mkdir -p $(BUILD)/single
	$(Q)$(PYTHON) -m quest.book.amalgamate $(call program,CH,CH=02) $($(CH)_SRC) $($(CH)_SRC_any) > $(BUILD)/single/$(CH).part && \
		mv -f $(BUILD)/single/$(CH).part $(BUILD)/single/$(CH).c || { rm -f $(BUILD)/single/$(CH).part; exit 1; }
	@echo $(BUILD)/single/$(CH).c

# ---- a server, call by call: benchmarks/recordings ---------------------------------------------------------------------

# Of a program for it each function is on its stack, and each call of a function of libc is one.
TRACED_CFLAGS := $(CFLAGS) -fno-optimize-sibling-calls -U_FORTIFY_SOURCE
buildable      = $(filter $(addprefix $(BUILD)/bin/,$(1)),$(call programs_in,glibc))
build_traced   = $(MAKE) --no-print-directory -s $(parallel) BUILD=$(BUILD)/traced CFLAGS=$(call quoted,$(TRACED_CFLAGS)) \
	$(patsubst $(BUILD)/bin/%,$(BUILD)/traced/bin/%,$(call buildable,$(1))) && \
	$(MAKE) --no-print-directory -s $(call buildable,museum constant)
# What a student has written takes the place of the file of that name. The shell looks for it: WORK may be a path with a blank.
traced_src     = $(foreach s,$($(LAB)_SRC),$(if $(filter code/$(LAB)/%,$(s)),"$$(yours=$(call quoted,$(WORK)/$(LAB)/$(notdir $(s))); [ -e "$$yours" ] || yours=$(s); printf %s "$$yours")",$(s))) $($(LAB)_SRC_any)
build_lab      = mkdir -p $(BUILD)/traced/work && $(cc_glibc) $(CPPFLAGS) $($(LAB)_CPPFLAGS) $(TRACED_CFLAGS) -o $(BUILD)/traced/work/$(LAB) $(traced_src) $($(LAB)_LIBS)
TRACED := $(if $(LAB),$(LAB),$(or $(CH),$(filter-out 00-client 02-inetd 05b-nonblocking,$(SERVERS))))

.PHONY: trace recordings
trace recordings:
	$(if $(LAB)$(filter recordings,$@),,$(if $(CH),,$(error make trace: which server? CH=02-fork; or LAB=02-fork, yours beside ours)))$(Q)+$(call build_traced,$(TRACED))
	$(if $(LAB),$(Q)[ -d $(call quoted,$(WORK)/$(LAB)) ] || { printf 'make trace: %s is not there yet: make lab CH=$(LAB)\n' $(call quoted,$(WORK)/$(LAB)) >&2; exit 2; })
	$(if $(LAB),$(Q)$(build_lab))
	$(Q)$(call quest,$@)

# ---- what keeps the tree in order --------------------------------------------------------------------------------------

# $(call lint,TOOL,command): runs it, or says that TOOL is missing; LINT=strict (CI) makes that an error.
lint = $(Q)if command -v $(1) > /dev/null; then echo "  LINT     $(1)"; $(2); else echo "  SKIP     $(1) is not installed"; test "$(LINT)" != strict; fi
C_SOURCES      := $(wildcard quest/*/*.c code/*/*.[ch] code/*/appendix/*.[ch] code/*/linux/*.[ch] code/*/linux/sys/*.h benchmarks/*/*.[ch] labs/*/*.[ch] tests/*/*.[ch])
SHELL_SOURCES  := $(wildcard setup/*.sh figures/*.sh .ci/* tests/*/*.sh tests/fresh-machine/run)
PYTHON_SOURCES := quest labs setup tests
# The tests of the labs are no package: their folders have the names of servers.
TYPED := "-p quest" "-p setup" "-p tests" $(wildcard labs/*/*.py)
mypy = printf '%s\n' $(TYPED) | xargs -L 1 -P $(JOBS) mypy --no-error-summary --python-executable $(PYTHON)

# WERROR=-Werror says that all in $(BUILD) was compiled so, and is not to be compiled once more (CI).
lint:
	$(Q)$(MAKE) --no-print-directory $(parallel) WERROR=-Werror BUILD=$(BUILD)$(if $(WERROR),,/lint) $(foreach v,glibc diet musl asan tsan,$(if $(filter $(v),$(VARIANTS_HERE)),lint-$(v)))
	@echo "  LINT     headers"
	$(Q)for h in $(filter-out $(FOLDERS_LEFT_OUT),$(wildcard code/*/*.h benchmarks/*/*.h)); do \
		$(CC) -fsyntax-only -x c $(CPPFLAGS) $(HEADER_FOLDERS) -std=c11 $(WARNINGS) -Werror $$h || exit 1; done
	$(Q)$(PYTHON) -m quest.book.code_lint
	$(call lint,clang-format,clang-format --dry-run -Werror $(C_SOURCES))
	$(call lint,shellcheck,shellcheck $(SHELL_SOURCES))
	$(call lint,ruff,ruff check --quiet $(PYTHON_SOURCES))
	$(call lint,mypy,$(mypy))
	$(call all_known,$(if $(PYTHON),$(foreach o,ONLY= ONLY=since,$(shell $(PYTHON) -E -m quest programs $(o))),$(QUEST)))$(Q)$(call quest,check-data)
	$(Q)$(call quest,check-lines)
	$(Q)$(call quest,check-recordings)
	$(Q)$(PYTHON) -m quest.report.fields --check
	$(Q)$(PYTHON) -m quest.book.readme --check
	$(Q)$(MAKE) --no-print-directory lint-book schedule
	$(call lint,hunspell,$(MAKE) --no-print-directory spelling)

.PHONY: $(addprefix lint-,$(VARIANTS))
$(foreach v,$(VARIANTS),$(eval lint-$(v): $(call programs_in,$(v))))

readme: servers
	$(Q)$(QUEST) write-goals
	$(Q)$(PYTHON) -m quest.report.fields
	$(Q)$(PYTHON) -m quest.labs.fields
	$(Q)$(PYTHON) -m quest.book.readme

# What was included is not to be made.
$(MAKEFILE_LIST) $(MAKEFILES): ;

# A folder is no goal, and make would call it up to date: `make tests`.
NO_GOALS := benchmarks build code quest setup tests work
.PHONY: $(NO_GOALS)
$(NO_GOALS):
	$(Q)$(if $(PYTHON),$(QUEST) $@,echo "make: there is no goal $@: make help" >&2; exit 2)

# A goal that there is not. Make asks here for a file that nothing makes, too, and with -B for each that there is.
.DEFAULT:
	$(Q)[ -e $(call quoted,$@) ] || $(QUEST) $(call quoted,$@)

# What took long stays: what was measured (results, reference, race), and what was fetched (node, zig, and the images of vm).
KEPT := results reference race node zig vm
clean:
	$(Q)if [ -d $(BUILD) ]; then find $(BUILD) -mindepth 1 -maxdepth 1 $(KEPT:%=! -name %) -exec rm -rf {} +; fi

distclean:
	$(Q)rm -rf $(BUILD)
