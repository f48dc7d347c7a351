"""Measuring: micro-benchmarks, servers under load, traces; and the records of it all."""
