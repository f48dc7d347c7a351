# The museum disk: a file system in user space that is as slow as two disks of 2006, and its model alone.
DISK := $(addprefix benchmarks/disk/,model.c cache.c files.c options.c)

PROGRAMS += museum museum-model
museum_SRC       := $(addprefix benchmarks/disk/,museum.c requests.c spindles.c statistics.c guardian.c) $(DISK) \
                    benchmarks/load/json.c code/common/die.c code/common/known_state.c
museum_NEEDS     := fuse3/fuse_opt.h
museum_LIBS      := -lfuse3 -lm -pthread
museum-model_SRC := benchmarks/disk/museum-model.c $(DISK) code/common/die.c
museum-model_LIBS := -lm
museum_VARIANTS       := glibc asan
museum-model_VARIANTS := glibc asan
