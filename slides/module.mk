# The deck: one HTML file with everything in it. reveal.js is pinned (make deps puts it into build/node): 6.x moved its
# plug-ins, and a deck that does not find one is a blank page. TRACK=talk45 keeps the slides of that track (slides/tracks.toml),
# in whatever is made of them: deck, schedule, PDF.

REVEAL_VERSION := 5.2.1
REVEAL       := $(BUILD)/node/node_modules/reveal.js
REVEAL_FILES := $(addprefix $(REVEAL)/,dist/reset.css dist/reveal.css dist/reveal.js plugin/notes/notes.js \
                plugin/search/search.js plugin/zoom/zoom.js)

SLIDES       := $(BUILD)/slides
# In the order of the book; behind it what is of no chapter.
SLIDES_OF_CHAPTERS := $(wildcard $(BOOK_ORDER:%=slides/%.md))
SLIDE_PARTS  := $(SLIDES_OF_CHAPTERS) $(sort $(filter-out $(SLIDES_OF_CHAPTERS) slides/README.md,$(wildcard slides/*.md)))
SLIDE_OUTLINES := $(if $(PANDOC),$(SLIDE_PARTS:slides/%.md=$(WEAVE)/slides/%.outline))
SLIDE_WOVEN  := $(SLIDE_PARTS:slides/%.md=$(WEAVE)/slides/%.json)
DECK         := $(SLIDES)/deck$(if $(TRACK),-$(TRACK)).html
SLIDE_STYLE  := $(PANDOC_DIR)/code.css $(addprefix slides/,theme.css pictures.css print.css) $(PANDOC_DIR)/player.css $(PANDOC_DIR)/machine.css \
                slides/recorded.css $(PANDOC_DIR)/player.js $(MACHINES) $(addprefix slides/,demo.js deck.js)
RECORDINGS   := $(wildcard slides/recordings/*.jsonl)
# What draws the demos; without it they are told in words.
DYGRAPHS     := $(wildcard /usr/share/javascript/dygraphs/dygraph.min.js /usr/share/javascript/dygraphs/dygraph.min.css)
# Its fonts, pinned as reveal.js is. Without them the deck has those of the system.
FONTS := $(addprefix $(BUILD)/node/,atkinson-hyperlegible-1.6 ibm-plex-mono-2.3)
# Their licences ask that copyright and permission go wherever they go: into the deck, and beside it.
NOTICE       := $(SLIDES)/NOTICE.txt
LICENCES     := $(wildcard $(REVEAL)/LICENSE $(BUILD)/node/atkinson-hyperlegible/LICENSE $(BUILD)/node/ibm-plex-mono/LICENSE $(if $(DYGRAPHS),/usr/share/doc/libjs-dygraphs/copyright))

DECK_PDF     := $(addprefix $(PDF)/,$(notdir $(DECK:.html=.pdf) $(DECK:.html=-notes.pdf)))

# What the demos start (slides/demos.toml), and who serves the deck.
STAGE_BINS    = $(addprefix $(BUILD)/bin/,hammer 15-slashdot $(if $(call variants_of,museum),museum) $(filter-out python-%,$(shell sed -n 's/^server = "\(.*\)"$$/\1/p' slides/demos.toml | sort -u)))

.PHONY: slides schedule lint-book spelling style present demo demo-record rehearse

ifeq ($(PANDOC),)
SLIDES_SKIP := pandoc is not installed (apt-get install pandoc)
else ifeq ($(SLIDE_PARTS),)
SLIDES_SKIP := slides/ holds no slide yet
else
SLIDES_ALL  := $(DECK)
PDF_ALL     += $(DECK_PDF)
endif

slides: $(SLIDES_ALL)
	@$(if $(SLIDES_SKIP),echo "SKIP slides: $(SLIDES_SKIP)",:)

schedule: $(SLIDE_OUTLINES)
	$(Q)$(call with_pandoc,$(PYTHON) -m quest.book.tracks show $(call quoted,$(TRACK)) $^)

lint-book: $(OUTLINES) $(SLIDE_OUTLINES)
	$(Q)$(call with_pandoc,$(PYTHON) -m quest.book.lint $^)

spelling: $(OUTLINES) $(SLIDE_OUTLINES)
	$(Q)$(call with_pandoc,$(PYTHON) -m quest.book.spelling $^)

style: $(OUTLINES) $(SLIDE_OUTLINES)
	$(Q)$(call with_pandoc,$(call quest,$@))

# A deck that is there is taken as it is: nothing is made anew, and can fail, on stage. 8080 stays free for the demos.
present: $(if $(wildcard $(DECK)),,slides)
	$(Q)[ -e $(DECK) ] || \
		{ echo 'present: there is no deck: make deps, then make slides$(if $(TRACK), TRACK=$(TRACK))' >&2; exit 1; }
	$(Q)$(MAKE) --no-print-directory -s $(parallel) $(sort $(STAGE_BINS))
	$(Q)exec $(call quest,present)

demo rehearse demo-record:
	$(Q)$(MAKE) --no-print-directory -s $(parallel) $(sort $(STAGE_BINS))
	$(Q)$(call quest,$@)
	$(if $(filter demo-record,$@),@echo 'The decks have the recordings of before: make slides$(if $(TRACK), TRACK=$(TRACK)) takes these.')

# What prints them is driven by selenium and its driver (quest/book/paper.py).
PRINTS := $(if $(PYTHON),$(shell $(PYTHON) -E -c 'import importlib.util as u; print(1 if u.find_spec("selenium") else "")' 2> /dev/null))
ifeq ($(CHROMIUM),)
PDF_SKIP := Chromium is not installed (apt-get install chromium)
PDF_ALL  :=
else ifeq ($(and $(PRINTS),$(shell command -v chromedriver)),)
PDF_SKIP := $(if $(PRINTS),chromedriver is not installed (apt-get install chromium-driver),selenium is not installed (apt-get install python3-selenium))
PDF_ALL  :=
else ifeq ($(PANDOC),)
PDF_SKIP := $(SLIDES_SKIP)
endif

pdf: $(if $(filter deck,$(WHAT)),$(filter $(PDF_ALL),$(DECK_PDF)),$(PDF_ALL))
	@$(if $(PDF_SKIP),echo "SKIP pdf: $(PDF_SKIP)",:)

# Where reveal.js is missing, the rule of the deck has said so.
$(DECK_PDF): query = ?view=print$(if $(filter %-notes.pdf,$@),&handout)
$(DECK_PDF): $(DECK) $(PRINT)
	$(Q)[ -e $< ] || exit 0; \
	$(if $(Q),printf '  %-8s %s\n' PDF $@;) \
	$(call print_page,$<$(query))

$(SLIDE_OUTLINES): $(WEAVE)/slides/%.outline: slides/%.md $(LUA_OUTLINE) $(WEAVE)/settings
	@mkdir -p $(@D)
	$(call pandoc_outline,-auto_identifiers)

$(SLIDE_WOVEN): $(WEAVE)/slides/%.json: slides/%.md $(LABELS) $(LUA_WEAVE) $(WEAVE)/settings | $(LUA_DATA) $(PLAYERS) figures
	@mkdir -p $(@D)
	$(call say,WEAVE,$<)
	$(Q)$(call pandoc_output,$(call pandoc_weave,slides))

# Without reveal.js there is a reason and no deck; the book does not need it. With a part of it there is no deck either, and
# an error: the page would be blank.
reveal_here = test -e $(BUILD)/node/reveal-$(REVEAL_VERSION) || grep -qs '"version": "$(REVEAL_VERSION)"' $(REVEAL)/package.json

# Changes with what the track has: the deck is made anew then.
$(WEAVE)/order-%: slides/tracks.toml quest/book/tracks.py $(SLIDE_OUTLINES)
	@mkdir -p $(@D)
	$(Q)$(PYTHON) -m quest.book.tracks ids $* $(SLIDE_OUTLINES) > $@

# What stands on the first slide and on the last: each is kept until it is told anew (SPEAKER= forgets it), so that the deck for
# the printer is the one for the stage.
about_of = $(if $(filter command,$(origin $(1))),$($(1)),$(shell sed -n 's/^$(1)=//p' $(WEAVE)/about 2> /dev/null))
ABOUT = $(foreach v,SPEAKER EVENT DATE URL,$(call quoted,$(v)=$(call about_of,$(v))))
ABOUT_URL = $(call about_of,URL)
TALK_ABOUT = $(foreach v,speaker:SPEAKER event:EVENT date:DATE url:URL,-M $(word 1,$(subst :, ,$(v)))=$(call quoted,$(call about_of,$(word 2,$(subst :, ,$(v)))))) \
	$(if $(and $(ABOUT_URL),$(shell command -v qrencode)),-M qrcode=$(WEAVE)/address.svg)
$(WEAVE)/about: slides-always
	@mkdir -p $(@D)
	@printf '%s\n' $(ABOUT) | cmp -s - $@ || { \
		printf '%s\n' $(ABOUT) > $@; \
		[ -z $(call quoted,$(ABOUT_URL)) ] || ! command -v qrencode > /dev/null || qrencode -t SVG -m 1 -o $(WEAVE)/address.svg $(call quoted,$(ABOUT_URL)); }
.PHONY: slides-always
slides-always:

$(NOTICE): $(LICENCES) slides/module.mk
	@mkdir -p $(@D)
	$(Q){ echo 'The deck contains the following software of others.'; \
	for file in $(LICENCES); do \
	  case $$file in $(REVEAL)/*) name='reveal.js $(REVEAL_VERSION)';; $(BUILD)/node/*/LICENSE) name="the font $$(basename "$$(dirname "$$file")")";; *) name=dygraphs;; esac; \
	  printf '\n==== %s ====\n\n' "$$name"; tr -d '\r' < $$file; echo; done; } > $@

