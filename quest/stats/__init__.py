"""From repetitions to numbers with intervals, as pure functions."""
