"""Started by anybody: with signals blocked or ignored, descriptors closed, limits, an odd
environment. Each server serves all the same, or ends with one line and status 1; none listens and
is deaf. The states are a table: inherited.py.
"""

import dataclasses

from conformance.inherited import QUICK, is_right, verdicts
from conformance.matrix import contract, kind
from conformance.process import Patience, Target, Unprivileged
from conformance.site import Site

pytestmark = kind("serving")


@contract("inherited", "listening-line", "setup-failure", "stop")
def test_whatever_it_inherits(
    target: Target, docroot: Site, patience: Patience, unprivileged: Unprivileged
) -> None:
    """Those that are harmless in one start, the others one by one. `make server-tables`: all."""
    reachable = dataclasses.replace(target, binary=unprivileged.reachable(target.binary))
    found = verdicts(reachable, docroot.root, patience.limit, QUICK)
    wrong = [
        f"{state.name}: {verdict}"
        for state, verdict in found.items()
        if not is_right(target.model, state, verdict)
    ]
    assert not wrong, "\n".join(wrong)
