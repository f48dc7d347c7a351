"""Was the judge published before the data? The tag `judge-HASH` of its commit says so, if it was pushed.

The date of a tag is written by its author, who may write any. An order is proved where others have fetched the tag.
What can be looked at here is that it is there, that it holds what is registered, and that its date precedes the data.
"""

import subprocess
from datetime import datetime
from pathlib import Path

from quest.measure.records import utc_now
from quest.report import frozen, sessions
from quest.report.judge import REGISTERED, SHORT, Registration

PATIENCE_S = 60


def tag_of(judge: str) -> str:
    """The name of its tag: `judge-056b6e5250f7`."""
    return f"judge-{judge[:SHORT]}"


def _git(*words: str) -> bytes | None:
    """What git prints; None where it fails, or is not there."""
    try:
        done = subprocess.run(["git", *words], capture_output=True, check=False, timeout=PATIENCE_S)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None


def date_of(judge: str) -> datetime | None:
    """The date of the tag; None where there is no such tag with a date of its own (git tag -a)."""
    form = "%(objecttype) %(taggerdate:iso8601-strict)"
    kind, _, date = (
        (_git("for-each-ref", f"--format={form}", f"refs/tags/{tag_of(judge)}") or b"").decode().partition(" ")
    )
    return datetime.fromisoformat(date.strip()) if kind == "tag" else None


def refusal(plan: Registration, results: Path, path: Path = REGISTERED) -> str:
    """Why data may not be measured, or go on being measured in the folder `results`: "" if what is registered in `path`
    is committed and tagged, and its tag was there before. The judge of the first ledger is kept as a zip, too; that of
    another is the commit of its tag.
    """
    tag, kept = tag_of(plan.judge), f"{frozen.FOLDER}/{plan.judge}"
    zipped = (f"{kept}.zip", f"{kept}.json") if path == REGISTERED else ()
    how = f"commit {path}{f' and {frozen.FOLDER}' if zipped else ''}, then git tag -a {tag}, and push the tag"
    date = date_of(plan.judge)
    if date is None:
        return f"the registered judge has no tag {tag} with a date of its own: {how}"
    if _git("merge-base", "--is-ancestor", tag, "HEAD") is None:
        return f"the commit of the tag {tag} is not before this one: {how}"
    if _git("show", f"{tag}:{path}") != _git("show", f"HEAD:{path}"):
        return f"{path} is not what the tag {tag} has: make register, {how}"
    for name in zipped:
        if _git("cat-file", "-e", f"{tag}:{name}") is None:
            return f"the tag {tag} does not hold {name}: make register, {how}"
    begun = sessions.begun(results)
    if date > (begun or datetime.fromisoformat(utc_now())):
        return f"the tag {tag} is of {date:%Y-%m-%d %H:%M}: a judge must be tagged before its data ({results})"
    return ""


def too_late(folder: Path, judge: str, begun: datetime) -> str:
    """What is wrong with the sets of a folder that name this judge: it was tagged after the first of them was `begun`.
    "" if nothing is, and where there is no tag: a clone may have none.
    """
    date = date_of(judge)
    if not date or date <= begun:
        return ""
    tagged = f"its judge was tagged ({tag_of(judge)}, {date:%Y-%m-%d})"
    return f"{folder}: {tagged} after it was begun ({begun:%Y-%m-%d})"
