"""`python3 -E -s -m quest.labs COMMAND NAME=VALUE...`: the labs without the other goals of make, and
without what these import. So one submission of a class is graded, and an autograder and a handout
start it so.
"""

import os
import sys

try:
    from quest.ground.entry import begin, run_to_status
    from quest.labs.cli import run_words
except ImportError as error:
    needs = "PYTHON= names Python 3.11 or later, with pytest (Debian: python3-pytest; make deps)"
    print(f"lab: {error}: {needs}", file=sys.stderr)
    raise SystemExit(2) from None

begin()
sys.exit(run_to_status(lambda: run_words(sys.argv[1:], os.environ), "lab: "))
