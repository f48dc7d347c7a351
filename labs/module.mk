# The labs (labs/README.md): labs/NN-slug beside the server code/NN-slug. A student works in work/NN-slug.

LABS := $(patsubst labs/%/lab.toml,%,$(wildcard labs/*/lab.toml))
WORK ?= work
# Labs in which one predicts, measures and concludes: nothing of them is built, and nothing runs that was handed in.
MEASURED := $(patsubst labs/%/measure.toml,%,$(wildcard labs/*/measure.toml))

# What a server in work/ is linked with: the objects of the real one but for those the student writes (the grader leaves them out).
lab_objects = $(if $(filter $(CH),$(LABS)),$(patsubst %.c,$(BUILD)/obj/glibc/%.o,$($(CH)_SRC) $(or $($(CH)_SRC_glibc),$($(CH)_SRC_any))))

lab_settings = $(foreach s,CH WORK DIR JSON LOGS ONLY PATIENCE PROCESSES N SURE SEED SANDBOX,$(if $($(s)),$(call quoted,$(s)=$($(s)))))
# What measures may need packages that only this user has (SciPy).
MEASURING = $(LAB_TOLD) $(PYTHON) -m quest.labs
GRADER = $(if $(filter $(CH),$(MEASURED)),$(MEASURING),$(JUDGE))
LAB_TOLD = LAB_BUILD=$(call quoted,$(BUILD)) LAB_CC=$(call quoted,$(cc_glibc)) LAB_FLAGS=$(call quoted,$(CPPFLAGS) $($(CH)_CPPFLAGS) $(CFLAGS) $(WARNINGS)) \
	LAB_OBJECTS=$(call quoted,$(lab_objects)) LAB_LIBS=$(call quoted,$($(CH)_LIBS))
JUDGE  = $(LAB_TOLD) $(PYTHON) -E -s -m quest.labs

# Two makes at once would give each other objects that are half written.
build_lab_objects = $(if $(filter $(CH),$(MEASURED)),$(MAKE) --no-print-directory -s $(BUILD)/bin/01-iterative $(BUILD)/bin/hammer || exit 2,$(lab_objects_once))
lab_objects_once = $(if $(findstring n,$(flags)),,mkdir -p $(BUILD)/labs && flock $(BUILD)/labs/.lock) $(MAKE) --no-print-directory $(parallel) lab-objects CH=$(CH) || exit 2

teacher_settings = $(foreach s,CH HINTS RUNS SANDBOX,$(if $($(s)),$(call quoted,$(s)=$($(s)))))
# A class's table has a name, wherever it was not given one.
grade-all: CSV := $(or $(CSV),$(if $(DIR),$(DIR).csv))

.PHONY: lab labs hint solution grade grade-all lab-objects reset autograder handout merge

lab-objects: $(lab_objects)
	@:

lab: ## a lab's starter in work/02-fork: CH=02-fork; without CH: which labs there are
	$(Q)$(GRADER) lab $(lab_settings)

labs: ## the labs there are
	$(Q)$(JUDGE) lab

hint: ## the next hint of a lab, or the third: CH=02-fork [N=3]
	$(Q)$(GRADER) hint $(lab_settings)

solution: ## what separates your server from ours: CH=02-fork
	$(Q)$(GRADER) solution $(lab_settings)

grade: ## points for what was handed in: CH=02-fork [DIR=folder] [JSON=results.json] [LOGS=folder] [ONLY=id,id]
	$(Q)$(build_lab_objects)
	$(Q)$(GRADER) grade $(lab_settings)

grade-all: ## a class: a folder for each in DIR, a line for each in CSV; goes on where it was ended: CH=02-fork DIR=submissions [CSV=grades.csv] [JSON=file] [JOBS=2]
	$(Q)$(build_lab_objects)
	$(Q)$(GRADER) grade-all $(lab_settings) $(if $(CSV),$(call quoted,CSV=$(CSV))) JOBS=$(or $(JOBS),2)

autograder: ## a lab for Gradescope, without its solution: CH=02-fork
	$(Q)$(build_lab_objects)
	$(Q)$(JUDGE) autograder $(teacher_settings)

handout: ## a lab to hand out, without its solution: CH=02-fork [HINTS=no]
	$(Q)$(JUDGE) handout $(teacher_settings)

merge: ## what the machines of a class have measured, a figure an experiment: RUNS="folder folder ..."
	$(Q)$(MEASURING) merge $(teacher_settings)

# A student's folder is moved away and begun anew; what was reached, and which hints were taken, stays.
mine = $(call quoted,$(WORK)/$(CH))
reset: ## begin a lab anew; what you wrote is kept beside it: CH=02-fork
	$(Q)test -n "$(CH)" || { echo "lab: which lab? CH=02-fork; make labs lists them" >&2; exit 2; }
	$(Q)test -d $(mine) || { echo "lab:" $(mine) "is not there yet: make lab CH=$(CH)" >&2; exit 2; }
	$(Q)n=1; while test -e $(mine).old$$n; do n=$$((n + 1)); done; mv $(mine) $(mine).old$$n && \
		echo $(mine) "is now" $(mine).old$$n && $(GRADER) lab $(lab_settings) && \
		if test -f $(mine).old$$n/.progress.json; then cp $(mine).old$$n/.progress.json $(mine)/; fi

# Without CH it is the check of all servers in all variants: tests/module.mk.
ifneq ($(CH),)
check:
	$(Q)$(build_lab_objects)
ifeq ($(WATCH),)
	$(Q)$(GRADER) check $(lab_settings)
else
	$(Q)while touch $(BUILD)/labs/.seen; do \
		$(GRADER) check $(lab_settings) || test $$? -ne 2 || exit 2; \
		echo; echo "Waiting for $(WORK)/$(CH) to change (Ctrl-C ends it)."; \
		until find $(mine) -maxdepth 1 -type f ! -name '.*' -newer $(BUILD)/labs/.seen | grep -q .; do sleep 0.5; done; done
endif
endif
