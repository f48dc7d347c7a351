# Measuring: the programs that measure (benchmarks/*/module.mk) and quest/measure, which runs them.

include $(wildcard benchmarks/*/module.mk)

# The flags are recorded with every result: those of the servers.
SERVER_FLAGS := $(CFLAGS) $(CPPFLAGS_glibc) $(call ld_glibc,server)
# Flags of the compiler go into the record: measuring goals are told them.
measuring = QUEST_CFLAGS=$(call quoted,$(SERVER_FLAGS)) $(call quest,$(1))

cflags: # for python3 -m quest bench, without make
	@printf '%s\n' $(call quoted,$(SERVER_FLAGS))

.PHONY: cflags bench reference headline export verdict register frozen

# What experiments start is built first, and no more.
wanted = wanted="$$($(QUEST) programs $(call quoted,ONLY=$(ONLY)))" && $(MAKE) --no-print-directory $(parallel) bench-programs WANTED="$$(echo $$wanted)"
bench:
	$(Q)$(if $(ONLY),$(wanted),$(MAKE) --no-print-directory $(parallel) bench-programs)
	$(Q)$(call measuring,bench)

reference:
	$(Q)+$(wanted)
	$(Q)$(call measuring,reference)

# Status 1 means that something failed and is recorded: book and deck are still written, and `verdict`, which comes last, says
# it again and ends with 1.
headline:
ifneq ($(RESULTS),reference)
	$(Q)$(call measuring,headline) || test $$? -eq 1
endif

# The judge: what is registered before the data, and whether those that were frozen still say what they said.
register frozen:
	$(Q)exec $(call quest,$@)

export:
	$(if $(wildcard $(BUILD)/data/numbers.json),,@echo 'numbers for figures and book: about half a minute')
	$(Q)$(call quest,export)

verdict: export
	$(Q)$(call quest,verdict)
