# A helper of our own for a peer. libfcgi is not everywhere, and musl and dietlibc have none.
PROGRAMS += stat-helper
stat-helper_SRC      := benchmarks/peers/stat-helper.c code/common/open_below_walk.c $(MICRO_COMMON)
stat-helper_SRC_any   = $(OPEN_BELOW_any)
stat-helper_LIBS     := -lfcgi -pthread
stat-helper_VARIANTS := glibc asan
stat-helper_NEEDS    := fcgiapp.h
