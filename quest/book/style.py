"""Habits of style that make a chapter hard to read, counted in its outline. Pure functions: no file is read here.

What is counted stands in COUNTS. Code, answers and terminal sessions are left out, and of slides all but their notes.
A count is a rule of thumb over words, so a hit may be right as it is: chapters/style.tsv says how many a page may
have (quest/book/style_table.py).
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from quest.book.outline import Block, Outline


class Hit(NamedTuple):
    """One place that is counted."""

    line: int  #: of the source, where its paragraph begins
    text: str  #: the sentence, or what is missing


@dataclass(frozen=True)
class Page:
    """What of a chapter, or of the notes of its slides, is counted."""

    blocks: tuple[Block, ...]
    terms: frozenset[str] = frozenset()  #: of the glossary, in small letters
    chosen: frozenset[str] = frozenset()  #: quantities that a program or a standard sets, as quantity() writes them

    def texts(self, without: tuple[str, ...] = ()) -> Iterator[Block]:
        """Paragraphs, headings, cells of tables, captions; `without`: not those in divs of these classes."""
        for block in self.blocks:
            if block.kind in ("text", "heading") and not set(without) & set(block.inside):
                yield block

    def paragraphs(self) -> list[Block]:
        """Texts that are no heading, no caption and no cell of a table."""
        return [block for block in self.texts(NOT_PARAGRAPHS) if block.kind == "text"]


Counter = Callable[[Page], Iterator[Hit]]
NOT_PARAGRAPHS = ("table", "caption")


def page_of(outline: Outline, terms: Iterable[str] = (), chosen: Iterable[str] = ()) -> Page:
    """What is counted of this file."""
    blocks = [block for block in outline.blocks if "answer" not in block.inside]
    if outline.source.parts[0] == "slides":
        blocks = [block for block in blocks if "notes" in block.inside and block.kind in ("text", "span")]
    return Page(tuple(blocks), frozenset(term.lower() for term in terms), frozenset(map(quantity, chosen)))


# ---- words and sentences

CODE = re.compile(r"`[^`]*`")
#: What ends no sentence although a point follows.
SHORT = re.compile(r"\b(?:ch|no|vs|cf|fig|p|e\.g|i\.e)\.$", re.I)
END = re.compile(r"(?<=[.?!])\s+|(?<=[.?!][”’)])\s+")


def prose(text: str) -> str:
    """The text with a word in place of each piece of code."""
    return CODE.sub("code", text)


@cache
def sentences(text: str) -> tuple[str, ...]:
    """The sentences of a paragraph, code left out; a small letter begins none."""
    found: list[str] = []
    for piece in END.split(prose(text)):
        if found and ((piece[:1].islower() and not piece.startswith("code")) or SHORT.search(found[-1])):
            found[-1] += " " + piece
        elif piece:
            found.append(piece)
    return tuple(found)


def that_match(pattern: re.Pattern[str]) -> Counter:
    """A hit for each match, with its sentence."""

    def count(page: Page) -> Iterator[Hit]:
        for block in page.texts():
            for sentence in sentences(block.text):
                for _ in pattern.finditer(sentence):
                    yield Hit(block.line, sentence)

    return count


#: "who" without a noun before it. "Who calls whom" is the title of a tree of functions.
WHO = re.compile(
    r"\b[Ww]hoever\b"
    r"|(?:^|[;:(“] ?)[Ww]ho\b(?! calls whom\b)(?![^?]*\?)"
    r"|\b(?:of|to|for|by|from|with|and|or|but|nor|that|is|are|was|were|than|if|as|at|on|in|when|while|so|not|only|them"
    r"|those|all|one|ones|others|nobody|somebody|everybody|anybody),? who\b"
)
INDEFINITE = re.compile(r"\b(?:no|some|every|any)body(?:[’']s)?\b|\b(?:some|every|any)one\b(?! of\b)", re.I)
TOLD = re.compile(
    r"\b(?:is|are|am|was|were|be|been|being) (?:(?:not|never|also|then|only|always|\w+ly) )?told\b(?! apart)", re.I
)
WHAT_IS = re.compile(r"^[“(]?What\b[^:?]*?\b(?:is|are|was|were)\b(?!.*[?:]$)")

HE = re.compile(r"\b(?:he|him|his|himself)\b", re.I)
PEOPLE = (
    "author|authors|reader|readers|student|students|teacher|teachers|speaker|speakers|person|people|man|woman|user|"
    "users|administrator|programmer|programmers|audience|friend|colleague|writer|designer|engineer|attacker|Torvalds|"
    "Linus|Libenzi|Davide|Stevens|Bernstein|Kegel|Leitner|Felix|Nagle|Little|Erlang|Drepper|Molnar|Axboe|Jacobson|"
    "Provos|Poskanzer|Poettering|Cox|Miller|Dijkstra|Knuth|Thompson|Ritchie|Lemon|Jain|Tene|Whaley|Kneschke|Jan"
)
THINGS = (
    "client|clients|server|servers|process|processes|thread|threads|worker|workers|kernel|socket|connection|parent|"
    "child|children|program|system|scheduler|peer|customer|customers|others?"
)
OF_WHOM = re.compile(rf"\b(?:(?P<person>{PEOPLE})|{THINGS})\b")


def he_of_a_thing(page: Page) -> Iterator[Hit]:
    """he, him, his, unless the last noun before it, of those that are listed, is a person."""
    for block in page.texts():
        before = ""
        for sentence in sentences(block.text):
            for match in HE.finditer(sentence):
                nouns = list(OF_WHOM.finditer(before + sentence[: match.start()]))
                if not nouns or not nouns[-1]["person"]:
                    yield Hit(block.line, sentence)
            before += sentence + " "


#: Words of ours with the form in which they mean more than every day's word. "word", "line" and "place" cannot be told
#: from the usual words, so they are not counted.
COINED = {
    "turn": r"(?:an?|the|its|one|each|every|this|that|another|a client.s|per|of|next|last|same|first|more) turns?",
    "piece": r"pieces?",
    "door": r"doors?",
    "herd": r"herds?",
    "crowd": r"crowds?",
    "museum disk": r"museum disks?",
    "ledger": r"ledgers?",
    "floor": r"floors?",
}


def coined(page: Page) -> Iterator[Hit]:
    """Coinages that no term of the glossary holds."""
    for word, form in COINED.items():
        if not any(re.search(rf"\b{word}\b", term) for term in page.terms):
            yield from that_match(re.compile(rf"\b{form}\b", re.I))(page)


PARENTHESIS = re.compile(r"(?:^|[.?!:][”’)]?\s+)\([A-Z“][^()]*(?:\([^()]*\)[^()]*)*[.?!][”’]?\)")


def in_parentheses(page: Page) -> Iterator[Hit]:
    """Whole sentences in parentheses."""
    for block in page.texts():
        for match in PARENTHESIS.finditer(prose(block.text)):
            yield Hit(block.line, match[0].lstrip(".?!: ”’)"))


# ---- numbers

BOUND = "[0]"  #: what outline.lua makes of a bound number; [61] is a verdict
VERDICT = re.compile(r"\[[1-9]\d*\]")
#: Digits that are part of a name: references, manual pages, standards, claims, servers, versions, years.
NAMES = re.compile(
    r"@[\w-]+:[\w-]+|\b\w+\(\d\w?\)|\bRFCs? \d+(?:, (?:section )?\d[\d.]*\d)?"
    r"|\b[Cc]laims? \d+(?:(?:,| and| to|, and) \d+\b)*|\b\d\d[a-z]?-[a-z]\w*"
    r"|\b(?:Linux|glibc|[Kk]ernel|[Vv]ersion|Python|\w+BSD|Ubuntu|Debian|GCC|[Cc]hapters?|ch\.) \d[\d.]*"
    r"|\b(?:[Cc]lient|[Pp]lace|[Rr]ow|[Ff]igure|[Ss]tep|[Nn]umber|[Dd]escriptor) \d+\b"
    r"|\d+\.\d+\.\d[\d.]*|(?<![\d.,])(?:19[6-9]\d|200[1-9]|201\d|202\d)(?![\d.,]*\d)"
)
NUMBER = re.compile(r"\[0\]|(?<![\w/.@-])(?:\d{1,3}(?:[\u202f\u00a0 ]\d{3})+(?!\d)|\d+(?:[.,]\d+)*)k?(?![\w(]|-[a-z])")
MOST_IN_A_PARAGRAPH, MOST_IN_A_SENTENCE = 5, 3


def numbers(text: str) -> list[str]:
    """The numbers of a text, bound and typed, without those that are part of a name."""
    return NUMBER.findall(NAMES.sub("name", VERDICT.sub("", prose(text))))


def crowded_paragraphs(page: Page) -> Iterator[Hit]:
    """Six numbers or more."""
    for block in page.paragraphs():
        if len(numbers(block.text)) > MOST_IN_A_PARAGRAPH:
            yield Hit(block.line, block.text)


def crowded_sentences(page: Page) -> Iterator[Hit]:
    """Four numbers or more."""
    for block in page.paragraphs():
        for sentence in sentences(block.text):
            if len(numbers(sentence)) > MOST_IN_A_SENTENCE:
                yield Hit(block.line, sentence)


UNITS = (
    r"[nµmu]?s|[kKMGT]?i?B|min|h|(?:nano|micro|milli)?seconds?|minutes?|hours?|bytes|[kMG]?Hz"
    r"|(?:requests|replies|pages|files|packets|connections|clients|calls|switches|messages|forks)"
    r"(?: a | per |/)(?:second|s)"
)
MEASURED = re.compile(
    rf"(?<![\w/.@-])(?:\d{{1,3}}(?:[\u202f\u00a0 ]\d{{3}})+|\d+(?:[.,]\d+)*)k?[\u202f\u00a0 ]?(?:{UNITS})\b"
)
EXERCISE = re.compile(r"\b(?:Easy|Medium|Hard), [^.]*\.")  #: how long an exercise takes
QUOTED = re.compile(r"“[^”]*”")
SOURCE = re.compile(
    r"\b(?:[Tt]alk|article|RFC|standard|POSIX|paper|(?:19|20)\d\d|manual|says|said|\w+\([1-8]\))(?=\W|$)"
)
OURS = re.compile(r"\b(?:[Tt]oday|[Nn]ow|[Hh]ere|[Ww]e|[Oo]urs?)\b|\[0\]")


#: What is said of a run that is printed beside it.
PRINTED = re.compile(
    r"\b[Ii]n (?:one|our|a|another|this|that|the same|some|both|each) (?:\w+ )?(?:runs?|trials?|try|tries|sections?)\b"
    r"|\b[Ii]n (?:a|the) run of\b|\b[Ww]e (?:saw|watched)\b|\bSuppose\b"
    r"|\b(?:median|best|worst|longest) of (?:\w+ ){1,3}runs\b"
)
#: Their numbers set up an experiment that is to be made or thought of, or have a guard.
SET_UP = {"exercise", "predict", "finding"}
QUANTITY = re.compile(r"^([\d.,\u202f\u00a0 ]*\dk?)[\u202f\u00a0 ]*", re.S)
SPELLED = {"second": "s", "seconds": "s", "milliseconds": "ms", "microseconds": "µs", "bytes": "B"}


def quantity(text: str) -> str:
    """A number with its unit in one spelling: "23 seconds" and "23 s" are "23 s", "3 000 000 bytes" is "3000000 B"."""
    number, _, unit = QUANTITY.sub(r"\1|", text.strip(), count=1).partition("|")
    return f"{re.sub('[^0-9.k]', '', number)} {SPELLED.get(unit, unit)}"


def unbound(page: Page) -> Iterator[Hit]:
    """Paragraphs with a number with a unit of time, size or rate that is not bound, no source's, not chosen by a
    program or a standard, and not of a run that is printed beside it. From a sentence that names a source on, numbers
    are the source's, up to one that speaks of us or of today.
    """
    for block in page.paragraphs():
        if SET_UP & set(block.inside):
            continue
        is_of_a_source = False
        for sentence in sentences(EXERCISE.sub("", QUOTED.sub("quoted", block.text))):
            is_of_a_source = bool(SOURCE.search(sentence)) or (is_of_a_source and not OURS.search(sentence))
            if is_of_a_source or PRINTED.search(sentence):
                continue
            measured = MEASURED.findall(sentence.replace(BOUND, "bound"))
            if any(quantity(each) not in page.chosen for each in measured):
                yield Hit(block.line, sentence)
                break


# ---- what stands where

#: A chip ends its section, as in "Claim 38: [38]; claim 40: [40]".
IN_PLACE = re.compile(r": \[[1-9]\d*\](?=\.?$|[;,] (?:and )?[Cc]laim)")


def chips(page: Page) -> Iterator[Hit]:
    """Verdicts in a sentence, and not at its end after a colon; those in tables are no sentence."""
    verdicts = {f"[{block.text}]" for block in page.blocks if block.kind == "span" and "verdict" in block.classes}
    for block in page.paragraphs():
        for match in VERDICT.finditer(IN_PLACE.sub("", block.text)):
            if match[0] in verdicts:
                yield Hit(block.line, block.text)


def alternatives(page: Page) -> Iterator[Hit]:
    """.when, in a paragraph and around paragraphs."""
    for block in page.blocks:
        if block.kind in ("span", "div") and "when" in block.classes:
            yield Hit(block.line, block.text or "a .when block")


def uncited(page: Page) -> Iterator[Hit]:
    """Figures that the text of their chapter does not cite."""
    cited = {label for block in page.paragraphs() for label in re.findall(r"@(fig:[\w-]*\w)", block.text)}
    for block in page.blocks:
        if block.kind == "image" and block.id not in cited:
            yield Hit(block.line, f"{block.text} {block.id and '#' + block.id}".strip())


def unanswered(page: Page) -> Iterator[Hit]:
    """Predictions that no paragraph beginning with "Answer." follows, before the next prediction and section."""
    open_one: Block | None = None
    for block in page.blocks:
        is_prediction = block.kind == "div" and "predict" in block.classes
        if open_one and (is_prediction or (block.kind == "heading" and block.level <= 2 and not block.inside)):
            yield Hit(open_one.line, "a prediction without an answer")
            open_one = None
        if is_prediction:
            open_one = block
        elif block.kind == "text" and block.text.startswith("Answer"):
            open_one = None
    if open_one:
        yield Hit(open_one.line, "a prediction without an answer")


def measurements(page: Page) -> Iterator[tuple[Block, list[Block]]]:
    """The parts of the sections of class .measurement: each heading with what follows it, predictions left out."""
    heading: Block | None = None
    body: list[Block] = []
    is_measurement = False
    for block in page.blocks:
        if block.kind == "heading" and not block.inside:
            if heading:
                yield heading, body
            if block.level <= 2:
                is_measurement = "measurement" in block.classes
            heading, body = (block if is_measurement else None), []
        elif "predict" not in [*block.inside, *block.classes]:
            body.append(block)
    if heading:
        yield heading, body


def unopened(page: Page) -> Iterator[Hit]:
    """Sections of a measurement in which a figure, a table or a bound number stands before the first finding."""
    for heading, body in measurements(page):
        for block in body:
            if block.kind == "div" and "finding" in block.classes:
                break
            if block.kind == "image" or "table" in block.inside or BOUND in block.text:
                yield Hit(heading.line, heading.text)
                break


class Count(NamedTuple):
    """What is counted."""

    name: str  #: the column's
    help: str
    hits: Counter


COUNTS = (
    Count("who", "who or whoever without a noun", that_match(WHO)),
    Count("he", "he, him, his for a client, a server, a process", he_of_a_thing),
    Count("body", "nobody, somebody, everybody", that_match(INDEFINITE)),
    Count("para6", "paragraphs with six or more numbers", crowded_paragraphs),
    Count("sent4", "sentences with more than three numbers", crowded_sentences),
    Count("paren", "whole sentences in parentheses", in_parentheses),
    Count("what", "sentences that begin with What ... is", that_match(WHAT_IS)),
    Count("chip", "verdicts inside sentences", chips),
    Count("when", ".when", alternatives),
    Count("told", "is told, are told, was told", that_match(TOLD)),
    Count("coined", "coinages that are not in the glossary", coined),
    Count("figure", "figures that the text does not cite", uncited),
    Count("answer", "predictions without an answer", unanswered),
    Count("finding", "measurements that do not open with a finding", unopened),
    Count("unbound", "paragraphs with a measured number that is not bound", unbound),
)


def counted(page: Page) -> dict[str, list[Hit]]:
    """Each count's hits, by its name."""
    return {count.name: list(count.hits(page)) for count in COUNTS}


def terms_of(outlines: Iterable[Outline]) -> list[str]:
    """The terms of the glossary, if it is among these."""
    return [block.text for each in outlines if each.slug == "glossary" for block in each.blocks if block.kind == "term"]


def name_of(outline: Outline) -> str:
    """The row of this file: 09-epoll, or slides/09-epoll for the notes."""
    return outline.slug if outline.source.parts[0] == "chapters" else f"slides/{outline.slug}"


def counts_of(outlines: list[Outline], chosen: Iterable[str] = ()) -> dict[str, dict[str, list[Hit]]]:
    """Row -> count -> hits, for chapters and slides together. `chosen`: quantities that nothing measures."""
    terms, chosen = terms_of(outlines), tuple(chosen)
    return {name_of(each): counted(page_of(each, terms, chosen)) for each in outlines}
