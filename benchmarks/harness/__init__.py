"""The measuring harness: runs experiments, records raw data, does the statistics, judges claims.

    spec         what an experiment is, and the plan that follows from its file
    run          measuring it, and the records of that
    system       what the machine is, has, allows and counts
    statistics   from repetitions to numbers with intervals
    report       tables, data for figures, verdicts, the doctor

Run as `python3 -m harness` with PYTHONPATH=benchmarks from the root of the tree. What needs scipy
is imported where it is used: `bench` with nothing to do must return at once.
"""