$(WEAVE)/fonts.css: $(wildcard $(FONTS)) quest/book/fonts.py
	@mkdir -p $(@D)
	$(Q)$(PYTHON) -m quest.book.fonts $@ $(BUILD)/node && touch $@

$(WEAVE)/notice.html: $(NOTICE)
	$(Q){ echo '<script type="text/plain" id="notice">'; cat $<; echo '</script>'; } > $@

$(DECK): $(WEAVE)/about $(WEAVE)/notice.html $(if $(TRACK),$(WEAVE)/order-$(TRACK)) $(SLIDE_WOVEN) $(LUA_FORM) $(DYGRAPHS) $(WEAVE)/fonts.css $(SLIDE_STYLE) $(RECORDINGS) slides/template.html $(PANDOC_DIR)/book.yaml slides/module.mk
	@mkdir -p $(@D)
	$(Q){ $(reveal_here); } || { echo "SKIP slides: reveal.js $(REVEAL_VERSION) is not here (make deps fetches it)"; exit 0; }; \
	for file in $(REVEAL_FILES); do \
	  [ -s $$file ] || { echo "slides: reveal.js lacks $$file (rm -r $(BUILD)/node, then make deps)" >&2; exit 1; }; \
	done; \
	$(if $(Q),printf '  %-8s %s\n' DECK $(call quoted,$@$(if $(call about_of,SPEAKER), for $(call about_of,SPEAKER) (SPEAKER= forgets the name)));) \
	$(call pandoc_output,$(call pandoc_form,deck) $(if $(TRACK),-M order=$(WEAVE)/order-$(TRACK)) -t revealjs $(TALK_ABOUT) --slide-level=2 --template=slides/template.html --include-after-body=$(WEAVE)/notice.html \
	  -M styles="$(filter %.css,$(REVEAL_FILES) $^)" -M scripts="$(filter %.js,$(REVEAL_FILES) $^)" --wrap=preserve /dev/null); \
	$(if $(filter-out $(wildcard $(FONTS)),$(FONTS)),echo '  the deck has the fonts of this system: make deps fetches its own',:); \
	$(if $(ABOUT_URL),:,! grep -q 'class="no-address"' $@ || echo '  the last slide has no address: make slides URL=https://... puts one there')

-include $(wildcard $(SLIDE_WOVEN:.json=.d))
