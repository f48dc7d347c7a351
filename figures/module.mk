# Figures: a line of figures/plots.tsv or a gnuplot script each, called as its experiment is, or as what it shows of it; plots for slides
# (figures/stage.tsv); one script for all timelines; pictures drawn by hand. How to add one: figures/README.md.

GNUPLOT := $(shell command -v gnuplot)

FIGURES_DIR   := $(BUILD)/figures
FIGURE_PARTS  := $(addprefix figures/,style.gp curves.gp log-log.gp doublings.gp labels.gp decades.gp reference.gp then-curves.gp then-and-now.gp peers.gp draw.sh dark.css) \
                 $(wildcard figures/history/*.tsv)
# Words "slug:script:experiment": those of the table, those with the line `experiment = "..."` in a script of their own, and one for
# each step of a slide's plot.
in_table       = $(if $(wildcard figures/$(1).tsv),$(shell awk -F '\t' '/^[a-z0-9]/ { $(2) }' figures/$(1).tsv))
PLOTS         := $(call in_table,plots,print $$1 ":plot:" $$2) \
                 $(shell awk -F '"' 'FNR == 1 {n = split(FILENAME, part, "[/.]")} /^experiment = "/ {print part[n - 1] ":" part[n - 1] ":" $$2}' \
                 $(wildcard figures/*.gp) /dev/null)
STAGE         := $(call in_table,stage,n = split($$5, s, " "); for (i = 0; i <= n; i++) print "stage-" $$1 "-" i ":stage:" $$2)
TIMELINES     := $(foreach t,$(addprefix timeline-,$(filter-out 02-inetd 16-coroutines,$(SERVERS))),$(t):timeline:$(t))
DRAWN         := $(PLOTS) $(TIMELINES) $(STAGE)
DRAWN_NAMES   := $(foreach d,$(DRAWN),$(firstword $(subst :, ,$(d))))
# Three of four are a slide's: a page does not wait for those.
IN_PAGES      := $(foreach d,$(PLOTS) $(TIMELINES),$(firstword $(subst :, ,$(d))))
# Drawn by hand. A diagram gets the style sheet that all diagrams have.
DIAGRAMS      := $(patsubst figures/diagrams/%.svg,%,$(wildcard figures/diagrams/*.svg))
DRAWINGS      := $(filter-out readme,$(patsubst figures/%.svg,%,$(wildcard figures/*.svg)))
figure_svg     = $(1:%=$(FIGURES_DIR)/%.svg)
# What the last drawing of a figure left: a picture, or the reason why there is none. Either stays until its data change.
figure_left    = $(foreach f,$(call figure_svg,$(1)),$(or $(wildcard $(f)),$(wildcard $(f:.svg=.skipped)),$(f)))

.PHONY: figures figures-in-pages figures-always figures-without-gnuplot

# Changes when gnuplot comes or goes: what was skipped for want of it is drawn then.
$(FIGURES_DIR)/drawn-with: figures-always
	@mkdir -p $(@D)
	@echo '$(GNUPLOT)' | cmp -s - $@ || echo '$(GNUPLOT)' > $@

# The exporter leaves this file alone unless a table has changed: nothing is drawn twice.
$(BUILD)/data/%/meta.gp: export ; @:

# $(call plot_rule,slug,script,experiment)
define plot_rule
$(call figure_left,$(1)): figures/$(2).gp $(wildcard figures/$(2)s.tsv figures/$(2).tsv figures/$(2).awk) $(BUILD)/data/$(3)/meta.gp $(FIGURE_PARTS) $(FIGURES_DIR)/drawn-with
	@mkdir -p $$(@D)
	$$(call say,PLOT,$(call figure_svg,$(1)))
	$$(Q)sh figures/draw.sh $(1) figures/$(2).gp $(BUILD)/data $(call figure_svg,$(1))
endef
word_of = $(word $(1),$(subst :, ,$(2)))

ifneq ($(GNUPLOT),)
$(foreach d,$(DRAWN),$(eval $(call plot_rule,$(call word_of,1,$(d)),$(call word_of,2,$(d)),$(call word_of,3,$(d)))))
figures-in-pages: $(call figure_left,$(IN_PAGES))
figures: $(call figure_left,$(DRAWN_NAMES))
else
figures-in-pages: figures-without-gnuplot
endif

# In a page a picture loads nothing, so the style sheet is written into it, behind the line of the element <svg>.
$(call figure_svg,$(DIAGRAMS)): $(FIGURES_DIR)/%.svg: figures/diagrams/%.svg figures/diagrams/diagram.css
	@mkdir -p $(@D)
	$(Q)awk 'FNR == NR { css = css $$0 "\n"; next } !/^<\?xml-stylesheet/ { print } /^<svg / { printf "<style>\n%s</style>\n", css }' \
		figures/diagrams/diagram.css $< > $@.$$$$.part && mv -f $@.$$$$.part $@

$(call figure_svg,$(DRAWINGS)): $(FIGURES_DIR)/%.svg: figures/%.svg
	@mkdir -p $(@D)
	$(Q)cp $< $@

figures-in-pages: $(call figure_svg,$(DRAWINGS) $(DIAGRAMS))

# Pictures of slides that gnuplot cannot draw.
WALLS := $(if $(wildcard quest/book/pictures/__main__.py),$(FIGURES_DIR)/walls)
ifneq ($(WALLS),)
$(WALLS): $(BUILD)/data/numbers.json $(BUILD)/data/claims.json $(wildcard quest/book/pictures/*.py) $(FIGURES_DIR)/shown-of
	$(Q)$(PYTHON) -m quest.book.pictures $(BUILD)/data $(FIGURES_DIR) $(RESULTS)
	$(Q)touch $@
# Each is made with all: a slide is made again when its picture has changed.
$(call figure_left,$(shell sed -n 's/^    "\(wall-[a-z-]*\)": .*/\1/p' quest/book/pictures/__main__.py)): $(WALLS) ; @:
endif

# Whose results: a number of the reference run is marked, unless all are.
$(FIGURES_DIR)/shown-of: figures-always
	@mkdir -p $(@D)
	@echo '$(RESULTS)' | cmp -s - $@ || echo '$(RESULTS)' > $@

figures: figures-in-pages $(WALLS)

# What cannot be drawn leaves its reason where book and deck look for the figure.
figures-without-gnuplot: reason = gnuplot is not installed (apt-get install gnuplot-nox)
figures-without-gnuplot: names = $(DRAWN_NAMES)
figures-without-gnuplot: $(FIGURES_DIR)/drawn-with
figures-without-gnuplot:
	@mkdir -p $(FIGURES_DIR)
	@echo "SKIP $(words $(names)) figures: $(reason)"
	$(Q)for name in $(names); do left=$(FIGURES_DIR)/$$name; [ -e $$left.svg ] || \
		grep -qsxF '$(reason)' $$left.skipped || echo '$(reason)' > $$left.skipped; done
