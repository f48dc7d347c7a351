"""`python3 -E -s -m quest.labs COMMAND NAME=VALUE...`: see cli.py."""

import sys

try:
    from quest.labs.cli import main
except ImportError as error:
    needs = "PYTHON= names Python 3.11 or later, with pytest (Debian: python3-pytest; make deps)"
    print(f"lab: {error}: {needs}", file=sys.stderr)
    raise SystemExit(2) from None

raise SystemExit(main())
