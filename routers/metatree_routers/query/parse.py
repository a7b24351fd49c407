"""Cut a question into title, prose, code and traceback, since their words do not weigh the same.

A question of one sentence is all title. A bug report has a title that was thought about, prose that says what is
wrong, snippets that use the public interface, tracebacks that pass through half the program, and forms and lists of
versions that say nothing.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from metatree.trees.text import encodable
from metatree_routers.query.stack_frames import is_frame, is_python_frame
from metatree_routers.query.terms import expand, raw_tokens, spelled_terms, term_counts

TITLE, PROSE, CODE, TRACEBACK = "title", "prose", "code", "traceback"
WEIGHTS = {TITLE: 3.0, PROSE: 1.0, CODE: 0.5, TRACEBACK: 0.3}

MAX_CHARS = 20_000
"""A longer question is read up to here; what follows has no part in the search."""
_LONG_CHARS = 300
_TITLE_CHARS = 1_000
"""A longer first line is a paragraph: each word of a title is looked up in each text."""
_SENTENCE_END = re.compile(r"[.?!]\s+")

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]{0,200}>")
_URL = re.compile(r"https?://\S+")
_FENCE = re.compile(r"^\s{0,3}(```+|~~~+)")
_TRACEBACK_START = re.compile(r"^\W*Traceback \(most recent call last\)|^=+ (?:FAILURES|ERRORS) =+$")
_RAISED = re.compile(r"^(?:E\s+)?(?:\w+\.)*\w*(?:Error|Exception|Warning|Exit|Interrupt)\b")
_PROMPT = re.compile(r"^\s*(?:>>>|\.\.\. |In \[\d+\]:|Out\[\d+\]:|\$ )")
_INDENTED = re.compile(r"^(?: {4,}|\t)\S")
_LIST_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s")
_CHECKBOX = re.compile(r"^\s*[-*]\s*\[[ xX]\]")
_VERSION = re.compile(
    r"^\W*[\w .()/-]{1,40}\s*(?:[:=@]+|\s)\s*v?\d+(?:\.\d+)+\S*\s*$|^[\w.-]+(?:==|\s{2,})[\w.]+$"
)
_BLANKS = re.compile(r"\s{3,}")
_MOST_VERSION_CHARS = 100
_NOISE_HEADING = re.compile(
    r"^\W*(?:versions?|environment|system details|system info\w*|output of|your environment|package versions?"
    r"|operating system|python version|os version|mvce? confirmation)\b.{0,60}$",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^\s{0,3}(?:#{1,6}\s+\S|\*\*[^*]+\*\*\s*:?\s*$)")


@dataclass(frozen=True, slots=True)
class Sections:
    """The lines of a question by what they are; each is a text of its own."""

    title: str = ""
    prose: str = ""
    code: str = ""
    traceback: str = ""
    is_long: bool = False
    """Whether it reads like a report and not like a question of a sentence or two."""
    links: tuple[str, ...] = ()
    """The addresses in it, each once; what they are made of are no words of the prose."""

    @property
    def heading(self) -> str:
        """The first line: a short question is all title, and may go on below it."""
        return self.title.partition("\n")[0]

    def texts(self) -> dict[str, str]:
        """Return the text of each section."""
        return {TITLE: self.title, PROSE: self.prose, CODE: self.code, TRACEBACK: self.traceback}

    def term_weights(self) -> dict[str, float]:
        """Weigh terms by the section they stand in; repetitions count by their logarithm.

        Example:
            >>> sections("Where are redirects followed?").term_weights() == {"redirect": 3.0, "follow": 3.0}
            True
        """
        weights: defaultdict[str, float] = defaultdict(float)
        for name, text in self.texts().items():
            for term, times in term_counts(text).items():
                weights[term] += WEIGHTS[name] * (1.0 + math.log(times))
        return dict(weights)

    def spellings(self) -> dict[str, str]:
        """Give, for each term, the shortest word of the question that it comes from; of a name, the part alone.

        Example:
            >>> spelled = sections("Where are redirects followed by resolve_redirects?").spellings()
            >>> spelled["redirect"], spelled["resolv"], spelled["resolve_redirects"]
            ('redirects', 'resolve', 'resolve_redirects')
        """
        spelled: dict[str, str] = {}
        for text in self.texts().values():
            for raw in dict.fromkeys(raw_tokens(text)):
                for term, word in spelled_terms(raw):
                    if term not in spelled or len(word) < len(spelled[term]):
                        spelled[term] = word
        return spelled

    def telling(self, terms: Iterable[str], *, numbers: bool = False) -> list[str]:
        """Keep the terms that tell something by themselves: no small numbers, and no parts of a name that is there.

        Where nothing else is there, all are kept.

        Args:
            numbers: whether small numbers are kept too, as in a question that somebody thought about.

        Example:
            >>> asked = sections("parse_header drops 32 of 3 headers in 2019")
            >>> asked.telling(["32", "pars", "parse_header", "3", "2019", "header"])
            ['parse_header', '2019', 'header']
        """
        given = list(terms)
        there, alone, covered = set(given), set[str](), set[str]()
        for raw in {raw for text in self.texts().values() for raw in raw_tokens(text)}:
            *parts, whole = expand(raw) or ("",)
            if not parts:
                alone.add(whole)
            elif whole in there:
                covered.update(parts)
        covered -= alone
        # Two letters of a name are no word: `PDFs` is cut into PD and Fs.
        distinctive = [term for term in given if term not in covered and (len(term) > 2 or term in alone)]
        return [term for term in distinctive if numbers or not _is_small_number(term)] or given

    def are_small_numbers(self, terms: Iterable[str]) -> bool:
        """Say whether these terms are numbers of one to three digits, all of them."""
        return all(map(_is_small_number, terms))


def _is_small_number(term: str) -> bool:
    return len(term) < 4 and term.isdigit()


def sections(question: str) -> Sections:
    """Cut a question into its sections; a lone surrogate, which no store takes, becomes `?`."""
    return _sections(encodable(question[:MAX_CHARS]))


@lru_cache(maxsize=64)
def _sections(question: str) -> Sections:
    question = question.replace("\r\n", "\n").strip()
    title, body = _titled(question)
    closed, end, rest = body.rpartition(
        "-->"
    )  # a comment without an end is none, and is not looked for in vain
    title, body = title.strip(), _COMMENT.sub(" ", closed + end) + rest
    links = tuple(dict.fromkeys(_URL.findall(f"{title}\n{body}")))
    if not body.strip() or len(question) < _LONG_CHARS:
        return Sections(title=question, links=links)
    lines: dict[str, list[str]] = {PROSE: [], CODE: [], TRACEBACK: []}
    fence = ""
    tracing = noise = False
    before = ""
    for line in body.split("\n"):
        mark = _FENCE.match(line)
        if mark and (not fence or mark.group(1).startswith(fence)):
            fence = "" if fence else mark.group(1)
            tracing = False
            before = ""
            continue
        if not fence and _HEADING.match(line):
            noise = False
        if _NOISE_HEADING.match(line):
            noise = True
        if _TRACEBACK_START.match(line) or is_python_frame(line):
            tracing = True
        if tracing:
            raised = _RAISED.match(line)
            lines[PROSE if raised else TRACEBACK].append(line)
            tracing = not raised and (bool(line.strip()) or bool(fence))
        elif is_frame(line):
            lines[TRACEBACK].append(line)
        elif noise or _CHECKBOX.match(line) or _is_version(line):
            pass
        elif fence or _PROMPT.match(line) or (_INDENTED.match(line) and _starts_code(before)):
            lines[CODE].append(line)
        else:
            lines[PROSE].append(_TAG.sub(" ", _URL.sub(" ", line)))
        before = line
    prose, code, traceback = map("\n".join, lines.values())
    return Sections(title, prose, code, traceback, is_long=True, links=links)


def _titled(question: str) -> tuple[str, str]:
    """Part the first line from the rest; of a paragraph, the sentences or at least the words that make a title."""
    title, _, body = question.partition("\n")
    if len(title) <= _TITLE_CHARS:
        return title, body
    sentences = [match.end() for match in _SENTENCE_END.finditer(title, 0, _TITLE_CHARS)]
    end = sentences[-1] if sentences else title.rfind(" ", 0, _TITLE_CHARS) + 1 or _TITLE_CHARS
    return title[:end], f"{title[end:]}\n{body}"


def _is_version(line: str) -> bool:
    """Whether a line of a list of versions: a name and a number, and nothing else."""
    # Between parts that may all be blank, long runs of blanks can be split in too many ways.
    return len(line) <= _MOST_VERSION_CHARS and bool(_VERSION.match(_BLANKS.sub("  ", line)))


def _starts_code(line_before: str) -> bool:
    """Whether an indented line after this one is code, and not the rest of a list item."""
    return not line_before.strip() or (
        bool(_INDENTED.match(line_before)) and not _LIST_ITEM.match(line_before)
    )
