"""The measuring harness: runs experiments, records raw data, does the statistics, judges claims.

Run as `python3 -m harness` with PYTHONPATH=benchmarks from the root of the tree. What needs scipy
is imported where it is used: `bench` with nothing to do must return at once.
"""
