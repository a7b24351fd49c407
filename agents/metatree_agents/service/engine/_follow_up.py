"""What a short question in a topic refers to: `Which shells does that work for?` after `How does completion work?`.

A search knows no conversation but as context, which models read and words do not: searched as it stands, such a
question finds what shares its few words with it, and claims that. So the words of the question before are put beside
the word that refers to them, and the asker reads how the question was taken.

Whether it refers is judged by English words. Lost: the words of all earlier questions as evidence (a new subject in an
old topic is searched for the old one), and the weight of a question's words alone (`Which shells does that work for?`
has as much as many a question that stands by itself).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from metatree_routers.passages.asked import read_question
from metatree_routers.query.key_terms import NAME, key_terms_of
from metatree_routers.query.terms import terms
from metatree_routers.query.wording import asking_terms, request_words

from metatree_agents.service.queue.models import EngineAnswer, EngineQuery

TURNS: Final = 10
"""How many earlier questions are looked at."""
LONG_CHARS: Final = 200
"""A longer question stands by itself."""
_MOST_WORDS: Final = 6
_MOST_NAMES: Final = 2
_LEAST_WEIGHT: Final = 0.25
"""Words of a question that weigh less say nothing of its subject where others do: `work`, `use`."""
_ANSWER_CHARS: Final = 400
_SHOWN_CHARS: Final = 160
_WORDS: Final = re.compile(r"\w+")

_HELPERS = (
    "is|are|was|were|isn't|aren't|do|does|did|don't|doesn't|can|can't|could|should|would|will|won't|may|might|must|has"
    "|have|had"
)
_PLACES = (
    "in|on|at|to|for|with|without|by|from|of|about|like|than|as|off|into|after|before|since|besides|instead of|again"
    "|back"
)
_OF_THE_TREE = (
    "(?:project|package|library|repository|repo|folder|code|codebase|program|tool|tree|memory|site|page|book)"
)
_PRONOUN = re.compile(
    r"\b(?:it|its|they|them|their|theirs|these|those|he|him|his|she|her|hers"
    r"|(?:which|that|this|the (?:other|same|first|second|last)) ones?)\b"
    rf"|\bthis\b(?! {_OF_THE_TREE}\b)"
    rf"|(?:^(?:and |but |so |or )?|\b(?:{_HELPERS}|{_PLACES}|and|but|or|if|when|how|why) )\bthat\b"
    rf"|\bthat\b(?= (?:{_PLACES})\b|[^\w]*$|[,.;?!])",
    re.IGNORECASE,
)
_EMPTY_IT = re.compile(
    r"\bit (?:be )?(?:possible|necessary|allowed|safe|worth|better|best|ok|okay|hard|easy|enough|important)"
    r" (?:to|for|that)\b",
    re.IGNORECASE,
)
_OPENS = re.compile(
    rf"^(?:(?:and|but|or|so) (?!(?:wh\w+|how|{_HELPERS})\b)|(?:and |but |so )?(?:what|how) about\b)",
    re.IGNORECASE,
)
_ASKED_FOR = re.compile(
    rf"^(?:(?:and|but|so|or),? )?(?:(?:{_PLACES}) )?"
    rf"(?:(?:which|what|whose|how many|how much)\b(?:(?!\b(?:{_HELPERS})\b)[^,;])*?|when|where|why|who|how)"
    rf" ?\b(?:{_HELPERS})\b",
    re.IGNORECASE,
)
_POINTS = re.compile(r"that|this|these|those", re.IGNORECASE)
_CLAUSE = re.compile(r"[,;]|\b(?:if|when|while|after|before|because|and|but)\b", re.IGNORECASE)
_CALLERS = re.compile(rf"\b(?:{_HELPERS}) (?:I|you|we|one|people)\b", re.IGNORECASE)
_WITHOUT_SUBJECT = frozenset(terms("example detail more else explain mean reason since short exact word"))
_ENDING = re.compile(r"(?<=\w)\.[a-z]{1,5}$")
"""Of a file that has no other title than its name."""
_BRACKETED = re.compile(r"\([^()]*\)")
_TOKEN = re.compile(r"\S+")
_CODE = re.compile(r"\b(?=\w*[A-Za-z])(?=\w*\d)\w{3,}\b")
_AROUND = "?!.,;:()[]{}\"'“”‘’`"


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A question as it is taken in its topic."""

    text: str
    """The question, with its subject in brackets."""
    subject: str

    @property
    def note(self) -> str:
        """What the asker reads of it."""
        before = self.before if len(self.before) <= _SHOWN_CHARS else f"{self.before[:_SHOWN_CHARS]} …"
        return f"Read as a question about “{before}” If something else is meant, ask again and name it."

    asked: str
    """The question as it was asked."""
    before: str = ""
    """The question that it refers to: the latest that refers to none itself."""

    def is_about(self, text: str) -> bool:
        """Whether a text shares a word with the subject, and says half of what the question names by itself.

        A code that the question names, such as `E07`, is enough: no text says that by chance.
        """
        said = set(terms(text))
        if any(term in said for code in _CODE.findall(self.asked) for term in terms(code)[-1:]):
            return True
        own = [word for word in key_terms_of(self.asked) if not asking_terms().issuperset(word.terms)]
        own = [word for word in own if not set(terms(self.subject)).issuperset(word.terms)]
        there = sum(word.weight for word in own if word.is_in(said))
        return not said.isdisjoint(terms(self.subject)) and 2 * there >= sum(word.weight for word in own)


