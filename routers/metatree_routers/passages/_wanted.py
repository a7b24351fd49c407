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
        r"\b(?:def|class|function|struct|const|var|let)\s+\w+|\b[a-z]+_\w+\b|\b[A-Z][a-z]+[A-Z]\w+|\w\(\)"
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

_ASKS_DATE: Final = re.compile(
    r"\bwhen (?:did|was|were|has|had|will)\b|\b(?:which|what) (?:day|date|year|month)\b|\bsince when\b",
    re.IGNORECASE,
)
_DATE: Final = re.compile(
    rf"\b(?:19|20)\d\d\b|\b\d{{1,2}}[-./](?:\d{{1,2}}|{_MONTH})[-./]\d{{2,4}}\b"
    rf"|\b{_MONTH}[a-z]* \d{{1,2}}\b|\b\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}"
    r"|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b|\b\d{1,2}:\d\d\b"
    r"|\b(?:[Yy]esterday|[Tt]oday|[Tt]omorrow|[Ll]ast (?:week|month|year|night))\b"
)
_BY_WHOM: Final = re.compile(
    r"(?:\bby|\bfrom|\bcourtesy of|\bthanks|\bauthor\w*|\bmaintain\w*|\bcopyright|\(c\)|\bcontribut\w*|\bwrote"
    r"|\bwritten|\breport\w*|\bpatch\w*|\bsuggest\w*|\bcredit\w*|\bfix\w*|\bimplement\w*|\btranslat\w*|\bcreat\w*|\bdevelop\w*|\bfound\w*)"
    r"[^\w.]{1,25}(?:\w+ ){0,2}((?-i:[A-Z@])[\w'-]*[a-z][\w'-]*)|<[\w.+-]+@|(?<!\S)@\w+"
    r"|^[ *-]*(?-i:[A-Z]\w+ ([A-Z]\w+)) *[-<(,]|(?-i:(?<=[a-z,] )([A-Z][a-z'-]+) [A-Z][a-z'-]+(?! [A-Z]))",
    re.MULTILINE | re.IGNORECASE,
)
"""A person beside what they did, an address, a name at the head of an entry, or of two words within a sentence."""
_ROLE: Final = "team|committee|group|board|office|department|staff|desk|head|manager|owner|chair|lead"
_DOER: Final = re.compile(
    rf"\b([A-Z](?=[\w'-]{{0,60}}?[a-z])[\w'-]{{1,61}}+|{_ROLE})(?: [A-Z][\w'-]+)?"
    rf"(?=,? (?:who |has |had |also |is |was |will )?(\w+))|\bby (?:the|an?) (?:\w+ )?(?:{_ROLE})\b"
)
_WHO_DOES: Final = re.compile(
    r"\bwho(?:m|se)?\s+(?:(?:has|had|is|was|will|does|did|do|can|may|must|should)\s+)?(\w+)", re.IGNORECASE
)
_WHO_SAID: Final = re.compile(
    r"\bwho\s+(?:asked|said|told|mentioned|suggested|recommended|proposed)\b", re.IGNORECASE
)
_SPEAKER: Final = re.compile(r"^(?:\[[^\]\n]*\]\s*)?[A-Z]\w+(?: [A-Z]\w+)?: ", re.MULTILINE)
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


def lacks_kind(asked: Asked, text: str, release: str = "", head: str = "") -> bool:
    """Say whether a person, a day, a number or a version is asked for, and a text has none that can be the answer.

    Args:
        release: that the text stands under, which tells version and day.
        head: of what else it stands under, which may tell the day.
    """
    return (
        lacks_person(asked, text)
        or lacks_date(asked, f"{text}\n{release}\n{head}")
        or lacks_count(asked, text)
        or (asked.kind == "amount" and not has_wanted(asked, text))
        or (asked.kind == "version" and not has_wanted(asked, f"{text}\n{release}"))
    )


_NO_DOER: Final = re.compile(
    r"\bwhom\b|\b(?:to|for|with)\s*\??\s*$|\bwho (?:is|are|was|were) (?:needed|wanted|required)\b",
    re.IGNORECASE,
)
"""A question of this form asks for whoever something was done to."""


def lacks_person(asked: Asked, text: str) -> bool:
    """Say whether a question asks who, and no person in a text has done anything.

    Example:
        >>> from metatree_routers.passages.asked import read_question
        >>> asked = read_question("Who found the leak?", embeddings=False)
        >>> lacks_person(asked, "Fix a leak (report by Ann Lee)"), lacks_person(asked, "St Wilfrid has a leak")
        (False, True)
        >>> lacks_person(read_question("Who approves trips?", embeddings=False), "Ann approves trips.")
        False
        >>> lacks_person(read_question("To whom was it sold?", embeddings=False), "It was sold to Peter.")
        False
    """
    if asked.kind != "who" or _NO_DOER.search(asked.text):
        return False
    return not _is_by_somebody(asked, text) and not _does(asked, text)


def _is_by_somebody(asked: Asked, text: str) -> bool:
    """Whether a text names somebody whom the question does not, beside what they did, or with an address."""
    names = (expand(match[1] or match[2] or match[3] or "") for match in _BY_WHOM.finditer(text))
    return any(asked.terms.isdisjoint(name) for name in names)


def _does(asked: Asked, text: str) -> bool:
    """Whether somebody does in a text what is asked: a name, or a group of people, before the verb of the question."""
    verb = _WHO_DOES.search(asked.text)
    wanted = expand(verb[1]) if verb else ()
    if _WHO_SAID.search(asked.text) and _SPEAKER.search(text):
        return True
    for match in _DOER.finditer(text):
        if match[1] is None:  # by somebody of that role
            return True
        name, does = expand(match[1]), expand(match[2] or "")
        if name and asked.terms.isdisjoint(name) and not set(wanted).isdisjoint(does):
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
    own, text = asked.text.lower(), " ".join(text.split())
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


def lacks_date(asked: Asked, text: str) -> bool:
    """Say whether a question asks on which day something happened, and a text names no day but that of the question.

    Example:
        >>> from metatree_routers.passages.asked import read_question
        >>> asked = read_question("When was the leak found?", embeddings=False)
        >>> lacks_date(asked, "1.2 (2021-03-05): fix a leak"), lacks_date(asked, "The leak was found.")
        (False, True)
        >>> lacks_date(read_question("When is a leak found?", embeddings=False), "A leak is found when it runs.")
        False
    """
    own = asked.text
    return _ASKS_DATE.search(own) is not None and all(match[0] in own for match in _DATE.finditer(text))
