# The labs (labs/README.md): labs/NN-slug beside the server code/NN-slug. A student works in work/NN-slug.

LABS := $(patsubst labs/%/lab.toml,%,$(wildcard labs/*/lab.toml))
WORK ?= work
# Labs in which one predicts, measures and concludes: nothing of them is built, and nothing runs that was handed in.
MEASURED := $(patsubst labs/%/measure.toml,%,$(wildcard labs/*/measure.toml))

# What a server in work/ is linked with: the objects of the real one but for those the student writes (the grader leaves them out).
lab_objects = $(if $(filter $(CH),$(LABS)),$(patsubst %.c,$(BUILD)/obj/glibc/%.o,$($(CH)_SRC) $(or $($(CH)_SRC_glibc),$($(CH)_SRC_any))))

LAB_TOLD = LAB_BUILD=$(call quoted,$(BUILD)) LAB_CC=$(call quoted,$(cc_glibc)) LAB_FLAGS=$(call quoted,$(CPPFLAGS) $($(CH)_CPPFLAGS) $(CFLAGS) $(WARNINGS)) \
	LAB_OBJECTS=$(call quoted,$(lab_objects)) LAB_LIBS=$(call quoted,$($(CH)_LIBS))
# With nothing of the user's own packages: what they bring would have a part in the points. What measures may need them (SciPy).
grader = $(LAB_TOLD) $(if $(filter $(CH),$(MEASURED)),$(QUEST),$(PYTHON) -E -s -m quest) $(call of_make,$(1))

# Two makes at once would give each other objects that are half written.
# A line with it begins with +: make does not see $(MAKE) inside of a variable, and would keep its job server from that line.
build_lab_objects = $(if $(filter $(CH),$(MEASURED)),$(MAKE) --no-print-directory -s $(BUILD)/bin/01-iterative $(BUILD)/bin/hammer || exit 2,$(lab_objects_once))
lab_objects_once = $(if $(findstring n,$(flags)),,mkdir -p $(BUILD)/labs && flock $(BUILD)/labs/.lock) $(MAKE) --no-print-directory $(parallel) lab-objects CH=$(CH) || exit 2

.PHONY: grade grade-all lab-objects autograder handout

lab-objects: $(lab_objects)
	@:

grade grade-all autograder:
	$(Q)+$(build_lab_objects)
	$(Q)$(call grader,$@)

handout:
	$(Q)$(call grader,handout)

# Without CH it is the check of all servers in all variants: tests/module.mk.
ifneq ($(CH),)
check:
	$(Q)+$(build_lab_objects)
	$(Q)$(call grader,check)
endif

# Ours that one's own server races against, and hammer, are built first.
.PHONY: race
race:
	$(Q)wanted="$$($(call quest,racers))" && $(MAKE) --no-print-directory $(parallel) bench-programs ONLY=race WANTED="$$(echo $$wanted)"
	$(Q)$(call measuring,race)
