"""The labs' tool: cuts starters from the real sources, gives hints, judges what was handed in.

Started by make lab, check, hint, solution and grade: labs/README.md.
"""
