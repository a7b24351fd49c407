"""The passages that come closest to what nothing answers, as people are shown them: on the page and in chats."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from metatree_memory_tools.text.document_place import page_word
from metatree_memory_tools.text.readable import readable

from metatree_agents.service.queue.models import NOT_SAID
from metatree_agents.service.queue.queue import Query
from metatree_agents.service.queue.recommendations import PLAIN, TYPES

CLOSEST: Final = "Closest passages:"
PASSAGES: Final = 3
"""How many passages are shown for one question."""
QUESTIONS: Final = 20
"""For how many questions."""
SHORT_LINES: Final = 3
SHORT_CHARS: Final = 120
"""What is shown of a quote whole where three passages are to be seen at once, on a phone too."""
_SAID_IN: Final = re.compile(
    rf"(.*) \(({'|'.join(map(re.escape, TYPES))}), topic (.+?)\)(, and \d+ more times?)?"
)
"""How it is said of a memory that it was recommended, and in which topic."""
_SAID: Final = re.compile(r"said by (.*) on (\d{4}-\d\d-\d\d)")
_KINDS: Final = {
    "Make Correction": "correction",
    "Add Missing Info": "added",
    "Suggest Improvement": "improvement",
    "Clarify Phrasing": "clarification",
    "Promote Answer": "called helpful",
}
"""What a memory is that somebody recommended so."""
LINES: Final = 12
CHARS: Final = 700


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage with its place; the quote is cut."""

    node: str
    """Empty when the engine named none."""
    title: str
    place: str
    """The path of its file or the id of its node, with its lines."""
    quote: str
    said_by: str
    """Empty for what is in the sources."""
    tree: str | None = None
    """The name of its tree; None where trees have none."""

    @property
    def is_long(self) -> bool:
        """Whether the page shows the beginning of the quote at first, so that all passages are seen at once."""
        return len(self.quote) > SHORT_CHARS or self.quote.count("\n") >= SHORT_LINES


def closest_of(query: Query) -> dict[str, list[ShownPassage]]:
    """Return the passages by the question that they come close to; those of the query as a whole are by its text.

    A part of the query that stayed open is among them without passages, too.
    """
    ending = query.ending
    questions = dict.fromkeys([*ending.open, *(given["Question"] for given in ending.closest)])
    names = {question: question for question in questions}
    if not ending.answered and len(names) == 1:
        names = dict.fromkeys(names, query.text)
    shown: dict[str, list[ShownPassage]] = {names[question]: [] for question in questions}
    for given in ending.closest:
        shown[names[given["Question"]]].append(_shown(given))
    if not ending.answered and not shown.get(query.text):
        shown.pop(query.text, None)  # what is said of the query says it
    return {question: passages[:PASSAGES] for question, passages in list(shown.items())[:QUESTIONS]}


def said_of_open(query: Query) -> str:
    """Return what is said of a query that stayed open, before the passages that come closest."""
    said = "\n\n".join(query.answer or ()).strip() or NOT_SAID
    return f"{said} {CLOSEST}" if query.text in closest_of(query) else said


def cut(text: str, *, lines: int = LINES, chars: int = CHARS) -> str:
    """Return the beginning of a text, with an ellipsis where it is cut, which is not in a word.

    Example:
        >>> cut("one two three", chars=9)
        'one two …'
        >>> cut("one\\ntwo\\nthree", lines=2)
        'one\\ntwo\\n…'
    """
    text = text.strip("\n").rstrip()
    beginning = "\n".join(text.split("\n", lines)[:lines])
    if len(beginning) > chars:
        # A text without blanks is cut where it is too long.
        end = max(beginning.rfind(blank, 0, chars + 1) for blank in " \n")
        return beginning[: end if end > chars // 2 else chars].rstrip() + " …"
    return beginning if beginning == text else beginning.rstrip() + "\n…"


def place_of(given: Mapping[str, Any]) -> str:
    """Return the place of a source or passage: the path of its file or the id of its node, with its lines or pages.

    Example:
        >>> place_of({"Path": "a.pdf", "Pages": [2, 3]}), place_of({"Path": "a.pptx", "Pages": [2, 2]})
        ('a.pdf, pages 2–3', 'a.pptx, slide 2')
    """
    place = " ".join((given.get("Place") or given.get("Path") or given.get("Node") or "").split())
    for name, one in (("Lines", "line"), ("Pages", page_word(place))):
        match given.get(name):
            case [int(first), int(last)] if first:
                where = f"{one} {first}" if last <= first else f"{one}s {first}–{last}"
                return f"{place}, {where}" if place else where
    return place


def said_by_of(given: Mapping[str, Any]) -> str:
    """Return who said a source or passage, or that it was imported; empty for what is in the sources, or not said."""
    said = given.get("SaidBy")
    return " ".join(said.split()) if isinstance(said, str) else ""


@dataclass(frozen=True, slots=True)
class SaidInWords:
    """Who said a memory, for people."""

    text: str
    who: str = ""
    kind: str = ""
    topic: str = ""
    """Where it was recommended, by whom and as what; empty for what nobody recommended."""
    once: bool = True
    """Whether nobody said it another time."""


def said_in_words(said_by: str) -> SaidInWords:
    """Return who said a memory as people are told it: without the name of its topic, which may not be theirs to see.

    Example:
        >>> said_in_words("said by Ann on 2026-11-27 (Add Missing Info, topic what-is-the-wifi)").text
        'added by Ann, 2026-11-27'
        >>> said_in_words("imported from notes.json on 2026-11-27").text
        'imported from notes.json on 2026-11-27'
    """
    found = _SAID_IN.fullmatch(said_by)
    if found is None:
        return SaidInWords(said_by)
    said, kind, topic, more = found.groups(default="")
    who = _SAID.fullmatch(said)
    if who is None:
        return SaidInWords(f"{said}{more}: {PLAIN.get(kind, kind)}", "", kind, topic)
    text = f"{_KINDS.get(kind, kind)} by {who[1]}, {who[2]}{more}"
    return SaidInWords(text, who[1], kind, topic, once=not more)


def shown_quote(given: Mapping[str, Any], *, lines: int = LINES, chars: int = CHARS) -> str:
    """Return what a source or passage quotes, without markup and cut; the exact words are in its JSON.

    Example:
        >>> shown_quote({"Quote": "| | |\\n|---|---|\\n| `--host` | Address to listen on. |", "Place": "a.md"})
        '--host | Address to listen on.'
    """
    text = readable(str(given["Quote"]), given.get("Place") or given.get("Path") or "")
    return cut(text, lines=lines, chars=chars)


def _shown(given: Mapping[str, Any]) -> ShownPassage:
    node, place = given.get("Node") or "", place_of(given)
    title = " ".join((given.get("Title") or "").split())
    return ShownPassage(
        node, title or place or "a passage", place, shown_quote(given), said_by_of(given), given.get("Tree")
    )
