"""python3 -I labs/grader/__main__.py: see cli.py. Imports are of this tree and of Python."""

import sys
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TREE / folder) for folder in ("labs", "tests", "benchmarks")]

try:
    from grader.cli import main
except ImportError as error:
    needs = "PYTHON= names Python 3.11 or later, with pytest (Debian: python3-pytest; make deps)"
    print(f"lab: {error}: {needs}", file=sys.stderr)
    raise SystemExit(2) from None

raise SystemExit(main())
