"""Whether a passage holds the kind of thing that a question asks for: a day, a number, a person, a default.

Nearly every passage has some number and some name in capitals, so the stricter kinds look at what stands beside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice, takewhile
from typing import Final

from metatree_routers.passages.asked import MEASURED, Asked
from metatree_routers.query.terms import expand, raw_tokens, terms

_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
WANTED: Final[Mapping[str, re.Pattern[str]]] = {
    "when": re.compile(
        rf"\b(?:19|20)\d\d\b|\b\d{{1,2}}[-./](?:\d{{1,2}}|{_MONTH})[-./]\d{{2,4}}\b"
        rf"|\b{_MONTH}[a-z]* \d{{1,2}}\b|\b\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}"
        r"|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b|\b\d{1,2}:\d\d\b|\b(?:noon|midnight)\b"
        r"|\b(?:\d+|an?|one) (?:second|minute|hour|day|week|month|year)s?\b"
    ),
    "version": re.compile(r"\bv?\d+\.\d+(?:\.\d+)*\b"),
    "amount": re.compile(
        r"(?<![\w.])\d+(?:[.,]\d+)*"
        r"|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|hundred|half|twice)\b"
        r"|\bone (?:second|minute|hour|day|week|month|year|time)\b",
    ),
    "who": re.compile(
        r"\b[A-Z][a-zà-ÿš'-]+ (?:[A-Z]\. |van |von |de )?[A-Z][a-zà-ÿš'-]+\b|<[\w.+-]+@[\w.-]+>|(?<!\S)@\w+"
    ),
    "code": re.compile(
        r"\b(?:def|class|function|struct|const|var|let)\s+\w+|\b[a-z]+_\w+\b|\b[A-Z][a-z]+[A-Z]\w+|\w+\(\)"
    ),
    "where": re.compile(
        r"\b(?:in|on|at|under|behind|inside|near|beside|between|above|below|to|into) (?:the |an? |its |[A-Z~/`])"
        r"|\w[/\\]\w"
    ),
    "option": re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b|``[^`\n]+``"),
    "default": re.compile(
        r"\bdefaults?\b|\bnone is\b|\botherwise\b|\bif (?:not|no|omitted|unset)\b|\w=\S", re.IGNORECASE
    ),
    "how": re.compile(
        r"\b(?:use|set|run|call|pass|install|type|add|specify|you can|to \w+,|must|should)\b|\$ |>>> |::",
        re.IGNORECASE,
    ),
    "why": re.compile(
        r"\b(?:because|since|so that|in order to|reason|therefore|to avoid|due to)\b", re.IGNORECASE
    ),
}
"""What each kind of question asks for, as it is written."""

_BY_WHOM: Final = re.compile(
    r"(?:\bby|\bfrom|\bthanks|\bauthor\w*|\bmaintain\w*|\bcopyright|\(c\)|\bcontribut\w*|\bwrote|\bwritten|\breport\w*"
    r"|\bpatch\w*|\bsuggest\w*|\bcredit\w*|\bfix\w*|\bimplement\w*|\btranslat\w*|\bcreat\w*|\bdevelop\w*|\bfound\w*)"
    r"\W{1,25}(?:\w+ ){0,2}(?-i:[A-Z@])[\w'-]+|<[\w.+-]+@|(?<!\S)@\w+"
    r"|^[ *-]*(?-i:[A-Z]\w+ [A-Z]\w+) *[-<(,]",
    re.MULTILINE | re.IGNORECASE,
)
"""A person beside what they did, an address, or a name at the head of an entry."""
_ROLE: Final = "team|committee|group|board|office|department|staff|desk|head|manager|owner|chair|lead"
_DOER: Final = re.compile(
    rf"\b([A-Z][\w'-]+|{_ROLE})(?: [A-Z][\w'-]+)?(?=,? (\w+)(?: (\w+))?)|\bby (?:the|an?) (?:\w+ )?(?:{_ROLE})\b"
)
_COUNT: Final = re.compile(
    r"(?<![\w.])\d+(?:[.,]\d+)*|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty"
    r"|hundred|half|no|single|both)\b",
    re.IGNORECASE,
)
_HOW_MANY = re.compile(r"\bhow many ", re.IGNORECASE)
_MOST_COUNTED = 3
"""Words that say what is counted, at most."""
_BESIDE_CHARS = 45
_ASKS_DEFAULT: Final = re.compile(
    r"\bdefault\b|\bif I (?:do not|don'?t|set nothing|give none|name none)|\bnone is\b|\bunless\b",
    re.IGNORECASE,
)
_SAYS_DEFAULT: Final = re.compile(
    r"\bdefaults?\b|[\w\]]\s*=\s*\S|\botherwise\b|\bif (?:not|no|none|unset|omitted)\b|\bunless\b",
    re.IGNORECASE,
)


def has_wanted(asked: Asked, text: str) -> bool:
    """Say whether a text holds the kind of thing that is asked for, and not only what the question itself says."""
    pattern = WANTED.get(asked.kind)
    if pattern is None:
        return False
    own = asked.text.lower()
    words = (text[match.start() : match.start() + 40].split() for match in pattern.finditer(text))
    return any(word and word[0].lower().strip(",.;") not in own for word in words)


def lacks_person(asked: Asked, text: str) -> bool:
    """Say whether a question asks who, and no person in a text has done anything.

    Example:
        >>> from metatree_routers.passages.asked import read_question
        >>> asked = read_question("Who found the leak?", embeddings=False)
        >>> lacks_person(asked, "Fix a leak (report by Ann Lee)"), lacks_person(asked, "St Wilfrid has a leak")
        (False, True)
        >>> lacks_person(read_question("Who approves trips?", embeddings=False), "Ann approves trips.")
        False
    """
    return asked.kind == "who" and _BY_WHOM.search(text) is None and not _does(asked, text)


def _does(asked: Asked, text: str) -> bool:
    """Whether somebody does in a text what the question says: a name, or a group of people, before a word of it."""
    for match in _DOER.finditer(text):
        if match[1] is None:  # by somebody of that role
            return True
        name, *after = map(expand, match.groups(""))
        if (
            name
            and asked.terms.isdisjoint(name)
            and any(not asked.terms.isdisjoint(words) for words in after)
        ):
            return True
    return False


def lacks_count(asked: Asked, text: str) -> bool:
    """Say whether a question asks for a number of something, or for how much something is, and a text has no number
    beside that.

    Example:
        >>> from metatree_routers.passages.asked import read_question
        >>> asked = read_question("How many states may be on the stack?", embeddings=False)
        >>> lacks_count(asked, "It keeps 20 states."), lacks_count(asked, "pop: 1 removes the top")
        (False, True)
    """
    measured, after = MEASURED.search(asked.text), _HOW_MANY.search(asked.text)
    named = raw_tokens(measured[1] if measured else asked.text[after.end() :] if after else "")
    words = islice(takewhile(bool, map(expand, named)), _MOST_COUNTED)
    counted = {term for word in words for term in word}
    own = asked.text.lower()
    return bool(counted) and not any(
        match[0].lower() not in own
        and not counted.isdisjoint(
            terms(text[max(0, match.start() - _BESIDE_CHARS) : match.end() + _BESIDE_CHARS])
        )
        for match in _COUNT.finditer(text)
    )


def lacks_default(asked: Asked, text: str) -> bool:
    """Say whether a question asks what holds when nothing is given, and a text says nothing of that kind."""
    return _ASKS_DEFAULT.search(asked.text) is not None and _SAYS_DEFAULT.search(text) is None