def kept_tree(query: EngineQuery, titles: Mapping[str, str]) -> str | None:
    """Return the one of several trees that a question stays in: that of the answer that it refers to.

    None for one that stands by itself, that names another tree, or whose topic was last answered from several.

    Args:
        titles: of the trees, by their names.
    """
    earlier = [one for one in query.earlier if one.get("Seq", 0) < query.seq]
    if len(query.trees) < 2 or not earlier or follow_up(query.text, earlier) is None:
        return None
    last = earlier[-1]
    found = {source.get("Tree") for source in last.get("Sources") or ()}
    if last.get("End") not in (None, "answered") or len(found) != 1:
        return None
    kept = found.pop()
    said = f" {' '.join(re.findall(_WORDS, query.text.casefold()))} "
    others = [each for name in query.trees if name != kept for each in (name, titles.get(name, name))]
    named = any(f" {' '.join(re.findall(_WORDS, other.casefold()))} " in said for other in others)
    return kept if isinstance(kept, str) and kept in query.trees and not named else None


def with_kept(reply: EngineAnswer, title: str) -> EngineAnswer:
    """Return an answer that says in which tree alone it was looked for."""
    note = f"Searched in {title} alone, where the answer before it is from: name another tree to search that."
    return replace(reply, ending=replace(reply.ending, notes=[note, *reply.ending.notes]))


def follow_up(question: str, earlier: Sequence[Mapping[str, Any]]) -> FollowUp | None:
    """Return how a question is taken that refers to what was asked before it; None for one that stands by itself.

    Args:
        earlier: the queries of the topic before it, in order, as the wire has them.

    Example:
        >>> taken = follow_up("Which shells does that work for?", [{"Query": "How does completion work?"}])
        >>> taken.text
        'Which shells does that (completion) work for?'
        >>> follow_up("And for zsh?", [{"Query": "How does completion work?"}]).text
        'And for zsh (completion)?'
        >>> follow_up("And metatree doctor?", [{"Query": "What does metatree gateway do?"}]) is None
        True
        >>> follow_up("Where does Context keep its parent?", [{"Query": "How does completion work?"}]) is None
        True
    """
    subject, names, before = "", list[str](), ""
    for turn in earlier[-TURNS:]:
        text = str(turn.get("Query") or "")
        taken = _taken(text, subject, names)
        subject, names = _subject(text if taken is None else taken.text, turn), _names(turn)
        before = before if taken is not None else text.strip()
    taken = _taken(question, subject, names)
    return taken and replace(taken, before=before)


