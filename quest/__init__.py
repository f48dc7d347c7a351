"""What measures, judges, reports, teaches and grades: one package, whose parts stand in an order.
Each imports only those before it (tests/harness/test_packages.py).

    ground    errors, whole files, processes, what a command does first and last
    spec      what an experiment is, and the plan that follows from its file
    measure   measuring it, the records of that, and the system it is measured on
    stats     from repetitions to numbers with intervals
    report    tables, data for figures, verdicts, the doctor
    book      what pandoc's filters do not do: labels, lint, paper, release
    learn     what somebody who reads alone talks to: run, next, path, read
    labs      the grader, the labs that measure, what a teacher needs
    stage     the demos of the talk
    command   the table of goals and settings, and what runs a goal: `python3 -m quest GOAL NAME=VALUE...`

What needs scipy is imported where it is used: `bench` with nothing to do must return at once.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - before it meets what it cannot read, and says something else
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    print(f"Python {version} is too old: 3.11 or newer is needed, and PYTHON= names it", file=sys.stderr)
    raise SystemExit(2)
