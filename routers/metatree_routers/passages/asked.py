"""What a question asks for: its words by weight, what must be found as it stands, and the kind of its answer."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from metatree_routers.query.key_terms import KeyTerm, key_terms_of
from metatree_routers.query.parse import MAX_CHARS, sections
from metatree_routers.query.terms import expand, raw_tokens, terms
from metatree_routers.query.wording import without_asking

_EXACT = re.compile(
    r"`([^`\n]{1,120})`"
    r"|\"([^\"\n]{1,120})\"|“([^”\n]{1,120})”|(?<!\w)'([^'\n]{2,120})'(?!\w)"
    r"|(?<![\w-])(--?[A-Za-z0-9][\w-]*)"
    r"|\b([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?:\(\))?)"
    r"|\b(\w+_\w*|_\w+)\b"
    r"|\b([A-Za-z]\w*/\d[\w.]*\w|[A-Za-z]\w*/\d)(?![\w/])"
    r"|\b([a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*|[A-Z]{2,}[a-z]{2,}\w*)\b"
    r"|(?<![\w.])(v?\d+(?:\.\d+)+)\b"
    r"|(?<![\w.-])((?=[\w-]*\d)[A-Za-z0-9][\w-]*[A-Za-z0-9])(?![\w-])"
    r"|(?<![\w.])(\d+)(?![\w.]*\d)"
    r"|(?<!\S)([!$%&*+/:<=>@\\^|~#.-]{1,3}\w?)(?=[\s?,.]|$)"
)

_VERB = "does|do|did|is|are|was|were|can|has|have|will|must|should|the|happens"
_THING = (
    "function|method|class|module|file|exception|error|variable|attribute|argument|parameter|constant|flag|field"
    "|property|type|trigger"
)
MEASURED: Final = re.compile(
    r"\bwhat (?:is |are |was |were )?(?:the )?"
    r"((?:(?!(?:does|do|did|happens|can|must|should|is|are|if)\b)[\w-]+ ){0,2}?"
    r"(?:number|size|share|percentage|amount|rate|speed|frequency|limit|timeout|interval|delay|length|width|height"
    r"|port|level|tempo|maximum|minimum|bit))s?\b"
    r"(?! (?:option|command|flag|key|function|method|argument|parameter|field|setting|file|for)\b)",
    re.IGNORECASE,
)
"""How a question asks for what can be measured; its group names that."""
KINDS: Final = tuple(
    (kind, re.compile("|".join(patterns), re.IGNORECASE))
    for kind, patterns in {
        "when": (
            r"(?:^|\band |[.?] )when\b",
            r"\b(?:on|in|at|since) (?:which|what) (?:day|date|year|month)",
            r"\bwhat (?:day|date|year)\b",
            r"\bwann\b|\bcuándo\b",
        ),
        "version": (
            rf"\b(?:which|what) (?:(?!(?:{_VERB})\b)[\w.-]+ ){{0,2}}(?:version|release)s?\b",
            r"\bversions?\b",
        ),
        "amount": (
            r"\bhow (?:many|much|large|big|long|old|often|far|high|wide|deep|fast|small)\b",
            MEASURED.pattern,
            r"\bwhich (?:number|port|bit)\b|\bat which column\b|\b(?:smallest|largest|maximum|minimum|lowest)\b",
            r"^\W*(?:the )?(?:\w+ )?(?:number|port|size|length|amount) (?:of|used|for)\b|\b(?:port|exit) number\b",
            r"\b(?:wie ?viele?|cuánt\w+)\b",
        ),
        "who": (
            r"(?:^\W*|\b(?:and|or|but|by|to|from|of|on|for|with|in|at|is|was) |[.?!:,;] )who(?:m|se)?\b",
            r"\bwer\b|\bquién\b|^\W*(?:the )?(?:authors?|maintainers?|creators?) of\b",
        ),
        "code": (
            r"\bwhere in the (?:code|source)\b|\bin which (?:module|file)\b|\bwhere is the code\b",
            rf"\b(?:which|what) (?:{_THING})\b",
            r"\bwhere\b.{0,20}\bdefined\b",
        ),
        "where": (r"(?:^|\band |[.?] )where\b|\bwo\b|\bdónde\b",),
        "option": (
            r"\b(?:which|what) (?:option|switch|command|key|setting|variable|environment)\b|\bqué variable\b",
        ),
        "default": (
            r"\bdefault\b|\bunless I\b|\bnothing\b|\bstandardm",
            r"\bif I (?:set|choose|give|configure|mention|do not|don't)\b",
        ),
        "how": (r"\bhow (?:do|can|to|should|is|are|would|does)\b|\bwie (?:kann|mache|wird)\b|\bcómo\b",),
        "why": (r"\bwhy\b|\bwarum\b|\bfor what reason\b",),
        "yes": (r"^\s*(?:does|do|is|are|can|may|must|will|has|have|should)\b",),
        "what": (r"\bwhat\b|\bwas\b|\bqué\b",),
    }.items()
)
"""Kinds of answers that questions ask for, and how such questions are worded; the first that fits counts."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, taken apart once."""

    text: str
    weights: dict[str, float]
    """Terms, with the weight that their place and their wording give them."""
    exact: tuple[str, ...]
    """What must be found as it stands: quoted text, options, identifiers, versions, numbers, symbols."""
    key_terms: tuple[KeyTerm, ...]
    kind: str
    """What it asks for, one of `KINDS`; '' when none fits."""
    terms: frozenset[str]
    """All its terms."""

    def is_repeated_by(self, text: str) -> bool:
        """Say whether a text says no more than the question: a heading, or who asks it.

        A sentence with the words of a yes-or-no question answers it.

        Example:
            >>> asked = read_question("Where is the blue car?", embeddings=False)
            >>> asked.is_repeated_by("[09:01] Ann: Where is the blue car?"), asked.is_repeated_by("The blue car")
            (True, True)
            >>> asked.is_repeated_by("Ann: The blue car is on level 2.")
            False
            >>> asked = read_question("Does the app support PostgreSQL?", embeddings=False)
            >>> asked.is_repeated_by("The app supports PostgreSQL."), asked.is_repeated_by("PostgreSQL support")
            (False, True)
        """
        if not _adds_terms(text, self.terms):
            return not (self.kind == "yes" and _STATES.search(text))
        if not _ASKS.search(text):
            return False
        if set(terms(text)) == self.terms:
            return True
        colon = _COLON.search(text)
        if colon is None:
            return False
        naming = [raw for raw in raw_tokens(_BRACKETED.sub("", text[: colon.start()])) if not raw.isdecimal()]
        return len(naming) <= _MOST_NAMING and set(terms(text[colon.end() :])) == self.terms


