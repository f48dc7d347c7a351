"""Started by anybody: with signals blocked or ignored, descriptors closed, limits, an odd
environment. Each server serves all the same, or ends with one line and status 1; none listens and
is deaf. The states are a table: inherited.py.
"""

import dataclasses

import pytest

from tests.conformance.inherited import QUICK, is_right, verdicts
from tests.conformance.matrix import SANITIZED, contract, kind
from tests.conformance.process import Patience, Target, Unprivileged
from tests.conformance.site import Site

pytestmark = kind("serving")


@contract("inherited", "listening-line", "setup-failure", "stop")
def test_whatever_it_inherits(target: Target, docroot: Site, patience: Patience, unprivileged: Unprivileged) -> None:
    """Those that are harmless in one start, the others one by one. `make server-tables`: all."""
    if target.variant in SANITIZED:
        pytest.skip("a sanitizer needs memory, threads and a stderr of its own")
    if target.variant == "diet" and target.model.threaded:
        pytest.skip("its threads are processes that tell each other all by queued signals")
    reachable = dataclasses.replace(target, binary=unprivileged.reachable(target.binary))
    found = verdicts(reachable, docroot.root, patience.limit, QUICK)
    wrong = [
        f"{state.name}: {verdict}" for state, verdict in found.items() if not is_right(target.model, state, verdict)
    ]
    assert not wrong, "\n".join(wrong)
