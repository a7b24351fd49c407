"""Questions for particulars of something that a conversation only mentions.

"What was the atmosphere like at the dinner?" has every word but one in "We celebrated with a dinner at The Coral Reef,
should we do that again?", and is not answered by it: what is asked for is not there. So a turn answers a question for
particulars only when it has the words for what is sought. In other questions it may go by another word ("What colour
…?" "I painted it blue."), and there this says nothing.
"""

from __future__ import annotations

import re
from typing import Final

from metatree_routers.query.terms import terms

_VERB: Final = r"(?:was|were|is|are|did|do|does|will|would|has|have|had|can|could|should|came|come|happened)"
_FOR_PARTICULARS = re.compile(
    r"\b(?:specific(?:ally)?|details?|detailed|atmosphere|background|influenc\w*|affect\w*|impact\w*|main|discuss\w*"
    r"|contents?|structure|themes?|techniques?|methods?|strateg(?:y|ies))\b",
    re.IGNORECASE,
)
_SOUGHT: Final = (
    re.compile(rf"\b(?:what|which)\s+((?:(?!{_VERB}\b)[\w'/-]+\s+){{1,5}}?){_VERB}\b", re.IGNORECASE),
    re.compile(
        r"\bdetails? (?:about|on|of|regarding) (?:the |my |our )?((?:[\w'-]+ ){1,4}?)(?:of|in|on|for|at|from|with)\b",
        re.IGNORECASE,
    ),
    re.compile(
        r"\bwhat (?:was|were|is|are) (?:the |my |our )?((?:[\w'-]+\s+){1,4}?)"
        r"(?:like|of|in|during|from|when|for|at|about|between|on)\b",
        re.IGNORECASE,
    ),
    re.compile(
        r"\bhow (?:did|does|do|has|have|was|were) .{1,200}?\b(influenc\w*|affect\w*|impact\w*|shap\w*|chang\w*)\b",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:were|was|be|been|is|are)\s+(\w+ed|taught|found|given|shown|made|told|chosen|held|written|drawn)\b",
        re.IGNORECASE,
    ),
)
"""What is sought: the thing that is asked for, and what was done with it."""
_EMPTY: Final = frozenset(
    terms("specific specifically exact exactly main other kind type detail details what which")
)
_MOST_CHARS: Final = 2_000


def lacks_particulars(question: str, text: str) -> bool:
    """Whether a question asks for particulars, and a text has not the words for them.

    Example:
        >>> said = "We celebrated with a dinner at The Coral Reef, should we do that again?"
        >>> lacks_particulars("What was the atmosphere like at the dinner?", said)
        True
        >>> lacks_particulars("Where did we celebrate?", said)
        False
    """
    question = question[:_MOST_CHARS]
    if _FOR_PARTICULARS.search(question) is None:
        return False
    found = filter(None, (pattern.search(question) for pattern in _SOUGHT))
    sought = {term for match in found for term in terms(match[1])} - _EMPTY
    return bool(sought) and not sought <= set(terms(text))
