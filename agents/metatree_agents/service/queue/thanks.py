"""A message that thanks and asks nothing: it is answered in a line, and nothing is searched for it.

Searched, `thanks` finds passages with that word, and a thread whose question was answered ends as not answered.
"""

from __future__ import annotations

import re
from typing import Final

WELCOME: Final = "You are welcome. Ask on here whenever you like."
"""What is answered to it."""
NOT_SEARCHED: Final = "This says thanks and asks nothing, so nothing was searched."
_MOST_WORDS: Final = 10
_THANKS: Final = re.compile(
    r"\b(?:thanks|thank you|thankyou|thx|ty|cheers|much appreciated|appreciate it|danke|merci)\b"
)
_BESIDE: Final = re.compile(
    "(?: (?:thanks|thank|thankyou|thx|ty|cheers|danke|merci|appreciated?|you|u|i|its?|s|this|that|thats|a|an|the|so"
    "|very|much|many|really|again|all|lots?|for|your|is|was|were|and|now|yes|ok|okay|alright|great|good|nice|cool|perfect"
    "|super|excellent|wonderful|brilliant|awesome|helpful|helped|helps|help|answers?|explanation|quick|got|understood"
    "|everything|works|exactly|what|needed|wanted|bye))+"
)
"""What may stand beside it."""


def is_thanks(text: str) -> bool:
    """Say whether a message thanks and asks nothing.

    Example:
        >>> [is_thanks(text) for text in ("Thanks!", "ok great, thank you very much", "Thanks, and how do I export?")]
        [True, True, False]
    """
    words = re.findall(r"\w+", text.casefold())
    return (
        0 < len(words) <= _MOST_WORDS
        and "?" not in text
        and _BESIDE.fullmatch("".join(f" {word}" for word in words)) is not None
        and _THANKS.search(" ".join(words)) is not None
    )
