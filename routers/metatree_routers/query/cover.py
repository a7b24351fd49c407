"""Questions whose answer lies in many messages: what happened in which order, a summary, what was said in all sessions.

Most of the words of such a question speak of the conversation and not of its subject ("Can you list the order in which
I brought up different aspects of … throughout our conversations?"), and in a conversation every text is near to them.
So such a question is ranked by its subject alone; and who asks what was brought up *by them* is shown what people said.

Measured on half of a set, R@10: the subject alone raises ordering from .06 to .11, summaries from .15 to .23, questions
over several sessions from .59 to .69; people's turns raise ordering to .23. Lost: maximal marginal relevance over
sessions and turns, at any strength (ordering .23 to .20, summaries .23 to .12, several sessions .69 to .49), one place
for each session in turn, turns like those chosen before, the reply and the turns beside added to a turn.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TALKS = r"(?:conversation|discussion|session|chat|message|exchange|request|talk)s?"
_ORDER = re.compile(
    r"\bin (?:what|which|chronological|the right) order\b|\b(?:order|sequence) in which\b"
    r"|\border of (?:events|things|topics)\b|\bin order\b(?! to\b)|\bchronolog|\btimeline of\b|\bin sequence\b",
    re.IGNORECASE,
)
_SUMMARY = re.compile(
    r"\bsummar|\boverview\b|\brecap\b|\bsum up\b"
    r"|\bhow (?:has|have|had)\b.*\b(?:evolved|developed|changed|progressed|grown|shifted)\b"
    r"|\bhow did\b.*\b(?:evolve|develop|change|shift)\b",
    re.IGNORECASE,
)
_ACROSS = re.compile(
    rf"\b(?:across|throughout|in all(?: of)?|over(?: all)?)\b"
    rf" (?:(?:all|my|our|the|these|those|of|different|various) )*{_TALKS}\b"
    r"|\bhave I (?:ever )?(?:mentioned|said|told|talked|asked|discussed|brought)\b",
    re.IGNORECASE,
)
_BY_ASKER = re.compile(
    r"\bI (?:first )?(?:brought|raised|mentioned|said|told|asked|talked|discussed|introduced|described)\b"
    r"|\bdid I (?:first )?(?:bring|raise|mention|say|tell|ask|talk|discuss|introduce|describe)\b"
    r"|\bmy (?:discussions|questions|requests)\b",
    re.IGNORECASE,
)
_ASKER = re.compile(r"\b(?:I|I['’][a-z]+|my|me|mine|we|our)\b")
_ASKED_BACK = re.compile(
    r"(?<!can )(?<!could )(?<!would )(?<!will )(?<!do )(?<!should )\byou(?:r|rs)?\b|\bremind me\b"
    r"|\bour (?:previous|last|earlier|first)\b",
    re.IGNORECASE,
)
"""Of what the other one said; "could you" asks for something new."""
_WORD = re.compile(r"[\w'’%.-]*\w")
_LEAST_CHARS = 3
_FRAME = frozenset(
    _WORD.findall(
        """can could you please list order ordered sequence brought bring raised raise mentioned mention up
        different various aspects aspect throughout across our my all the conversations conversation
        discussions discussion sessions session chats chat in which i only and items item one two
        three four five six seven eight nine ten eleven twelve total walk me through summary
        summarize summarise summaries comprehensive detailed complete thorough provide give how has
        have had developed develop evolved evolve progressed progress changed change over time
        including include key steps decisions overview recap discussed talked topics topic concerns
        did do does what we've i've of about a an related that to from on for with into
        considerations main major entire covering cover based shaped recent recently these those
        between were was been so far"""
    )
)


@dataclass(frozen=True, slots=True)
class Cover:
    """How a question that wants many messages is read."""

    subject: str
    """Its words without those that speak of the conversation."""
    by_asker: bool
    """Whether it asks for what was brought up by whom it comes from."""
    in_time: bool = False
    """Whether it wants an order of events, or a summary."""
    is_summary: bool = False


def cover_of(question: str) -> Cover | None:
    """Return how a question is read that wants many messages; None for any other, and for one without a subject.

    Example:
        >>> cover_of("Can you list the order in which I brought up different aspects of my book club?")
        Cover(subject='book club', by_asker=True, in_time=True, is_summary=False)
        >>> cover_of("How many pages has the book?")
    """
    in_order = _ORDER.search(question) is not None
    in_time = in_order or _SUMMARY.search(question) is not None
    if not (in_time or _ACROSS.search(question)):
        return None
    words = [word for word in _WORD.findall(question) if word.casefold() not in _FRAME and not word.isdigit()]
    if not any(len(word) >= _LEAST_CHARS for word in words):
        return None
    by_asker = in_order and _BY_ASKER.search(question) is not None
    return Cover(" ".join(words), by_asker, in_time, is_summary=in_time and not in_order)


def is_on_asker(question: str) -> bool:
    """Whether a question is on who asks it, and not on what they were told, nor for a summary of what was said.

    Example:
        >>> is_on_asker("What is my budget for books?"), is_on_asker("Which books did you recommend to me?")
        (True, False)
    """
    return (
        _ASKER.search(question) is not None
        and _ASKED_BACK.search(question) is None
        and _SUMMARY.search(question) is None
    )
