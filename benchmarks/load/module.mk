# The HTTP load generator. It measures, so its own build is the plain one; asan is for its tests, and static is
# what goes to another host, whose C library may be older.
PROGRAMS += hammer
hammer_SRC := $(addprefix benchmarks/load/,hammer.c options.c address.c url.c clock.c schedule.c reply.c \
	tally.c record.c client.c crowd.c herd.c herder.c engine.c json.c report_json.c report_text.c) code/common/die.c code/common/known_state.c
hammer_VARIANTS := glibc static asan
