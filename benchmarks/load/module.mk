# The HTTP load generator. It measures, so its own build is the plain one; asan is for its tests, and static is
# what goes to another host, whose C library may be older.
PROGRAMS += hammer
hammer_SRC := $(addprefix benchmarks/load/,hammer.c options.c address.c url.c \
	histogram.c tally.c samples.c record.c deadline.c schedule.c \
	response.c body.c reply.c watch.c dial.c client.c crowd.c holder.c herder.c herd.c engine.c outcome.c \
	summary.c json.c report_json.c report_text.c)
hammer_VARIANTS := glibc static asan
