# The runtimes that have to be compiled (peers/runtimes), when an experiment asks for one (WANTED). Where the compiler is missing or too
# old nothing is made, and the harness says why.
RUNTIMES := $(BUILD)/runtimes/go $(BUILD)/runtimes/java/Server.class
# $(call compiled_by,compiler,command)
compiled_by = mkdir -p $(@D); ! command -v $(1) > /dev/null || { $(2); } || echo '  SKIP     $@: $(1) could not compile it'

$(BUILD)/runtimes/go: $(addprefix benchmarks/peers/runtimes/go/,server.go go.mod)
	$(call say,GO,$@)
	$(Q)$(call compiled_by,go,cd $(<D) && go build -o $(call quoted,$(abspath $@)) .)

$(BUILD)/runtimes/java/Server.class: benchmarks/peers/runtimes/java/Server.java
	$(call say,JAVAC,$@)
	$(Q)$(call compiled_by,javac,javac -d $(@D) $<)

# A helper of our own for a peer. libfcgi is not everywhere, and musl and dietlibc have none.
PROGRAMS += stat-helper
stat-helper_SRC      := benchmarks/peers/stat-helper.c code/common/open_below_walk.c $(MICRO_COMMON)
stat-helper_SRC_any   = $(OPEN_BELOW_any)
stat-helper_LIBS     := -lfcgi -pthread
stat-helper_VARIANTS := glibc asan
stat-helper_NEEDS    := fcgiapp.h
