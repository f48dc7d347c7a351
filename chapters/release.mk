# `make release`: the book, the EPUB, the decks and the PDFs for readers without the tools, in one archive. All of it is made
# from nothing, in a folder of its own and from the committed reference run: what was measured, drawn or printed here
# before has no part in it. The same commit and the same tools give the same bytes (chapters/pandoc/README.md).

RELEASE        := $(BUILD)/release
RELEASE_BUILD  := $(RELEASE)/build
RELEASE_TRACKS  = $(shell sed -n 's/^\[\(.*\)\]$$/\1/p' slides/tracks.toml)
RELEASE_PY      = $(PYTHON) $(PANDOC_DIR)/release.py

# The date in EPUB and PDF is that of the commit; the language and the time zone of who releases must not show.
release_make = SOURCE_DATE_EPOCH=$$epoch LC_ALL=C.UTF-8 TZ=UTC $(MAKE) --no-print-directory -j$(or $(JOBS),1) \
	BUILD=$(RELEASE_BUILD) RESULTS=reference PYTHON=$(PYTHON)

.PHONY: release
release: ## book, EPUB, decks and PDFs of the reference run, in one archive: build/release/quest-VERSION.zip
	$(Q)$(RELEASE_PY) needs '$(PANDOC)' '$(CHROMIUM)'
	$(Q)rm -rf $(RELEASE_BUILD) && mkdir -p $(RELEASE_BUILD) && ln -s ../../node $(RELEASE_BUILD)/node
	$(Q)epoch=$$($(RELEASE_PY) begin $(RELEASE)) && $(release_make) TRACK= book && \
	for track in $(RELEASE_TRACKS); do $(release_make) TRACK=$$track slides pdf || exit 1; done && \
	SOURCE_DATE_EPOCH=$$epoch $(RELEASE_PY) pack $(RELEASE_BUILD) $(RELEASE) '$(PANDOC)' '$(CHROMIUM)'