def same_subject(earlier: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return the latest of the earlier queries: those that refer to one another, from the one that does not.

    Example:
        >>> asked = ["Who pays?", "How does completion work?", "And for zsh?"]
        >>> [turn["Query"] for turn in same_subject([{"Query": text} for text in asked])]
        ['How does completion work?', 'And for zsh?']
    """
    first = max(0, len(earlier) - TURNS)
    own = (
        at
        for at in range(len(earlier) - 1, first, -1)
        if follow_up(earlier[at]["Query"], earlier[:at]) is None
    )
    return earlier[next(own, first) :]


def _taken(question: str, subject: str, names: Sequence[str]) -> FollowUp | None:
    question = question.strip()
    if not subject or len(question) > LONG_CHARS:
        return None
    refers = _refers(question)
    if refers is None:
        return None
    own, known = set(terms(question)), set(terms(subject))
    if _OPENS.match(question) and own & known and own - known - asking_terms():
        return None  # it names what it is about, as the question before did: `And metatree doctor?`
    about = dict.fromkeys([*names, *subject.split()])
    added = [word for word in about if not own.issuperset(terms(word))]
    if not added:
        return None
    said = " ".join(added[: _MOST_WORDS + _MOST_NAMES])
    return FollowUp(f"{question[:refers]} ({said}){question[refers:]}", said, question)


def _refers(question: str) -> int | None:
    """Return where a question refers to what was said before: the end of the word that does; None if it does not."""
    end = len(question.rstrip(_AROUND + " ")) or len(question)
    pronoun = _PRONOUN.search(question)
    if pronoun is not None and _EMPTY_IT.search(question) is None:
        asked_for = _ASKED_FOR.match(question)
        start = asked_for.end() if asked_for is not None and asked_for.end() <= pronoun.end() else 0
        callers = _CALLERS.search(question)
        # The verb of `can I disable that` is no thing that it may be; of `may a user disable it`, the user is one.
        verbs = 1 if callers is not None and callers.end() <= pronoun.start() else 0
        before = question[start : pronoun.start()]
        # `Does Click support that?` is not about Click; of `it` that may be said.
        points = _POINTS.search(pronoun[0]) is not None and _CLAUSE.search(before) is None
        return pronoun.end() if points or len(terms(before)) <= verbs else None
    if _OPENS.match(question) or (_WITHOUT_SUBJECT | asking_terms()).issuperset(terms(question)):
        return end
    return None


def _subject(question: str, turn: Mapping[str, Any]) -> str:
    """Return the words that a question is about, as they are written, and those of the title of what answered it."""
    weights = {term: word.weight for word in key_terms_of(question) for term in word.terms}
    asking = set(terms(request_words(question)))
    found = []
    for match in _TOKEN.finditer(question):
        word = match[0].strip(_AROUND)
        own = set(terms(word))
        if own and not own.isdisjoint(asking):
            found.append((word, max(weights.get(term, 0.0) for term in own)))
    telling = [word for word, weight in found if weight >= _LEAST_WEIGHT] or [word for word, _ in found]
    words = list(dict.fromkeys(telling))[:_MOST_WORDS]
    if turn.get("End") in (None, "answered"):
        title = next((str(source.get("Title") or "") for source in turn.get("Sources") or ()), "")
        title = _ENDING.sub(
            "", _BRACKETED.sub("", title)
        )  # `Shell Completion (introduction)`, `completion.md`
        named = title.split()
        if len(named) <= _MOST_WORDS // 2 and not set(terms(title)).isdisjoint(terms(" ".join(words))):
            known = set(terms(" ".join(words)))
            words += [word for word in named if not known.issuperset(terms(word))]
    return " ".join(words)


def _names(turn: Mapping[str, Any]) -> list[str]:
    """Return the names in an answer to a question for a person or a thing, which is what is spoken of next."""
    if turn.get("End") not in (None, "answered"):
        return []
    question = str(turn.get("Query") or "")
    asks_name = read_question(question).kind in ("who", "code", "option")
    text = " ".join(turn.get("Answer") or ())[:_ANSWER_CHARS]
    known = set(terms(question))
    named = [word for word in key_terms_of(text) if word.weight >= NAME and word.terms[-1] not in known]
    named.sort(key=lambda word: text.find(word.text))
    return [word.text for word in named[:_MOST_NAMES]] if asks_name else []
