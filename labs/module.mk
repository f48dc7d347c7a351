# The labs (labs/README.md): labs/NN-slug beside the server code/NN-slug. A student works in work/NN-slug.

LABS := $(patsubst labs/%/lab.toml,%,$(wildcard labs/*/lab.toml))
WORK ?= work

# What a server in work/ is linked with: the objects of the real one but for those the student writes (the grader leaves them out).
lab_objects = $(if $(filter $(CH),$(LABS)),$(patsubst %.c,$(BUILD)/obj/glibc/%.o,$($(CH)_SRC) $(or $($(CH)_SRC_glibc),$($(CH)_SRC_any))))
GRADER = LAB_BUILD='$(BUILD)' LAB_CC='$(cc_glibc)' LAB_FLAGS='$(CPPFLAGS) $(CFLAGS) $(WARNINGS)' LAB_OBJECTS='$(lab_objects)' \
	PYTHONPATH=labs:tests $(PYTHON) -m grader

judge_how = $(if $(ONLY),--only '$(ONLY)') $(if $(PATIENCE),--patience '$(PATIENCE)') $(if $(PROCESSES),--processes '$(PROCESSES)')

.PHONY: lab hint solution grade

lab: ## a lab's starter in work/02-fork: CH=02-fork; without CH: which labs there are
	$(Q)$(GRADER) lab $(CH) --work '$(WORK)'

hint: ## the next hint of a lab, or the third: CH=02-fork [N=3]
	$(Q)$(GRADER) hint $(CH) --work '$(WORK)' $(if $(N),--number '$(N)')

solution: ## what separates your server from ours: CH=02-fork
	$(Q)$(GRADER) solution $(CH) --work '$(WORK)' $(if $(SURE),--sure)

grade: $(lab_objects) ## points for what was handed in: CH=02-fork [DIR=folder] [JSON=results.json] [ONLY=id,id]
	$(Q)$(GRADER) grade $(CH) --work '$(WORK)' $(if $(DIR),--dir '$(DIR)') $(if $(JSON),--json '$(JSON)') $(judge_how)

# Without CH it is the check of all servers in all variants: tests/module.mk.
ifneq ($(CH),)
check: $(lab_objects)
	$(Q)$(GRADER) check $(CH) --work '$(WORK)' $(judge_how)
endif
