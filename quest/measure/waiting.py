"""Waiting for what comes about without a signal, by looking again and again."""

import time
from collections.abc import Callable


def comes_true(condition: Callable[[], bool], patience: float, pause: float = 0.01) -> bool:
    """Whether a condition comes true within `patience` seconds; it is tried at least once, and then
    every `pause` seconds.
    """
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True
