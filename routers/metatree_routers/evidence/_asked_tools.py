"""The tools that a question asks for outright, by what they say of themselves."""

from __future__ import annotations

from collections.abc import Sequence

from metatree.node import Node
from metatree.protocols import ToolSpec
from metatree_routers.passages.asked import read_question
from metatree_routers.query.terms import term_counts, terms

_REASONS = frozenset({"how", "why"})
_COUNTING = frozenset(terms("many much number count total"))
_LEAST_SAID = 0.8
"""Share of a question's words, without the name of the node, that a tool has to say of itself to be asked for."""


def asked_for(question: str, offers: Sequence[tuple[ToolSpec, Node]]) -> list[int]:
    """Return the numbers of the tools that say of themselves nearly all that a question asks of a node, the best first.

    Which reasons there are, or how something is done, no tool counts or lists.

    Example:
        >>> from metatree import Node, ToolSpec
        >>> count = ToolSpec("todos", "todos", "Count the TODO comments in a file", "exploratory", {})
        >>> offers = [(count, Node(id="fields.py", title="fields.py"))]
        >>> asked_for("How many TODO comments has fields.py?", offers)
        [0]
        >>> asked_for("Which classes does fields.py have, and how many TODO comments?", offers)
        []
    """
    asked = read_question(question, embeddings=False)
    if asked.kind in _REASONS:
        return []
    said = []
    for number, (tool, node) in enumerate(offers):
        name = term_counts(f"{node.title} {node.path or ''}").keys()
        wanted = {term: weight for term, weight in asked.weights.items() if term not in name}
        own = set(term_counts(f"{tool.id} {tool.title} {tool.description}"))
        if own & _COUNTING:
            own |= _COUNTING
        total = sum(wanted.values())
        share = sum(weight for term, weight in wanted.items() if term in own) / total if total else 0.0
        if share >= _LEAST_SAID:
            said.append((-share, number))
    return [number for _, number in sorted(said)]
