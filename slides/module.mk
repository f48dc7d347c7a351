# The deck: one HTML file with everything in it. reveal.js is pinned (make deps puts it into build/node): 6.x moved its
# plug-ins, and a deck that does not find one is a blank page. TRACK=talk45 keeps the slides of that track (slides/tracks.toml),
# in whatever is made of them: deck, schedule, PDF.

REVEAL_VERSION := 5.2.1
REVEAL       := $(BUILD)/node/node_modules/reveal.js
REVEAL_FILES := $(addprefix $(REVEAL)/,dist/reset.css dist/reveal.css dist/reveal.js plugin/notes/notes.js \
                plugin/search/search.js plugin/zoom/zoom.js)

SLIDES       := $(BUILD)/slides
SLIDE_PARTS  := $(sort $(wildcard slides/[0-9]*.md))
SLIDE_WOVEN  := $(SLIDE_PARTS:slides/%.md=$(WEAVE)/slides/%.json)
DECK         := $(SLIDES)/deck$(if $(TRACK),-$(TRACK)).html
SLIDE_STYLE  := $(PANDOC_DIR)/code.css $(addprefix slides/,theme.css print.css deck.js)

DECK_PDF     := $(addprefix $(PDF)/,$(notdir $(DECK:.html=.pdf) $(DECK:.html=-notes.pdf)))

.PHONY: slides schedule present

ifeq ($(PANDOC),)
SLIDES_SKIP := pandoc is not installed (apt-get install pandoc)
else ifeq ($(SLIDE_PARTS),)
SLIDES_SKIP := slides/ holds no slide yet
else
SLIDES_ALL  := $(DECK)
PDF_ALL     += $(DECK_PDF)
endif

slides: $(SLIDES_ALL) ## the slides: build/slides/deck.html; TRACK=talk45|lecture90|course
	@$(if $(SLIDES_SKIP),echo "SKIP slides: $(SLIDES_SKIP)",:)

schedule: ## minutes of every section and track of the deck; TRACK=talk45: its slides, and when each begins
	$(Q)$(PYTHON) slides/schedule.py . $(TRACK)

# A deck that is there is taken as it is: nothing is made anew, and can fail, on stage. 8080 stays free for the demos.
present: ## show the deck: build/ on 127.0.0.1:8000, served by 02-fork; TRACK=talk45, PORT=8001
	$(Q)[ -e $(DECK) ] || $(MAKE) --no-print-directory slides
	$(Q)$(MAKE) --no-print-directory -s $(BUILD)/bin/02-fork
	$(Q)exec $(PYTHON) slides/present.py $(BUILD)/bin/02-fork $(BUILD) $(DECK) $(or $(PORT),8000)

ifeq ($(CHROMIUM),)
PDF_SKIP := Chromium is not installed (apt-get install chromium)
PDF_ALL  :=
else ifeq ($(PANDOC),)
PDF_SKIP := $(SLIDES_SKIP)
endif

pdf: $(PDF_ALL) ## on paper: build/pdf/book.pdf, deck.pdf, deck-notes.pdf; TRACK=talk45
	@$(if $(PDF_SKIP),echo "SKIP pdf: $(PDF_SKIP)",:)

# Where reveal.js is missing, the rule of the deck has said so.
$(DECK_PDF): query = ?view=print$(if $(filter %-notes.pdf,$@),&handout)
$(DECK_PDF): $(DECK) $(PRINT)
	$(Q)[ -e $< ] || exit 0; \
	$(if $(Q),printf '  %-8s %s\n' PDF $@;) \
	$(call print_page,$<$(query))

$(SLIDE_WOVEN): $(WEAVE)/slides/%.json: slides/%.md $(LABELS) $(LUA_WEAVE) $(WEAVE)/settings | $(LUA_DATA) figures
	@mkdir -p $(@D)
	$(call say,WEAVE,$<)
	$(Q)$(call pandoc_output,$(call pandoc_weave,slides))

# Without reveal.js there is a reason and no deck; the book does not need it. With a part of it there is no deck either, and
# an error: the page would be blank.
reveal_here = test -e $(BUILD)/node/reveal-$(REVEAL_VERSION) || grep -qs '"version": "$(REVEAL_VERSION)"' $(REVEAL)/package.json

$(DECK): $(SLIDE_WOVEN) $(LUA_FORM) $(SLIDE_STYLE) slides/template.html $(PANDOC_DIR)/book.yaml slides/module.mk
	@mkdir -p $(@D)
	$(Q){ $(reveal_here); } || { echo "SKIP slides: reveal.js $(REVEAL_VERSION) is not here (make deps fetches it)"; exit 0; }; \
	for file in $(REVEAL_FILES); do \
	  [ -s $$file ] || { echo "slides: reveal.js lacks $$file (rm -r $(BUILD)/node, then make deps)" >&2; exit 1; }; \
	done; \
	$(if $(Q),printf '  %-8s %s\n' DECK $@;) \
	$(call pandoc_output,$(call pandoc_form,deck) -M track="$(TRACK)" -t revealjs --slide-level=2 --template=slides/template.html \
	  -M styles="$(filter %.css,$(REVEAL_FILES) $^)" -M scripts="$(filter %.js,$(REVEAL_FILES) $^)" --wrap=preserve /dev/null)

-include $(wildcard $(SLIDE_WOVEN:.json=.d))
