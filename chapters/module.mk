# The book: pages, one-file book, EPUB. Three passes of pandoc (outline, weave, form) with the Lua filters in
# chapters/pandoc/; what a page is made of (code, figures, numbers) is written down by the filters while they read it, so
# a change of one source makes again the pages that show it, and nothing else.

PANDOC_DIR := chapters/pandoc
WEAVE      := $(BUILD)/weave
BOOK       := $(BUILD)/book

# The order of the book: the quoted words of parts.toml. Of a page that is not there lint speaks, and of one that it does not name.
BOOK_ORDER := $(shell sed '/^\#/d' chapters/parts.toml | grep -o '"[^"]*"' | tr -d '"')
BOOK_PAGES := $(patsubst chapters/%.md,%,$(wildcard $(BOOK_ORDER:%=chapters/%.md)))
BOOK_WOVEN := $(BOOK_PAGES:%=$(WEAVE)/%.json)
BOOK_HTML  := $(BOOK_PAGES:%=$(BOOK)/%.html) $(BOOK)/answers.html
BOOK_STYLE := $(addprefix $(BOOK)/,book.css code.css book.js search.js player.css player.js machine.css machines.js front.css front.js)
# Small machines: what they share first.
MACHINES   := $(PANDOC_DIR)/machines/machine.js $(filter-out %/machine.js,$(wildcard $(PANDOC_DIR)/machines/*.js))

LUA_SHARED := $(PANDOC_DIR)/common.lua
LUA_WEAVE  := $(LUA_SHARED) $(addprefix $(PANDOC_DIR)/,weave.lua boxes.lua calls.lua code.lua edition.lua figures.lua findings.lua ledger.lua machine.lua machines.lua \
              numbers.lua parts.lua player.lua references.lua search.lua sources.lua then.lua unmeasured.lua)
LUA_OUTLINE := $(LUA_SHARED) $(addprefix $(PANDOC_DIR)/,outline.lua figures.lua numbers.lua)
LUA_FORM   := $(LUA_SHARED) $(addprefix $(PANDOC_DIR)/,form.lua assemble.lua player.lua)
TABLES     := quest/book/tables.py quest/book/outline.py
OUTLINES   := $(if $(PANDOC),$(BOOK_PAGES:%=$(WEAVE)/%.outline))
LABELS     := $(WEAVE)/labels.lua
LUA_DATA   := $(addprefix $(WEAVE)/data/,numbers.lua claims.lua since.lua guards.lua judges.lua then.lua machines.lua edition.lua)
# Recordings as players: pieces of HTML for the pages that show them, and a page for each server.
PLAYERS    := $(WEAVE)/players/made
RECORDED   := $(wildcard benchmarks/recordings/*.json)
PLAYER_PAGES := $(addprefix $(BOOK)/player-,$(addsuffix .html,$(patsubst %.slow,%,$(RECORDED:benchmarks/recordings/%.json=%))))
# Finds words by their stems (search.js); Debian's package, as for dygraphs in the deck. Where it is not, the search goes by letters.
LUNR_RIGHTS := $(wildcard /usr/share/doc/libjs-lunr/copyright)
LUNR       := $(if $(LUNR_RIGHTS),$(wildcard /usr/share/javascript/lunr/lunr.min.js))
SEARCH     := $(addprefix $(BOOK)/,search-index.js lunr.js NOTICE.txt)
PAGE       := $(addprefix $(PANDOC_DIR)/,page.html contents.html book.yaml)

# $(call pandoc_output,command): the output appears whole or not at all; $$$$ is the shell's process, for two makes may work here.
pandoc_output = $(1) -o $@.$$$$.part && mv -f $@.$$$$.part $@ || { rm -f $@.$$$$.part; exit 1; }
pandoc_weave = $(PANDOC) -f markdown -t json -M form=$(1) -M build=$(BUILD) -M weave=$(WEAVE) -M results=$(RESULTS) \
        -M depfile=$(@:.json=.d) -M part=$$$$.part --lua-filter=$(PANDOC_DIR)/weave.lua $<
pandoc_form = $(PANDOC) -f markdown --lua-filter=$(PANDOC_DIR)/form.lua -M form=$(1) -M inputs="$(filter %.json,$^)" \
        -M build=$(BUILD) -M weave=$(WEAVE) -M results=$(RESULTS) --metadata-file=$(PANDOC_DIR)/book.yaml --mathml
# One file with everything in it: style sheets and scripts are named here, form.lua puts them in.
pandoc_embed = -M styles="$(filter %.css,$^)" -M scripts="$(filter %.js,$^)"
pandoc_page = -t html5 --template=$(PANDOC_DIR)/page.html --section-divs --wrap=preserve \
            -V booktitle="The Quest for a Good Web Server"

# On paper: headless Chromium prints the one-file pages (paper.py). Nothing of it is taken from the network.
CHROMIUM := $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)
PDF      := $(BUILD)/pdf
PRINT    := quest/book/paper.py
# $(call print_page,page?query): prints it as the target.
print_page = mkdir -p $(@D) && $(PYTHON) -m quest.book.paper $(CHROMIUM) '$(1)' $@

.PHONY: book epub pdf contents weave-always
weave-always:

ifeq ($(PANDOC),)
BOOK_SKIP := pandoc is not installed (apt-get install pandoc)
else ifeq ($(BOOK_PAGES),)
BOOK_SKIP := chapters/ holds no chapter yet
else
BOOK_ALL  := $(BOOK_HTML) $(PLAYER_PAGES) $(SEARCH)
EPUB_ALL  := $(addprefix $(BOOK)/,book.html book.epub)
PDF_ALL   := $(PDF)/book.pdf $(if $(filter handout,$(BOOK_PAGES)),$(PDF)/handout.pdf)
endif

# `whole` is younger than all pages only if none is missing: `make read` goes by it.
book: $(BOOK_ALL)
	@$(if $(BOOK_SKIP),echo "SKIP book: $(BOOK_SKIP)",touch $(BOOK)/whole)

epub: book $(EPUB_ALL)

# What the pages are made from besides files. When it changes, pages that no longer belong to the book go.
BOOK_SETTINGS = $(RESULTS) $(BOOK_PAGES) $(SLIDE_PARTS) $(PANDOC)
$(WEAVE)/settings: weave-always
	@mkdir -p $(@D)
	@echo '$(BOOK_SETTINGS)' | cmp -s - $@ || { rm -f $(BOOK)/*.html; echo '$(BOOK_SETTINGS)' > $@; }

# What stands in a chapter, or in a file of slides, as JSON: of it are made labels, lint, schedule and the reader's path.
# $(call pandoc_outline,extensions): a slide's id is given, never made up of its title.
pandoc_outline = $(Q)$(call pandoc_output,$(PANDOC) -f markdown$(1) -t html --lua-filter=$(PANDOC_DIR)/outline.lua $<)
# $(call with_pandoc,command)
with_pandoc = $(if $(PANDOC),$(1),echo 'SKIP $@: pandoc is not installed (apt-get install pandoc)'; test '$(LINT)' != strict)
$(OUTLINES): $(WEAVE)/%.outline: chapters/%.md $(LUA_OUTLINE) $(WEAVE)/settings
	@mkdir -p $(@D)
	$(call pandoc_outline)

# Joined each time, written only when a label, a number or a title has changed.
$(LABELS): $(OUTLINES) $(TABLES) weave-always
	$(Q)$(PYTHON) -m quest.book.tables labels $@ $(OUTLINES)

# What is exported in this very run is looked at after it; the exporter leaves alone what has not changed.
$(LUA_DATA:$(WEAVE)/%.lua=$(BUILD)/%.json): export
	@:
$(LUA_DATA): $(WEAVE)/%.lua: $(BUILD)/%.json $(TABLES)
	$(Q)$(PYTHON) -m quest.book.tables data $< $@

$(BOOK_WOVEN): $(WEAVE)/%.json: chapters/%.md $(LABELS) $(LUA_WEAVE) $(WEAVE)/settings | $(LUA_DATA) $(PLAYERS) figures-in-pages
	$(call say,WEAVE,$<)
	$(Q)$(call pandoc_output,$(call pandoc_weave,chapter) -M searchfile=$(@:.json=.search))

# The index of calls and the bibliography are drawn of what all chapters say; written only when that has changed.
$(WEAVE)/calls.json: $(WEAVE)/data/calls.lua
$(WEAVE)/bibliography.json: $(WEAVE)/data/sources.lua
$(WEAVE)/data/calls.lua: $(OUTLINES) chapters/calls.tsv quest/book/calls.py $(TABLES) $(wildcard code/*/*.[ch])
	$(Q)$(PYTHON) -m quest.book.calls $@ $(OUTLINES)
$(WEAVE)/data/sources.lua: $(OUTLINES) chapters/sources.toml quest/book/sources.py quest/book/calls.py $(TABLES)
	$(Q)$(PYTHON) -m quest.book.sources $@ $(OUTLINES)

# A page takes the figures it shows with it; it is made again when one of them changes.
copy_figures = sed -n 's,^.*: $(BUILD)/figures/\(.*\.svg\)$$,\1,p' $(WEAVE)/$*.d | while read -r svg; do \
	cmp -s $(BUILD)/figures/$$svg $(BOOK)/figures/$$svg || \
	{ cp $(BUILD)/figures/$$svg $(BOOK)/$*.$$$$.part && mv -f $(BOOK)/$*.$$$$.part $(BOOK)/figures/$$svg; } || exit 1; done

$(BOOK_PAGES:%=$(BOOK)/%.html): $(BOOK)/%.html: $(WEAVE)/%.json $(LUA_FORM) $(PAGE) $(LABELS) | $(BOOK_STYLE)
	$(call say,PAGE,$@)
	$(Q)mkdir -p $(BOOK)/figures
	$(Q)$(copy_figures)
	$(Q)$(call pandoc_output,$(call pandoc_form,page) $(pandoc_page) /dev/null)

$(BOOK)/answers.html: $(BOOK_WOVEN) $(LUA_FORM) $(PAGE) $(LABELS) | $(BOOK_STYLE)
	$(call say,PAGE,$@)
	$(Q)$(call pandoc_output,$(call pandoc_form,answers) $(pandoc_page) /dev/null)

# A line of code that is not what was recorded stops the build here.
$(PLAYERS): $(RECORDED) $(wildcard quest/book/player/*.py quest/ground/c_source.py quest/measure/form.py code/*/*.[ch])
	$(Q)$(PYTHON) -m quest.book.player $(@D)
	$(Q)touch $@

$(PLAYER_PAGES): $(BOOK)/%: $(PLAYERS) $(WEAVE)/settings | $(BOOK_STYLE)
	$(Q)mkdir -p $(@D)
	$(Q)cp $(WEAVE)/players/$* $@.$$$$.part && mv -f $@.$$$$.part $@

$(BOOK)/machines.js: $(MACHINES)
	$(Q)mkdir -p $(@D)
	$(Q)cat $^ > $@.$$$$.part && mv -f $@.$$$$.part $@

$(filter-out %/machines.js,$(BOOK_STYLE)): $(BOOK)/%: $(PANDOC_DIR)/%
	$(Q)mkdir -p $(@D)
	$(Q)cp $< $@.$$$$.part && mv -f $@.$$$$.part $@

$(BOOK)/search-index.js: $(BOOK_WOVEN)
	$(Q)mkdir -p $(@D)
	$(Q){ echo 'window.BOOK_INDEX = ['; cat $(BOOK_WOVEN:.json=.search); echo '];'; } > $@.$$$$.part && mv -f $@.$$$$.part $@

# With the file of others go their licence's words, wherever the pages go. Made anew where it has come or gone.
$(WEAVE)/lunr: weave-always
	@mkdir -p $(@D)
	@echo '$(LUNR) $(LUNR_RIGHTS)' | cmp -s - $@ || echo '$(LUNR) $(LUNR_RIGHTS)' > $@

$(BOOK)/lunr.js: $(WEAVE)/lunr
	$(Q)mkdir -p $(@D)
	$(if $(LUNR),,@echo 'SKIP search by word stems: lunr is not here (apt-get install libjs-lunr); the pages search by letters')
	$(Q)$(if $(LUNR),cat $(LUNR),echo '// lunr was not there: the pages search by letters.') > $@.$$$$.part && mv -f $@.$$$$.part $@

$(BOOK)/NOTICE.txt: $(WEAVE)/lunr
	$(Q)mkdir -p $(@D)
	$(Q){ $(if $(LUNR),printf 'The search of the pages is made with the following software of others.\n\n==== lunr (lunr.js) ====\n\n'; \
	  cat $(LUNR_RIGHTS),echo 'The pages contain no software of others.'); } > $@.$$$$.part && mv -f $@.$$$$.part $@

$(BOOK)/book.html: $(BOOK_WOVEN) $(LUA_FORM) $(PAGE) $(addprefix $(PANDOC_DIR)/,code.css book.css player.css machine.css front.css book.js player.js front.js) $(MACHINES) $(LABELS)
	$(Q)mkdir -p $(@D)
	$(call say,BOOK,$@)
	$(Q)$(call pandoc_output,$(call pandoc_form,book) $(pandoc_embed) $(pandoc_page) /dev/null)

$(BOOK)/book.epub: $(BOOK_WOVEN) $(LUA_FORM) $(addprefix $(PANDOC_DIR)/,epub.css code.css player.css machine.css front.css book.yaml) $(LABELS)
	$(call say,EPUB,$@)
	$(Q)$(call pandoc_output,$(call pandoc_form,epub) -t epub3 --toc --toc-depth=2 \
	  --css=$(PANDOC_DIR)/code.css --css=$(PANDOC_DIR)/epub.css --css=$(PANDOC_DIR)/player.css --css=$(PANDOC_DIR)/machine.css --css=$(PANDOC_DIR)/front.css --resource-path=$(BUILD) /dev/null)

$(PDF)/book.pdf $(PDF)/handout.pdf: $(PDF)/%.pdf: $(BOOK)/%.html $(PRINT)
	$(call say,PDF,$@)
	$(Q)$(call print_page,$<)

-include $(wildcard $(BOOK_WOVEN:.json=.d))

include chapters/release.mk

# What `make next`, `path` and `run` know of the chapters is committed: they need no pandoc and no book.
contents: $(OUTLINES)
	$(Q)$(call with_pandoc,$(PYTHON) -m quest.book.contents $^)
