"""What a search came to, as the wire has it."""

from __future__ import annotations

from metatree_agents.service.engine.answering import said_of

from metatree import Tree
from metatree.result import SearchResult


def test_an_answer_in_paragraphs_keeps_the_spaces_of_code() -> None:
    code = "def send(self):\n    if a:\n        b()\n\n    if c:\n        d()\n"
    with Tree.create(":memory:") as tree:
        reply = said_of(tree, SearchResult(answer=code))
    assert reply.answer == ["def send(self):\n    if a:\n        b()", "    if c:\n        d()"]
