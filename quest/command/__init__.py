"""The command line: `python3 -m quest GOAL NAME=VALUE...`, and make's goals, which call it."""
