# Measuring: the programs that measure (benchmarks/*/module.mk) and the harness that runs them.

include $(wildcard benchmarks/*/module.mk)

# The flags are recorded with every result: those of the servers.
SERVER_FLAGS := $(CFLAGS) $(CPPFLAGS_glibc) $(call ld_glibc,server)
HARNESS      := HARNESS_CFLAGS='$(SERVER_FLAGS)' $(PYTHON) -m quest.report

cflags: # for a harness that is run without make
	@echo '$(SERVER_FLAGS)'

.PHONY: cflags bench reference headline compare claims tables export verdict

bench: ## measure: PROFILE=smoke|quick|full (quick), ONLY=id,id (all), CH=01 (tell nothing of later chapters), AGAIN=1 (what is measured, too), CLIENT=user@host (the load from there, by ssh)
	$(Q)wanted="$$($(if $(ONLY),$(HARNESS) programs $(call quoted,$(ONLY)),:))" && \
		$(MAKE) --no-print-directory $(parallel) bench-programs WANTED="$$(echo $$wanted)"
	$(Q)$(HARNESS) bench --profile $(or $(PROFILE),quick) $(if $(ONLY),--only $(call quoted,$(ONLY))) $(if $(AGAIN),--again) $(if $(CH),--upto $(CH))
	$(if $(CH),$(Q)$(READER) measured $(call quoted,BUILD=$(BUILD)) CH=$(CH))

# Into a folder of its own, so that the committed run stays what it is until the new one is whole.
reference: ## the whole full profile as one run of this commit, into build/reference; goes on where it was ended: ONLY=id,id
	$(Q)wanted="$$($(HARNESS) programs $(call quoted,$(ONLY)))" && \
		$(MAKE) --no-print-directory $(parallel) bench-programs WANTED="$$(echo $$wanted)"
	$(Q)$(HARNESS) bench --whole --profile full --results $(BUILD)/reference $(if $(ONLY),--only $(call quoted,$(ONLY)))

# What `make` measures. Status 1 means that something failed and is recorded: book and deck are still
# written, and `verdict`, which comes last, says it again and ends with 1.
headline:
ifneq ($(RESULTS),reference)
	$(Q)$(HARNESS) bench --headline --profile $(HEADLINE_PROFILE) $(if $(ONLY),--only $(ONLY)) || test $$? -eq 1
endif

results_of = $(patsubst here,$(BUILD)/results,$(patsubst reference,benchmarks/results/reference,$($(1))))
compare: ## two result folders, old against new: A=DIR B=DIR, or the words reference and here; ONLY=id,id
	$(Q)$(HARNESS) compare $(or $(call results_of,A),$(error compare needs A= and B=, folders of results or the words reference and here)) \
		$(or $(call results_of,B),$(error compare needs B=, a folder of results or one of the words reference and here)) $(if $(ONLY),--only $(call quoted,$(ONLY)))

claims: ## the claim ledger: what was said then, what is seen here; ONLY=3,fork-latency
	$(Q)$(HARNESS) claims $(if $(ONLY),--only $(call quoted,$(ONLY)))

tables: ## the tables of 2003 to 2007 with today's values beside them: ONLY=id,id (all)
	$(Q)$(HARNESS) tables "$(ONLY)"

export: ## numbers for figures, book and deck: build/data
	$(if $(wildcard $(BUILD)/data/numbers.json),,@echo 'numbers for figures and book: about half a minute')
	$(Q)$(HARNESS) export --data $(BUILD)/data

verdict: export
	$(Q)$(HARNESS) claims --verdicts