_MOST_NAMING = 4
"""Words that name a speaker and a day, at most, besides numbers."""
_STATES = re.compile(r"[^\W\d_][.!][\W_]*$")
_ASKS = re.compile(r"\?[\W_]*$")
_COLON = re.compile(r":\s")
_BRACKETED = re.compile(r"\[[^\]\n]*\]")


def _adds_terms(text: str, own: Collection[str]) -> bool:
    """Whether a text has a word or a number besides those of the question; a heading often has none.

    The whole of a name counts no more than its parts: `_stream-download`.
    """
    return any(
        raw.isdecimal() or (len(raw) > 1 and any(term not in own for term in _parts(expand(raw))))
        for raw in raw_tokens(text)
    )


def _parts(terms: tuple[str, ...]) -> tuple[str, ...]:
    return terms[:-1] if len(terms) > 1 else terms


_HOW_MANY = re.compile(r"\bhow (many|long|often|big|large|old|far|fast)\b", re.IGNORECASE)
_HOW_MANY_WEIGHT = 0.15


def _without_how_many(text: str, weights: dict[str, float]) -> dict[str, float]:
    """Weigh down the word after `how`, as long as there are others: no answer says "many"."""
    asking = {term for match in _HOW_MANY.finditer(text) for term in expand(match[1])} & weights.keys()
    if len(asking) == len(weights):
        return weights
    return {term: weight * (_HOW_MANY_WEIGHT if term in asking else 1.0) for term, weight in weights.items()}


@lru_cache(maxsize=64)
def read_question(question: str, *, embeddings: bool = True) -> Asked:
    """Take a question apart.

    Example:
        >>> asked = read_question("What does `--no-ff` do in version 2.1?", embeddings=False)
        >>> asked.exact, asked.kind
        (('--no-ff', '2.1'), 'version')
    """
    parts = sections(question)
    text = parts.title if parts.is_long else question
    exact = dict.fromkeys(
        next(group for group in match.groups() if group).strip() for match in _EXACT.finditer(text)
    )
    return Asked(
        text,
        _without_how_many(text, without_asking(parts.term_weights())),
        tuple(one for one in exact if one),
        key_terms_of(question, embeddings=embeddings),
        next((kind for kind, pattern in KINDS if pattern.search(text)), ""),
        frozenset(terms(question[:MAX_CHARS])),
    )
