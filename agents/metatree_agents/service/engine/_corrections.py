"""What people corrected in the words that an answer quotes: the asker reads the correction beside them.

A correction lowers what it corrects for questions like its own alone; asked in other words the same line is quoted
again. So a memory that corrects keeps which words it corrects, as long as the flag stands that it set with them.

Lost: hiding the line (one person could make a text unfindable), and a mark on the node (the rest of it is right).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from metatree import Node, Tree
from metatree.notes.feedback import flags
from metatree.notes.notes import memories, mentions

CORRECTED: Final = "corrected"
"""Why what a correction names is flagged."""
_ATTRIBUTE: Final = "corrects"
_MOST: Final = 10
_QUOTE_CHARS: Final = 4_000
_TEXT_CHARS: Final = 300
_LEAST_CHARS: Final = 6
"""A shorter line is in too many texts."""


def keep_corrected(tree: Tree, memory: str, quotes: Sequence[tuple[str, str]]) -> None:
    """Keep with a memory which words it corrects: (id of the node, its words)."""
    node = tree.get(memory)
    kept = _corrected(node)
    kept += [{"node": each, "quote": quote.strip()[:_QUOTE_CHARS]} for each, quote in quotes if quote.strip()]
    kept = [each for number, each in enumerate(kept) if each not in kept[:number]][-_MOST:]
    if kept != _corrected(node):
        tree.update(replace(node, attributes={**node.attributes, _ATTRIBUTE: kept}))


@dataclass(frozen=True, slots=True)
class _Correction:
    """What a person's memory corrects, as far as the person's flags stand."""

    memory: Node
    who: str
    at: str
    corrected: Sequence[Mapping[str, str]]

    @property
    def sentence(self) -> str:
        text = " ".join((self.memory.content or "").split())
        cut = text if len(text) <= _TEXT_CHARS else f"{text[:_TEXT_CHARS]}…"
        return f"Corrected by {self.who} on {self.at[:10]}: {cut}"

    def replaces(self, other: _Correction) -> bool:
        """Whether the same person said it later, against the same words."""
        rows = [{"Node": each["node"], "Quote": each["quote"]} for each in self.corrected]
        return self.who == other.who and self.at > other.at and any(map(other.is_of, rows))

    def is_of(self, source: Mapping[str, Any]) -> bool:
        """Whether a source quotes words that it corrects."""
        node = source.get("Node")
        return any(each["node"] == node and _shares(each["quote"], source) for each in self.corrected)


def corrections_of(tree: Tree, sources: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what was said against the words that the sources of an answer quote, a sentence for each person's word.

    Of a correction that was corrected itself, the later one, and of a person's against the same words the last.
    """
    flagged = {(each.node, each.who) for each in flags(tree.memory) if each.why == CORRECTED}
    if not flagged:
        return []
    standing = [
        _Correction(memory, mention["who"], mention["at"], stands)
        for memory in memories(tree)
        for mention in mentions(memory)[-1:]
        if (stands := [each for each in _corrected(memory) if (each["node"], mention["who"]) in flagged])
    ]
    found = [each for each in standing if any(map(each.is_of, sources))]
    passed = {str(source.get("Node") or "") for source in sources}
    said = list[_Correction]()
    while found:
        each = found.pop(0)
        if each.memory.id in passed:
            continue
        passed.add(each.memory.id)
        later = [one for one in standing if one.is_of({"Node": each.memory.id, "Quote": each.memory.content})]
        found += later
        if not later:
            said.append(each)
    return [each.sentence for each in said if not any(other.replaces(each) for other in said)]


def _shares(corrected: str, source: Mapping[str, Any]) -> bool:
    """Whether a source quotes a line of what was corrected, or a part of it."""
    quote = str(source.get("Quote") or "")
    lines, said = _lines(corrected), _lines(quote)
    return any(one in other or other in one for one in lines for other in said)


def _lines(text: str) -> list[str]:
    plain = (" ".join(line.split()).casefold() for line in text.split("\n"))
    return [line for line in plain if len(line) >= _LEAST_CHARS]


def _corrected(node: Node) -> list[dict[str, str]]:
    kept = node.attributes.get(_ATTRIBUTE)
    rows = kept if isinstance(kept, list | tuple) else []
    return [
        {"node": str(each["node"]), "quote": str(each["quote"])}
        for each in rows
        if isinstance(each, dict) and {"node", "quote"} <= each.keys()
    ][:_MOST]
