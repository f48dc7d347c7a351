# `make release`: the book, the EPUB, the decks and the PDFs for readers without the tools, in one archive. All of it is made
# from nothing, in a folder of its own and from the committed reference run: what was measured, drawn or printed here
# before has no part in it. The same commit and the same tools give the same bytes, but for the
# PDFs (chapters/pandoc/README.md).

RELEASE        := $(BUILD)/release
RELEASE_BUILD  := $(RELEASE)/build
RELEASE_TRACKS  = $(shell sed -n 's/^\[\([a-z0-9]*\)\]$$/\1/p' slides/tracks.toml)

# Without one of these the figures would be missing, or have other letters.
RELEASE_NEEDS   = ^(python3-scipy|gnuplot-nox|fonts-dejavu-core|reveal\.js@.*|atkinson-hyperlegible@.*|ibm-plex-mono@.*)$$
RELEASE_MISSING = $(shell sh setup/deps.sh --status measure book slides | \
	awk -F '\t' '$$2 == "missing" && $$1 ~ /$(RELEASE_NEEDS)/ {print $$1}') $(if $(PANDOC),,pandoc) $(if $(CHROMIUM),,chromium)

# Of the tree, and not of a repository around it. Without git, or outside, the version is the date of the newest source.
release_git     = $(shell unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE; [ -z "$$(git rev-parse --show-prefix 2>&1)" ] && git $(1))
RELEASE_SECONDS = $(or $(SOURCE_DATE_EPOCH),$(call release_git,log -1 --format=%ct),$(shell find chapters code figures \
	slides benchmarks -name __pycache__ -prune -o -type f -printf '%Ts\n' | sort -n | tail -1))
RELEASE_VERSION = $(or $(call release_git,describe --always --abbrev=10 --dirty --exclude 'judge-*'),$(shell date -u -d @$(RELEASE_SECONDS) +%F))

# The language and the time zone of who releases must not show.
release_make = SOURCE_DATE_EPOCH=$(RELEASE_SECONDS) LC_ALL=C.UTF-8 TZ=UTC $(MAKE) --no-print-directory -j$(or $(JOBS),1) \
	BUILD=$(RELEASE_BUILD) RESULTS=reference PYTHON=$(PYTHON)

.PHONY: release
release:
	$(Q)test -z '$(strip $(RELEASE_MISSING))' || { echo 'release: not made without $(strip $(RELEASE_MISSING)): make deps' >&2; exit 1; }
	$(Q)rm -rf $(RELEASE_BUILD) $(RELEASE)/quest-$(RELEASE_VERSION).zip && mkdir -p $(RELEASE_BUILD) && ln -s ../../node $(RELEASE_BUILD)/node
	$(Q)$(release_make) TRACK= epub
	$(Q)for track in $(RELEASE_TRACKS); do $(release_make) TRACK=$$track slides pdf || exit 1; done
	$(Q)$(PYTHON) -m quest.book.release $(RELEASE_BUILD) $(RELEASE) $(RELEASE_VERSION) $(RELEASE_SECONDS)
