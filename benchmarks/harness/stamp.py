"""Whether build/data still belongs to what it was made from."""

import hashlib
from importlib.util import find_spec
from pathlib import Path

from harness import experiment, sources

NAME = "stamp"
LEDGER = Path("benchmarks/claims.toml")


def fingerprint(results: Path, reference: Path) -> str:
    """Of the dates and sizes of all that decides about the export."""
    digest = hashlib.sha256(f"{sources.wants_reference()} {bool(find_spec('scipy'))}".encode())
    places = [
        *sorted(experiment.FOLDER.glob("*.toml")),
        *sorted(Path(__file__).parent.glob("*.py")),
        LEDGER,
        *sorted(results.glob("*.jsonl")),
        *sorted(reference.glob("*.jsonl")),
    ]
    for path in places:
        if path.exists():
            status = path.stat()
            digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()


def fresh(results: Path, reference: Path, data: Path) -> bool:
    stamp = data / NAME
    return stamp.is_file() and stamp.read_text("ascii") == fingerprint(results, reference)
