# Micro-benchmarks: one question each. Built in every variant: libc and link mode are among the
# questions.

MICRO_COMMON := benchmarks/micro/micro.c code/common/die.c

PROGRAMS += fork-latency fork-reap clock-cost
fork-latency_SRC := benchmarks/micro/fork-latency.c benchmarks/micro/children.c $(MICRO_COMMON)
fork-reap_SRC    := benchmarks/micro/fork-reap.c benchmarks/micro/children.c $(MICRO_COMMON)
clock-cost_SRC   := benchmarks/micro/clock-cost.c $(MICRO_COMMON)
