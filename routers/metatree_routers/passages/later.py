"""Of two passages that answer a question and contradict, the later one answers, and the earlier one is named.

Two statements contradict when they have the same words of the question, and the values differ that it asks for: numbers
of the same unit, dates, names, yes and no; or when they differ in a word or two alone. What they are of must have a
date: of a turn, a letter or a memory, of the front matter of a document, or of the heading of a release; releases
without a date count by their version, within one file. Where dates are equal, missing, or not of one kind, nothing is
said. A date to come is none, since what is written has been written; and no file or import is later than what the tree
was told itself: whoever wrote it chose its date.

Lost: the order in which things came into the tree, which is not when they were said; the dates of files, which any
copy changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Final

from metatree._util.numbers import whole_number
from metatree.node import Node
from metatree.notes.notes import IMPORT, mentions
from metatree.protocols import EarlierStatement
from metatree_routers.passages.asked import Asked
from metatree_routers.passages.features import PassageCandidate
from metatree_routers.query.terms import STOP_WORDS, raw_tokens, terms

LOOKED_AT: Final = 20
"""Candidates that may contradict the first."""
MOST_EARLIER: Final = 2
_COVER = 0.45
"""Of the weight of a question that each statement has."""
_SAME_COVER = 0.75
"""Of the weight that either has, the share that both have."""
_SAME_COVER_COUNTED = 0.6
"""The same, where what is counted is in the question: `How many books` and `12 books`."""
_SHARED = 0.7
"""Of the weight of a question that both have, where what is counted is not in it."""
_ASKED_BY = frozenset(terms("many much long often large big amount number current currently"))
"""Words that ask for a value and are not said with it."""
_SAME_WORDS = 0.6
"""Of the words of two statements that differ in little, the share that both have."""
_DIFFERENT_WORDS = 3


@dataclass(frozen=True, slots=True)
class When:
    """When something was said: comparable with what has the same `scale`."""

    shown: str
    """A date, or a version."""
    place: tuple[int, ...]
    scale: str = ""
    """'' for dates; for versions the file that they are of."""
    turn: tuple[str, int] = ("", 0)
    """The session that it is of, and its number there: turns follow each other whose dates are equal."""
    told: bool = False
    """Whether somebody said it to this tree, at that time by its own clock."""

    def is_before(self, other: When) -> bool:
        """Whether this is earlier; False for what cannot be compared, and for what is of one day or minute."""
        if self.scale != other.scale or (self.told and not other.told):
            return False
        common = min(len(self.place), len(other.place)) if not self.scale else None
        mine, others = self.place[:common], other.place[:common]
        if mine != others or self.scale:
            return mine < others
        return self.turn[0] == other.turn[0] and self.turn[1] < other.turn[1]


@dataclass(frozen=True, slots=True)
class _Statement:
    """A sentence of a passage."""

    candidate: PassageCandidate
    text: str
    when: When | None = None


Lineage = Callable[[str], Sequence[tuple[Node, str]]]
"""Gives a node and those above it, the nearest first, each with its content."""


def in_time(
    asked: Asked,
    weights: Mapping[str, float],
    ranked: Sequence[tuple[PassageCandidate, float]],
    lineage: Lineage,
) -> tuple[list[tuple[PassageCandidate, float]], tuple[EarlierStatement, ...]]:
    """Put the latest of the passages first that contradict the first one.

    Args:
        weights: of the terms of the question.
        ranked: passages with how likely each answers, the likeliest first.

    Returns:
        The passages, where the latest has changed places and scores with the first; and what the others of them
        said earlier, the latest first.
    """
    unchanged = list(ranked), ()
    weights = {term: weight for term, weight in weights.items() if term not in _ASKED_BY}
    if not ranked:
        return unchanged
    first = _statement(asked, weights, ranked[0][0])
    if first is None:
        return unchanged
    others = {
        number: said
        for number, (candidate, _) in enumerate(ranked[1:LOOKED_AT], start=1)
        if (said := _statement(asked, weights, candidate)) is not None
        and _contradict(asked, weights, first, said)
    }
    if not others:
        return unchanged
    day = datetime.now(UTC) + timedelta(days=1)  # whatever the zone
    tomorrow = (day.year, day.month, day.day)
    nodes = {said.candidate.node: lineage(said.candidate.node) for said in (first, *others.values())}
    dated = {
        number: replace(said, when=when)
        for number, said in {0: first, **others}.items()
        if (when := _when(said.candidate, nodes[said.candidate.node])) is not None
        and (when.scale or when.place[:3] <= tomorrow)
        and (number == 0 or _same_speaker(said, first, nodes))
    }
    if 0 not in dated:
        return unchanged
    at = 0
    for number, said in dated.items():
        at = number if _is_before(dated[at], said) else at
    latest = dated[at]
    # Those that contradict the first may say what the latest says.
    earlier = [
        said
        for said in dated.values()
        if _is_before(said, latest) and _contradict(asked, weights, latest, said)
    ]
    if not earlier:
        return unchanged
    earlier.sort(key=lambda said: (said.when.place, said.when.turn) if said.when else ((), ()), reverse=True)
    swapped = list(ranked)
    swapped[0], swapped[at] = (ranked[at][0], ranked[0][1]), (ranked[0][0], ranked[at][1])
    return swapped, tuple(
        EarlierStatement(
            said.candidate.node, said.candidate.title, said.text, said.when.shown if said.when else ""
        )
        for said in earlier[:MOST_EARLIER]
    )


def _is_before(one: _Statement, other: _Statement) -> bool:
    return one.when is not None and other.when is not None and one.when.is_before(other.when)


# -- what is said ---------------------------------------------------------------------------------------------------

_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[A-Z\d\"'(\[])|\n")
_STAMP = re.compile(r"^\[[^\]\n]{4,40}\] ")
_NUMBER_WORDS: Final = {
    word: str(number)
    for number, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        ]
    )
}
_MONTHS: Final = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DAY = re.compile(
    r"\b(?P<iso>\d{4}-\d\d-\d\d)\b"
    rf"|\b(?P<month>{_MONTH})\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<year>\d{{4}}))?"
    rf"|\b(?P<day2>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?(?P<month2>{_MONTH})\b(?:,? (?P<year2>\d{{4}}))?"
    r"|\b(?P<weekday>(?:mon|tues|wednes|thurs|fri|satur|sun)days?)\b"
    r"|\b(?P<time>\d{1,2}:\d\d(?: ?[ap]m)?|\d{1,2} ?[ap]m)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?<![\w.])(?P<sign>[$€£]?)(?P<number>v?\d+(?:[.,]\d+)*)(?P<unit> ?%|[a-zA-Z]{1,3}\b)?(?!\w)"
    rf"|\b(?P<word>{'|'.join(_NUMBER_WORDS)})\b",
    re.IGNORECASE,
)
_NO = re.compile(
    r"\b(?:not(?! (?:sure|only|just)\b)|never|no longer|no|none|cannot|without)\b|n't\b", re.IGNORECASE
)
_NAME = re.compile(r"(?<![\w-])[A-Z][\w'-]+")
_FIRST_PERSON = re.compile(r"\b(?:i|my|me|mine|we|our|i'm|i've)\b", re.IGNORECASE)
_NO_STATEMENT = re.compile(r":$|\be\.g\.|\bfor example\b|\bsuch as\b", re.IGNORECASE)
"""Of headings and examples."""
_CLAUSE_END = re.compile(r"[,;:()\u2013\u2014] |, |\s(?:but|and|which|while|after|because|since)\s")
_ASSISTANTS: Final = frozenset({"assistant", "chatgpt", "claude", "gemini", "bot", "model", "ai", "system"})
_ASKS = re.compile(r"\?[\"')\]]*$")


def _statement(asked: Asked, weights: Mapping[str, float], candidate: PassageCandidate) -> _Statement | None:
    """Return the sentence of a passage that has most of the question; None where none has enough."""
    above = set(terms(candidate.head)) & weights.keys()
    best, found = 0.0, None
    for text in _sentences(candidate.text):
        if _NO_STATEMENT.search(text) or (_ASKS.search(text) and not _values(text, asked, weights)):
            continue
        share = _weight(set(terms(text)) & weights.keys() | above, weights)
        if share > best:
            best, found = share, _Statement(candidate, text)
    return found if best >= _COVER else None


def _sentences(text: str) -> Iterator[str]:
    start = 0
    for end in [*(match.span() for match in _END.finditer(text)), (len(text), len(text))]:
        piece = text[start : end[0]]
        stamp = _STAMP.match(piece)
        skipped = len(piece) - len(piece.lstrip(" \t-*+#>")) if stamp is None else stamp.end()
        if piece.strip():
            yield piece[skipped:].rstrip()
        start = end[1]


def _weight(some: set[str], weights: Mapping[str, float]) -> float:
    return sum(weights[term] for term in some) / max(sum(weights.values()), 1e-9)


def _contradict(asked: Asked, weights: Mapping[str, float], one: _Statement, other: _Statement) -> bool:
    """Whether two statements say different things of what a question asks for."""
    mine, others = (_of_question(each, weights) for each in (one, other))
    either = _weight(mine | others, weights)
    share = _weight(mine & others, weights) / either if either else 0.0
    values, other_values = (_values(each.text, asked, weights) for each in (one, other))
    counted = values.keys() & other_values.keys() & weights.keys()
    if share < (_SAME_COVER_COUNTED if counted else _SAME_COVER):
        return False
    names = {term for name in _NAME.findall(asked.text[1:]) for term in terms(name)} & weights.keys()
    names |= {term for exact in asked.exact for term in terms(exact)} & weights.keys()
    if names & mine != names & others:
        return False
    if _differ_in_little(one.text, other.text, weights):
        return True
    if not counted and _weight(mine & others, weights) < _SHARED:
        return False
    if asked.kind == "yes":
        said = (_NO.search(_nearest(each.text, weights)) is not None for each in (one, other))
        return len({*said}) == 2
    return _values_differ(values, other_values)


def _of_question(statement: _Statement, weights: Mapping[str, float]) -> set[str]:
    return (set(terms(statement.text)) | set(terms(statement.candidate.head))) & weights.keys()


def _differ_in_little(one: str, other: str, weights: Mapping[str, float]) -> bool:
    """Whether two statements are the same but for a word or two, or for a no."""
    mine, others = (
        {raw.casefold() for raw in raw_tokens(text) if raw.casefold() not in STOP_WORDS}
        for text in (one, other)
    )
    both = mine & others
    if len(both) < max(2, _SAME_WORDS * min(len(mine), len(others))):
        return False
    left, right = mine - both, others - both
    if max(len(left), len(right)) > _DIFFERENT_WORDS:
        return False
    if left and right:
        return not {term for word in left for term in terms(word)} <= {
            t for word in right for t in terms(word)
        }
    return bool(_NO.search(one)) != bool(_NO.search(other))


Values = Mapping[str, frozenset[str]]


def _values(text: str, asked: Asked, weights: Mapping[str, float]) -> Values:
    """Return what a statement says that may answer a question of its kind: unit -> values."""
    known = {raw.casefold() for raw in raw_tokens(asked.text)}
    if asked.kind == "who":
        names = {name for name in _NAME.findall(text) if name.casefold() not in known | STOP_WORDS}
        return {"name": frozenset(names)} if names else {}
    if asked.kind == "when":
        days = {_day(match) for match in _DAY.finditer(text)}
        return {"day": frozenset(days)} if days else {}
    if asked.kind not in ("amount", "version", "default", "option", "what", ""):
        return {}
    bare = _DAY.sub(lambda match: " " * len(match[0]), text)
    counted = _numbers(bare, known)
    if asked_for := counted.keys() & weights.keys():
        return {unit: counted[unit] for unit in asked_for}
    counted = _numbers(_nearest(bare, weights), known)
    return counted if sum(map(len, counted.values())) == 1 else {}


def _nearest(text: str, weights: Mapping[str, float]) -> str:
    """Return the clause of a statement that has most of the question."""
    clauses = _CLAUSE_END.split(text)
    return max(clauses, key=lambda clause: _weight(set(terms(clause)) & weights.keys(), weights))


def _numbers(text: str, known: set[str]) -> Values:
    values: dict[str, set[str]] = {}
    for match in _NUMBER.finditer(text):
        number = _NUMBER_WORDS.get((match["word"] or "").casefold()) or (match["number"] or "").replace(
            ",", ""
        )
        if number not in known:
            values.setdefault(_unit(match, text), set()).add(number.lstrip("vV"))
    return {unit: frozenset(found) for unit, found in values.items()}


def _unit(match: re.Match[str], text: str) -> str:
    """Return what a number counts: its sign, or the word after it."""
    own = (match["sign"] or "") + (match["unit"] or "").strip().casefold()
    if own:
        return own
    after = re.match(r"[ -]+([A-Za-z]\w+)", text[match.end() :])
    if after is None or after[1].casefold() in STOP_WORDS:
        return ""
    return next(iter(terms(after[1])), "")


def _values_differ(one: Values, other: Values) -> bool:
    """Whether two statements have other values of one unit; a single number without one is of any."""
    shared = one.keys() & other.keys()
    if shared:
        return any(not one[unit] & other[unit] for unit in shared if unit) or (
            shared == {""} and not one[""] & other[""]
        )
    for lone, rest in ((one, other), (other, one)):
        if set(lone) == {""} and len(rest) == 1:
            return not lone[""] & next(iter(rest.values()))
    return False


def _day(match: re.Match[str]) -> str:
    if match["iso"]:
        return match["iso"][5:]
    month, day = match["month"] or match["month2"], match["day"] or match["day2"]
    if month:
        return f"{_MONTHS.index(month[:3].casefold()) + 1:02}-{int(day):02}"
    return (match["weekday"] or match["time"]).casefold().replace(" ", "").removesuffix("s")


# -- when it is said -------------------------------------------------------------------------------------------------

_HEADING = re.compile(r"^\s{0,3}(?:#{1,6}\s+)?(.+)$")
_VERSION = re.compile(r"(?<![\w.])v?(\d{1,5}(?:\.\d{1,5}){1,3})(?![\w.]*\d)")
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_FRONT_DATE = re.compile(
    r"^(?:date|updated|lastmod|last_modified_at|modified)\s*:\s*[\"']?([^\"'\n]+)", re.MULTILINE
)
_FULL_DAY = re.compile(
    rf"\b(?P<iso>\d{{4}}[-/]\d{{1,2}}[-/]\d{{1,2}})\b"
    rf"|\b(?P<month>{_MONTH})\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<year>\d{{4}})\b"
    rf"|\b(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?\.? (?P<month2>{_MONTH}),? (?P<year2>\d{{4}})\b",
    re.IGNORECASE,
)


def _when(candidate: PassageCandidate, lineage: Sequence[tuple[Node, str]]) -> When | None:
    """Return when a passage was written: by the nearest thing around it that says so.

    Args:
        lineage: its node and those above it, the nearest first, each with its content.
    """
    if not lineage:
        return None
    node = lineage[0][0]
    if candidate.is_code and node.kind != "turn":  # the turns of a `.jsonl` are none
        return None
    turn = _turn(node, lineage)
    heads = [*_own_heading(candidate), *reversed(candidate.leads)]
    for head in heads:
        if (when := _of_heading(head, node)) is not None:
            return when
    for number, (each, content) in enumerate(lineage):
        at = str(_at(each) or "")
        if at and (place := _moment(at)):
            told = bool(mentions(each)) and each.provenance.get("by") != IMPORT
            return When(at[:10], place, turn=turn if number == 0 else ("", 0), told=told)
        if (when := _of_heading(each.title, node)) is not None and each.path:
            return when
        front = _FRONT.match(content[:4_000]) if content.startswith("---") else None
        if (
            front is not None
            and (dated := _FRONT_DATE.search(front[1]))
            and (when := _of_heading(dated[1], node))
        ):
            return when
    return None


def _at(node: Node) -> object:
    said = mentions(node)
    return said[-1]["at"] if said else node.attributes.get("at") or node.provenance.get("at")


def _turn(node: Node, lineage: Sequence[tuple[Node, str]]) -> tuple[str, int]:
    """Return the session of a turn and its number there, by the end of its id."""
    number = re.search(r"(\d+)$", node.id)
    if node.kind != "turn" or number is None or len(lineage) < 2:
        return "", 0
    return lineage[1][0].id, whole_number(number[1]) or 0


def _own_heading(candidate: PassageCandidate) -> Iterator[str]:
    """Yield the first line of a passage where it stands alone, as a heading does."""
    first, _, rest = candidate.text.lstrip("\n").partition("\n")
    below = rest.partition("\n")[0].strip()
    if first.lstrip().startswith("#") or (len(below) > 2 and not below.strip("=-~^")):
        yield first.strip(" #")


def _of_heading(text: str, node: Node) -> When | None:
    """Return the date in a heading, or its version."""
    if (day := _FULL_DAY.search(text)) is not None:
        place = _day_of(day)
        if place is not None:
            return When(f"{place[0]:04}-{place[1]:02}-{place[2]:02}", place)
    if (version := _VERSION.search(text)) is not None and len(text) < 60:
        return When(version[1], tuple(map(int, version[1].split("."))), scale=node.path or node.id)
    return None


def _day_of(match: re.Match[str]) -> tuple[int, int, int] | None:
    try:
        if match["iso"]:
            year, month, day = map(int, re.split("[-/]", match["iso"]))
        else:
            name, number = match["month"] or match["month2"], match["day"] or match["day2"]
            month, day = _MONTHS.index(name[:3].casefold()) + 1, int(number)
            year = int(match["year"] or match["year2"])
        return date(year, month, day).timetuple()[:3]
    except ValueError:
        return None


def _moment(at: str) -> tuple[int, ...]:
    """Return an ISO 8601 date as year, month, day, with the minutes and seconds of that day where it has them."""
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return ()
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC)
    return moment.timetuple()[: 3 if len(at) <= 10 else 5 if len(at) <= 16 else 6]


def _same_speaker(
    one: _Statement, other: _Statement, nodes: Mapping[str, Sequence[tuple[Node, str]]]
) -> bool:
    """Whether two turns can speak of one thing: what a model says is advice, and `my` is that of one speaker."""
    speakers = [
        str(nodes[each.candidate.node][0][0].attributes.get("speaker", ""))
        if nodes[each.candidate.node]
        else ""
        for each in (one, other)
    ]
    if speakers[0] == speakers[1]:
        return speakers[0].casefold() not in _ASSISTANTS
    personal = _FIRST_PERSON.search(one.text) or _FIRST_PERSON.search(other.text)
    return not personal and not any(speaker.casefold() in _ASSISTANTS for speaker in speakers)
