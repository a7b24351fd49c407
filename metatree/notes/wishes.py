"""Standing wishes: what a person wants always, found in what was said by how it is put, without a model.

"Always give version numbers when I ask about libraries" shares no word with the question that it governs, so no search
for that question finds it. So the sentence is kept, word for word, as a node of kind `wish` in a branch of its own,
with the turn or the memory that it stands in, and is offered beside what a search finds.

Three ways of saying it count: an order with *always*, *never* or *from now on* (a rule); *when I ask about …* (a rule,
with what it is for); *I prefer …*, *my preference for …*, *I'd rather … than …* (a preference). What is told ("I have
never been there"), asked ("should I always …?") or planned ("I'll make sure to …") is none. A wish is withdrawn or
replaced by a later one of the same person that says so: *no longer*, *instead*, *now*, or the contrary of a rule.

A file may name anybody as its speaker, so what a file says is marked as that, takes back nothing that the tree was
told, and is offered only where it is near the question.

Lost: a linear classifier over words (it learns the subjects of what it is shown); every sentence with *like*, *want* or
*prioritise* (two of three are no wish).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from metatree.node import Node
from metatree.result import Wish
from metatree.trees.tree import ROOT, Tree

BRANCH: Final = "wishes:"
"""The branch of what was noted; the wishes of a file lie below it."""
BRANCH_KIND: Final = "wishes"
KIND: Final = "wish"
MOST: Final = 3
"""So many are offered beside what a search found."""
LEAST: Final = 0.2
"""How near in meaning to the question a wish, or what it is for, must be; looked at on half of a benchmark."""
_TITLE_CHARS: Final = 120
_LEAST_CHARS: Final = 8
_MOST_CHARS: Final = 600
"""A longer sentence is no wish but a text."""

What = Literal["rule", "preference", "withdrawal"]

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_END = re.compile(r"(?<=[.!?])\s+|(?<=[.!?][\"”’)])\s+|\n+")
_ASKS = (
    r"(?:when(?:ever)?|every ?time|any ?time|each time|if) I(?:['’]m| am)? "
    r"(?:ask|asking|talk|talking|inquire|want to know|need)"
)
_BY_ME = r"\bI (?:\w+ly |still |also |now |always )?"


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


_ABOUT = re.compile(
    rf"\b{_ASKS}(?: you)?(?: to \w+)?(?: me)?(?: (?:about|for|on|with|regarding|something about))?"
    r" (?P<about>[^,;.!?]+)",
    re.IGNORECASE,
)
_CLAUSE = r"(?:^|[,;:—–-]\s*|\b(?:so|and|but|please|also|then)\s+)(?:please\s+|just\s+|also\s+)*"
_RULE = _any(
    rf"{_CLAUSE}(?:always|never)\s+(?!(?:mind|been|had|was|were|ever|say never|a|the|in|to)\b)[a-z]+\b(?<!ed)(?<!ing)",
    rf"{_CLAUSE}(?:do not|don['’]t) ever\s+[a-z]+",
    rf"{_CLAUSE}(?:from now on|going forward|in (?:the )?future|henceforth)\b,?\s+(?:please\s+)?(?!I\b|we\b)[a-z]+",
    r"\bI(?:['’]d| would)? (?:always |really )?(?:want|like|need|expect|ask) you (?:to )?(?:always|never)\b",
    r"\b(?:make sure|be sure|remember|see to it)(?: that)?(?: you| to)(?: to)? (?:always|never)\b",
    r"\byou (?:should|must) (?:always|never)\b",
    rf"^(?:please )?(?:{_ASKS})[^?]*,\s*(?:please |you should |I want you to |I['’]d like you to |always |never )",
    rf"^(?:please |do not |don['’]t )?[a-z]+ (?!I\b)[^?]*\b{_ASKS}\b[^?]*$",
)
_PREFERENCE = _any(
    rf"(?<!should )(?<!do )(?<!might )(?<!would )(?<!could ){_BY_ME}prefer\b(?! not to say)",
    rf"(?<!should )(?<!do )(?<!can )(?<!could ){_BY_ME}(?:prioriti[sz]ed?|favou?r|value)\b"
    r".+\b(?:over|rather than|instead of|despite)\b",
    r"\bI(?:['’]?d| would) (?:much )?rather\b.+\bthan\b",
    r"\bmy (?:\w+ )?preference (?:is|for|of|to)\b",
    r"\bI (?:don['’]t like|do not like|dislike|hate|can['’]t stand) it when\b",
)
_TOLD = _any(
    r"\b(?:should|do|does|did|can|could|would|will|what|how|why)\s+(?:I|you|we|they|he|she)\s+(?:always|never)\b",
    r"\b(?:I|we|they|he|she)(?:['’](?:ve|s|d|ll|m|re)| have| has| had| will| am| was)?\s+(?:always|never)\b",
)
_WITHDRAWAL = _any(
    r"\b(?:no need|(?:you )?(?:don['’]t|do not) (?:need|have)) to\b.*\b(?:any ?more|any longer)\b",
    r"\bI no longer (?:prefer|want|need|like|prioriti[sz]e)\b",
    r"\bI (?:don['’]t|do not) (?:prefer|want|need)\b.*\b(?:any ?more|any longer)\b",
    r"^(?:please )?(?:forget|ignore|drop|disregard)\b.*\b(?:wish|preference|instruction|rule)\b",
    r"^(?:please )?(?:forget|ignore|drop|disregard)\b.*\b(?:said|asked|told)\b.*\b(?:always|never)\b",
    r"^(?:please )?stop \w+ing\b.*\b(?:when(?:ever)? I ask|every ?time)\b",
)
_CHANGES = re.compile(
    r"\b(?:now|instead|no longer|from now on|these days|changed my mind|actually)\b", re.IGNORECASE
)
_CONTRARY = re.compile(r"\bnever\b|\b(?:don['’]t|do not) ever\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_][\w'’-]*")
_ENDING = re.compile(r"(?:ing|es|s|ed|e)$")
_EMPTY_WORDS = frozenset(
    _WORD.findall(
        """a an the i i'd i'm i've i'll you your my me we they it its is are be am was of for to on in at with about and
        or but so not no do don't does please always never now instead longer any more anymore need needs have when ever
        whenever time ask asks asking that this from prefer preference rather than over want wants like likes would what
        should must make sure can could will if as by just also really still forget ignore stop said told asked rule
        wish which instruction"""
    )
)
_CONVERSATIONS = frozenset({"session", "conversation", "file"})
_MOST_ALIKE: Final = 100
"""Of the wishes of a person that share a word, so many of the latest are compared: a file may hold 40,000."""
_SAME_SHARE: Final = 0.5
"""Of the words of the shorter of two wishes, so many are in both when one replaces the other."""


@dataclass(frozen=True, slots=True)
class Stated:
    """A wish as it stands in a text."""

    text: str
    """The sentence, word for word."""
    what: What
    about: str
    """What it is for, where it says so (*when I ask about …*); empty for always."""


def stated(text: str) -> list[Stated]:
    """Return the standing wishes that a text states, in order.

    Example:
        >>> [(each.what, each.about) for each in stated("Thanks! Always name versions when I ask about libraries.")]
        [('rule', 'libraries')]
        >>> stated("I have never been there. Should I always ask first?")
        []
    """
    found = (_wish(sentence.strip()) for sentence in _END.split(_CODE.sub(" ", text)))
    return [wish for wish in found if wish is not None]


def _wish(sentence: str) -> Stated | None:
    if not _LEAST_CHARS <= len(sentence) <= _MOST_CHARS:
        return None
    what: What
    if _WITHDRAWAL.search(sentence):
        what = "withdrawal"
    elif _PREFERENCE.search(sentence):
        what = "preference"
    elif not sentence.endswith("?") and not _TOLD.search(sentence) and _RULE.search(sentence):
        what = "rule"
    else:
        return None
    about = _ABOUT.search(sentence)
    return Stated(sentence, what, "" if about is None else about["about"].strip())


MACHINES: Final = frozenset(
    {"assistant", "system", "tool", "function", "developer", "model", "bot", "ai", "chatbot"}
)
"""Speakers of chat exports that are no persons, and want nothing."""


def wish_nodes(source: str, text: str, who: str, at: str = "") -> Iterator[tuple[Node, str]]:
    """Yield the wishes that a turn or a memory states, as nodes with the id of their parent.

    Args:
        source: id of the node that states them.
        who: who says it.
        at: when, in ISO 8601, as far as it is known.
    """
    if who.casefold() in MACHINES:
        return
    for number, wish in enumerate(stated(text), start=1):
        said = {"by": "wishes", "who": who, "at": at}
        attributes = {**said_attributes(wish, source), "who": who, "at": at}
        node = Node(
            _id(source, number), title_of(wish), wish.text, kind=KIND, provenance=said, attributes=attributes
        )
        yield node, BRANCH


def said_attributes(wish: Stated, source: str) -> dict[str, str]:
    """Return what the node of a wish keeps besides its words: what it is, what it is for, and where it stands."""
    return {"what": wish.what, "about": wish.about, "from": source}


def title_of(wish: Stated) -> str:
    """Return what the node of a wish is called."""
    return wish.text if len(wish.text) <= _TITLE_CHARS else f"{wish.text[: _TITLE_CHARS - 1].rstrip()}…"


def note_wishes(tree: Tree, source: str, text: str, who: str, at: str = "") -> None:
    """Add to the tree the wishes that one of its nodes states."""
    found = list(wish_nodes(source, text, who, at))
    if found:
        have_branch(tree)
        tree.add_many(found)


def have_branch(tree: Tree) -> None:
    """Make the branch of wishes, where it is not there yet."""
    if BRANCH not in tree:
        tree.add(branch(), ROOT)


def branch() -> Node:
    """Return the node that wishes lie under."""
    return Node(
        BRANCH, "Wishes", "What people want always, or prefer", kind=BRANCH_KIND, provenance={"by": "wishes"}
    )


def wishes_of(tree: Tree, source: str) -> list[Node]:
    """Return the nodes of the wishes that a turn or a memory states."""
    found: list[Node] = []
    while (node := tree.find(_id(source, len(found) + 1))) is not None:
        found.append(node)
    return found


def _id(source: str, number: int) -> str:
    return f"{BRANCH}{source}~{number}"


def standing(tree: Tree, under: str | None = None) -> list[Wish]:
    """Return the wishes that hold, in the order in which they were stated, without those that later ones took back.

    Args:
        under: where a search begins: a wish from a conversation holds at or above it, and in it; one that somebody
            told the tree to remember holds everywhere.
    """
    return _left(_all(tree, under), {})


def taken_back(tree: Tree) -> dict[str, Wish]:
    """Return the wishes that later ones took back or replaced, by the ids of the later ones."""
    taken: dict[str, Wish] = {}
    _left(_all(tree, None), taken)
    return taken


def _all(tree: Tree, under: str | None) -> list[Wish]:
    known: tuple[int, list[Wish]] | None = tree.scratch.get(BRANCH)
    if known is None or known[0] != tree.sequence:
        sequence = tree.sequence
        branches = dict.fromkeys(tree.parent(node_id) or ROOT for node_id in sorted(tree.ids([KIND])))
        found = [
            _read(each)
            for parent in branches
            for each in tree.children(parent)
            if each.kind == KIND and _is_whole(each)
        ]
        # What was said in one second stays in the order in which it came.
        known = tree.scratch[BRANCH] = (sequence, sorted(found, key=lambda each: each.at))
    wishes = known[1]
    if under is not None and under != ROOT:
        above = {*tree.ancestors(under), under}
        wishes = [wish for wish in wishes if _holds(tree, wish, under, above)]
    return wishes


def _holds(tree: Tree, wish: Wish, under: str, above: set[str]) -> bool:
    source = tree.find(wish.source)
    if source is None or source.kind == "memory":
        return True
    way = [*tree.ancestors(source), source.id]
    same = above.intersection(way)
    return under in way or any(tree.get(each).kind in _CONVERSATIONS for each in same)


def check_wish(node: Node) -> None:
    """Raise ValueError for the node of a wish that lacks what a wish says of itself."""
    if not _is_whole(node):
        raise ValueError(f"{node.id!r} is no wish: it does not say who wants it, when, and for what")


def _is_whole(node: Node) -> bool:
    return all(isinstance(node.attributes.get(name), str) for name in ("what", "about", "who", "at", "from"))


def _read(node: Node) -> Wish:
    about = node.attributes
    source = f"{node.path}{about['from']}" if node.source is not None else about["from"]
    return Wish(
        node.id,
        node.description,
        about["what"],
        about["about"],
        about["who"],
        about["at"],
        source,
        node.path if node.source is not None else None,
    )


def _left(wishes: Sequence[Wish], taken: dict[str, Wish]) -> list[Wish]:
    """Return what later wishes of the same person leave: each takes back at most the one most like it.

    Args:
        taken: takes up which wish each later one took back.
    """
    left: dict[int, tuple[Wish, bool, set[str]]] = {}
    places: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, wish in enumerate(wishes):
        changes = wish.what == "withdrawal" or _CHANGES.search(wish.text) is not None
        is_contrary, words = _CONTRARY.search(wish.text) is not None, _words(wish)
        like = [
            (_share(words, left[place][2]), place)
            for place in {place for word in words for place in places[wish.who, word][-_MOST_ALIKE:]}
            if place in left
            and (wish.file is None or left[place][0].file is not None)
            and (changes or left[place][1] != is_contrary)
        ]
        if like and max(like)[0] >= _SAME_SHARE:
            taken[wish.node] = left.pop(max(like)[1])[0]
        if wish.what != "withdrawal":
            left[number] = (wish, is_contrary, words)
            for word in words:
                places[wish.who, word].append(number)
    return [wish for wish, _, _ in left.values()]


def _share(one: set[str], other: set[str]) -> float:
    return len(one & other) / max(1, min(len(one), len(other)))


def _words(wish: Wish) -> set[str]:
    words = (match.group().casefold() for match in _WORD.finditer(wish.text))
    return {_ENDING.sub("", word) for word in words if word not in _EMPTY_WORDS}


def applying(
    tree: Tree,
    questions: Sequence[str],
    under: str | None,
    near: Callable[[str, Sequence[str]], Sequence[float]],
) -> list[Wish]:
    """Return the wishes that can apply to some of the questions, the likeliest first, at most `MOST`.

    Args:
        near: says how near a question is to each of some texts, in [0, 1].
    """
    wishes = standing(tree, under)
    if not wishes:
        return []
    surely = [0.0] * len(wishes)
    for question in questions:
        scores = near(question, [wish.about or wish.text for wish in wishes])
        surely = [max(pair) for pair in zip(surely, scores, strict=True)]
    for number, wish in enumerate(wishes):
        if wish.what == "rule" and not wish.about and wish.file is None:  # it is for everything
            surely[number] = max(surely[number], LEAST)
    order = sorted(range(len(wishes)), key=lambda number: -surely[number])
    return [wishes[number] for number in order if surely[number] >= LEAST][:MOST]
