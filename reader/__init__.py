"""What somebody who reads alone talks to: `make run`, `make next`, `make path`, `make predict`."""

import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "benchmarks"))
