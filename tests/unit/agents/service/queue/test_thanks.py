"""Which messages thank and ask nothing."""

from __future__ import annotations

import pytest
from metatree_agents.service.queue.thanks import is_thanks


@pytest.mark.parametrize(
    "text",
    [
        "thanks",
        "Thanks!",
        "Thank you very much.",
        "ok great, thanks a lot 🙏",
        "thx, got it",
        "Cheers",
        "Merci",
    ],
)
def test_thanks(text: str) -> None:
    assert is_thanks(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ok",
        "Thanks, and how do I export it?",
        "Where is the thank-you note?",
        "thanks?",
        "thank_you",
        "Thanks. Refunds in May",
        "Does it work on Windows",
        "thank you " * 10,
    ],
)
def test_questions_are_none(text: str) -> None:
    assert not is_thanks(text)
