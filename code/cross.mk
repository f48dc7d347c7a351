# `make cross`: the portable programs, compiled and linked for systems that are not here. Zig's C compiler does it: it brings
# their headers, and what the linker has to know of their libraries. That shows that nothing of Linux is left in them; to run
# them there is `make vm`. A program takes part once its name is in PORTABLE, beside PROGRAMS in a module.mk.

CROSS_TARGETS  := x86_64-freebsd x86_64-netbsd x86_64-openbsd aarch64-macos
SYSTEM_freebsd := FreeBSD
SYSTEM_netbsd  := NetBSD
SYSTEM_openbsd := OpenBSD
SYSTEM_macos   := Darwin

# Zig has the headers of NetBSD 11 alone, and links them with an older libc unless it is told.
RELEASE_netbsd := .11.0

# Where they are native, nothing else can be built.
ifneq ($(SYSTEM),Linux)
PROGRAMS := $(filter $(PORTABLE),$(PROGRAMS))
endif

ZIG_VERSION := 0.17.1
ZIG         := $(BUILD)/zig/$(ZIG_VERSION)/zig

# Sources are chosen when make starts, so each target is a make of its own (CROSS=x86_64-freebsd), and its only variant.
ifneq ($(CROSS),)
VARIANTS      := $(CROSS)
VARIANTS_HERE := $(CROSS)
dir_$(CROSS)  := $(BUILD)/cross/$(CROSS)
cc_$(CROSS)   := $(ZIG) cc -target $(CROSS)$(RELEASE_$(word 2,$(subst -, ,$(CROSS))))
$(foreach p,$(PORTABLE),$(eval $(p)_VARIANTS := $(CROSS)))
# Else it writes to the user's home.
export ZIG_GLOBAL_CACHE_DIR := $(abspath $(BUILD))/cross/cache
export ZIG_LOCAL_CACHE_DIR  := $(ZIG_GLOBAL_CACHE_DIR)
# Of a server that waits with epoll, what does not is compiled only.
cross-programs: $(addprefix $(dir_$(CROSS))/,$(PORTABLE)) $(PORTABLE_SRC:%.c=$(BUILD)/obj/$(CROSS)/%.o)
	@:
endif

.PHONY: cross cross-all cross-programs $(CROSS_TARGETS:%=cross-%)

cross:
	$(Q)sh setup/deps.sh cross
	$(Q)if [ -x $(ZIG) ]; then $(MAKE) --no-print-directory cross-all; \
	else echo "SKIP cross: Zig $(ZIG_VERSION) is not here (make cross DEPS=yes fetches it)"; fi

cross-all: $(CROSS_TARGETS:%=cross-%)

$(CROSS_TARGETS:%=cross-%): cross-%:
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) WERROR=-Werror CROSS=$* PROCESSOR=$(word 1,$(subst -, ,$*)) \
		SYSTEM=$(SYSTEM_$(word 2,$(subst -, ,$*))) cross-programs
	@echo "$*: $(words $(PORTABLE)) programs in $(BUILD)/cross/$*: $(sort $(PORTABLE))"
