"""python3 -m grader: see cli.py."""

import sys

try:
    from grader.cli import main
except ImportError as error:
    print(f"lab: {error}: PYTHON= names Python 3.11 or later", file=sys.stderr)
    raise SystemExit(2) from None

raise SystemExit(main())
