"""Questions for particulars of what a conversation only mentions are not answered by the mention."""

from __future__ import annotations

import pytest
from metatree_memory_tools.conversations import ConversationLog
from metatree_routers.embedded._particulars import lacks_particulars

from metatree import Tree, search

MENTIONED = (
    "We celebrated finishing the hull with a dinner at The Coral Reef on April 20, should we do that again?"
)


@pytest.mark.parametrize(
    ("question", "text", "lacks"),
    [
        ("What was the atmosphere like at the dinner on April 20?", MENTIONED, True),
        ("What specific dishes were served at the dinner on April 20?", MENTIONED, True),
        ("Can you provide details about the menu of the dinner at The Coral Reef?", MENTIONED, True),
        ("How did the dinner influence the crew at The Coral Reef?", MENTIONED, True),
        ("What was the atmosphere like at the dinner?", "The atmosphere at the dinner was calm.", False),
        ("What specific dishes were served?", "Soup and fish were served; both dishes were cold.", False),
        ("What varnishing methods were used by May 1?", "The varnishing in May took me 3 hours.", True),
        ("What varnishing methods were used?", "I used two methods of varnishing: brush and spray.", False),
        ("What colour is the boat?", "I painted the boat blue.", False),
        ("Where did we celebrate finishing the hull?", MENTIONED, False),
        ("specific details", MENTIONED, False),
        ("what " * 3000 + "specific", MENTIONED, False),
    ],
)
def test_what_is_sought_must_be_there(question: str, text: str, lacks: bool) -> None:
    assert lacks_particulars(question, text) is lacks


def test_a_mention_in_a_conversation_is_no_claim() -> None:
    tree = Tree.create(":memory:")
    log = ConversationLog(tree, "boats")
    log.say("ann", MENTIONED, at="2026-04-21T09:00")
    log.say("ann", "The mast comes on Monday.", at="2026-04-21T09:01")
    silent = search("What was the atmosphere like at the dinner at The Coral Reef on April 20?", tree=tree)
    assert (silent.answers, silent.ended) == ((), "exhausted")
    assert any("Coral Reef" in passage.quote for passage in silent.closest)
    told = search("Where did we celebrate finishing the hull with a dinner?", tree=tree)
    assert "Coral Reef" in told.answer
