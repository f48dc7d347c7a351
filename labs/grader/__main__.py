"""python3 -m grader: see cli.py."""

from grader.cli import main

raise SystemExit(main())
