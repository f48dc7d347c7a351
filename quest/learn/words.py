"""A word of the reader for one of ours: a unique beginning will do, and a slip of the finger is
told from nonsense.
"""

from collections.abc import Sequence

from quest.ground.errors import InputError


class Wrong(InputError):
    """What is wrong with what was asked for: one line, what and where and what to do."""


def chosen(word: str, known: Sequence[str], what: str, kind: str = "") -> str:
    """`09`, `epoll`, `09-epoll` -> 09-epoll. Wrong if that is none of them, or several. `what`: the
    setting's name; `kind`: what the words are names of.
    """
    if word in known:
        return word
    for fits in (_number, _beginning, _part):
        fitting = [each for each in known if fits(word, each)]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            raise Wrong(f"{what}={word}: it fits several: {', '.join(fitting)}")
    kind = kind or ("chapter" if what == "CH" else "word")
    raise Wrong(f"{what}={word}: there is no such {kind}{meant(word, known)}")


def _number(word: str, known: str) -> bool:
    """9, 09 and epoll."""
    number, _, name = known.partition("-")
    return word in (number, number.lstrip("0"), name)


def _beginning(word: str, known: str) -> bool:
    return bool(word) and (known.startswith(word) or known.partition("-")[2].startswith(word))


def _part(word: str, known: str) -> bool:
    return len(word) > 2 and word in known


def meant(word: str, known: Sequence[str]) -> str:
    """`; did you mean 09-epoll?`, or what there is."""
    import difflib  # only where something is wrong: every make with a setting loads this module

    tails = {each.partition("-")[2]: each for each in known if "-" in each}
    near = difflib.get_close_matches(word, [*known, *tails], n=1, cutoff=0.6)
    if near:
        return f"; did you mean {tails.get(near[0], near[0])}?"
    return f"; there are {', '.join(known)}" if len(known) < 40 else ""
