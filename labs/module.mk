# The labs (labs/README.md): labs/NN-slug beside the server code/NN-slug. A student works in work/NN-slug.

LABS := $(patsubst labs/%/lab.toml,%,$(wildcard labs/*/lab.toml))
WORK ?= work
# Labs in which one predicts, measures and concludes: nothing of them is built, and nothing runs that was handed in.
MEASURED := $(patsubst labs/%/measure.toml,%,$(wildcard labs/*/measure.toml))

# What a server in work/ is linked with: the objects of the real one but for those the student writes (the grader leaves them out).
lab_objects = $(if $(filter $(CH),$(LABS)),$(patsubst %.c,$(BUILD)/obj/glibc/%.o,$($(CH)_SRC) $(or $($(CH)_SRC_glibc),$($(CH)_SRC_any))))

lab_settings = $(foreach s,CH WORK DIR JSON LOGS ONLY PATIENCE PROCESSES N SURE SEED,$(if $($(s)),$(call quoted,$(s)=$($(s)))))
MEASURING = PYTHONPATH=benchmarks:labs $(PYTHON) -B -m measuring
GRADER = $(if $(filter $(CH),$(MEASURED)),$(MEASURING),$(JUDGE))
JUDGE  = LAB_BUILD=$(call quoted,$(BUILD)) LAB_CC=$(call quoted,$(cc_glibc)) LAB_FLAGS=$(call quoted,$(CPPFLAGS) $($(CH)_CPPFLAGS) $(CFLAGS) $(WARNINGS)) \
	LAB_OBJECTS=$(call quoted,$(lab_objects)) LAB_LIBS=$(call quoted,$($(CH)_LIBS)) $(PYTHON) -I -B labs/grader/__main__.py

# Two makes at once would give each other objects that are half written.
build_lab_objects = $(if $(filter $(CH),$(MEASURED)),$(MAKE) --no-print-directory -s $(BUILD)/bin/01-iterative $(BUILD)/bin/hammer || exit 2,$(lab_objects_once))
lab_objects_once = mkdir -p $(BUILD)/labs && flock $(BUILD)/labs/.lock $(MAKE) --no-print-directory -j$(JOBS) lab-objects || exit 2

.PHONY: lab labs hint solution grade grade-all lab-objects

lab-objects: $(lab_objects)
	@:

lab: ## a lab's starter in work/02-fork: CH=02-fork; without CH: which labs there are
	$(Q)$(GRADER) lab $(lab_settings)
	$(if $(CH),,$(Q)$(MEASURING) list $(lab_settings))

labs: ## the labs there are
	$(Q)$(JUDGE) lab
	$(Q)$(MEASURING) list

hint: ## the next hint of a lab, or the third: CH=02-fork [N=3]
	$(Q)$(GRADER) hint $(lab_settings)

solution: ## what separates your server from ours: CH=02-fork
	$(Q)$(GRADER) solution $(lab_settings)

grade: ## points for what was handed in: CH=02-fork [DIR=folder] [JSON=results.json] [LOGS=folder] [ONLY=id,id]
	$(Q)$(build_lab_objects)
	$(Q)$(GRADER) grade $(lab_settings)

grade-all: ## a class: a folder for each in DIR, a line for each in CSV; goes on where it was ended: CH=02-fork DIR=submissions [CSV=grades.csv] [JOBS=2]
	$(Q)$(build_lab_objects)
	$(Q)$(GRADER) grade-all $(lab_settings) $(if $(CSV),$(call quoted,CSV=$(CSV))) JOBS=$(or $(JOBS),2)

# Without CH it is the check of all servers in all variants: tests/module.mk.
ifneq ($(CH),)
check:
	$(Q)$(build_lab_objects)
	$(Q)$(GRADER) check $(lab_settings)
endif
