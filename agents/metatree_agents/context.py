"""The lines of a source that an issue is about, within a number of tokens: what an agent reads first.

Whole definitions, best first. What one is worth is how well its words fit, as a share of the best of all, and how
surely the issue names it, times how well its file fits, over a power of what it costs. One that would take more than
half of the tokens is given by its outline: its signature, and the lines that have most of the issue's words.

The weights were fitted on half of the issues of six repositories (`python -m benchmarks.code_context`). Lost: the best
of its own file as the measure, and long definitions cut into pieces of 16 to 40 lines, which gave more places and fewer
of the right lines.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from metatree._util.visible import visible
from metatree.errors import UserError

if TYPE_CHECKING:
    from metatree_routers.evidence.file_parts import FileOfParts, PartOfFile

    from metatree import Node, Tree
    from metatree.protocols import AnyEvidence

FILES = 10
"""Files whose definitions are looked at."""
COST_POWER = 0.3
"""Of the tokens of a definition, by which its worth is divided: two short ones that fit are better than a long one."""
WORDS_POWER = 2.0
"""Of how well the words of a definition fit: the best few stand out."""
NAMED_WEIGHT = 0.6
LENGTH_POWER = 0.3
"""Of the words of a definition: BM25 weighs words down by it, but more of a long one can be wrong."""
LEAST_COST = 30
LARGEST_SHARE = 0.5
"""Of the tokens, that one definition may take."""
WINDOW = 24
"""Lines of an outline."""
MOST_TRIED = 300
_HEADER_TOKENS = 40
_LEAST_TOKENS = 30
"""Fewer hold nothing with its head."""
_SHORT = 500
"""A definition of so many tokens is given whole where it fits, however few were asked for."""
_CHARS_PER_TOKEN = 3
_SIGNATURE = re.compile(r"[:{]\s*$")


@dataclass(frozen=True, slots=True)
class ContextRange:
    """Some lines of a file."""

    path: str
    """Relative to the source, with `/`."""
    start_line: int
    end_line: int
    """Last line, included."""
    name: str
    """The definition that they are, or are of; several are joined by commas."""
    kind: Literal["whole", "outline"]
    reason: str
    """Why these lines, in a short clause."""
    text: str
    node: str
    source: str = ""
    """The source that the path is relative to, in a tree of several sources."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A definition that fits the issue and did not fit into the tokens."""

    path: str
    start_line: int
    end_line: int
    name: str
    tokens: int
    source: str = ""


@dataclass(frozen=True, slots=True)
class IssueContext:
    """The lines that an issue is about."""

    ranges: tuple[ContextRange, ...]
    """Best first; never two of the same lines."""
    text: str
    """All of them as a model reads them."""
    tokens: int
    """Of the text; never more than asked for."""
    budget: int
    counted_by: str
    """What counted the tokens."""
    left_out: tuple[LeftOut, ...] = ()
    """What fits best of the rest."""
    detail: str = ""
    """Why nothing, or less than asked for, was found; empty otherwise."""


def context_for(
    issue: str,
    tree: Tree,
    tokens: int = 4000,
    *,
    accept: Callable[[Node], bool] | None = None,
    evidence: AnyEvidence | None = None,
) -> IssueContext:
    """Choose the lines that an issue or a task is about, within a number of tokens.

    Args:
        issue: the whole text: title, prose, code blocks, traceback.
        tree: a tree of the source code, as `build_tree` makes it.
        tokens: at most so many, of the tokenizer of Llama 2, which cuts code finer than those of most models.
        accept: says which files may be shown; None for all.
        evidence: the text index; None for that of the tree.

    Raises:
        UserError: the issue is empty, or the number of tokens is not positive.
    """
    from metatree_routers import TextEvidence
    from metatree_routers.evidence.file_parts import rank_parts

    from metatree import Tree
    from metatree.parts import as_evidence, find_evidence

    if not isinstance(tree, Tree):
        raise UserError(f"tree={tree!r}: give a Tree, from Tree.open(path) or build_tree(path)")
    if not issue.strip():
        raise UserError("the issue is empty: give its title and text")
    if tokens < 1:
        raise UserError(f"tokens={tokens!r}: give how many tokens the lines may take, such as 4000")
    scores = as_evidence(evidence) if evidence else find_evidence(tree, required=True)
    if not isinstance(scores, TextEvidence):
        raise UserError(f"lines are chosen by the text index, and not by {type(scores).__name__}")

    def accepts(id_: str) -> bool:
        node = tree.find(id_)
        return node is not None and node.kind == "file" and (accept is None or accept(node))

    files = rank_parts(scores, tree, issue, FILES, accept=accepts)
    return _Packing(tree, issue, tokens, files).packed()


@dataclass(slots=True)
class _Candidate:
    worth: float
    file: FileOfParts
    part: PartOfFile
    ranges: tuple[tuple[int, int], ...]
    tokens: int
    """About so many."""


@dataclass(slots=True)
class _Taken:
    """Lines of one file that are given, under one head."""

    file: FileOfParts
    first: int
    last: int
    parts: list[PartOfFile]
    kind: Literal["whole", "outline"]


@dataclass(slots=True)
class _Packing:
    """Takes definitions until the tokens are spent."""

    tree: Tree
    issue: str
    budget: int
    files: Sequence[FileOfParts]
    _lines: dict[str, list[str]] = field(default_factory=dict)

    def packed(self) -> IssueContext:
        count, counted_by = token_counter()
        candidates = self._candidates()
        taken: list[_Taken] = []
        rest: list[_Candidate] = []
        left = self.budget
        for candidate in candidates:
            for given in self._ways(candidate) if left >= _LEAST_TOKENS else ():
                cost = sum(self._cost(each, count) for each in given)
                if cost <= left:
                    left -= cost
                    taken += given
                    break
            else:
                rest.append(candidate)
        taken = _joined(taken)
        blocks = [self._block(each) for each in taken]
        while blocks and count("\n\n".join(self._shown(block) for block in blocks)) > self.budget:
            blocks.pop()  # what stands between blocks may have cost a little more
        text = "\n\n".join(self._shown(block) for block in blocks)
        return IssueContext(
            tuple(blocks),
            text,
            count(text) if text else 0,
            self.budget,
            counted_by,
            tuple(self._left_out(each) for each in rest[:5]),
            self._detail(blocks, candidates),
        )

    def _candidates(self) -> list[_Candidate]:
        found: list[_Candidate] = []
        top = self.files[0].score if self.files else 1.0
        best = max((part.words for file in self.files for part in file.parts), default=0.0) or 1.0
        for file in self.files:
            lines = self._of(file)
            for part in file.parts:
                fit = (part.words / best) ** WORDS_POWER + NAMED_WEIGHT * part.named
                fit *= max(part.terms, 1) ** LENGTH_POWER
                ranges = tuple((first, last or len(lines)) for first, last in part.ranges)
                if not fit or ranges[-1][1] > len(lines):
                    continue
                chars = sum(len(self._text(file, *span)) for span in ranges)
                tokens = chars // _CHARS_PER_TOKEN + 1
                worth = fit * file.score / top / max(tokens, LEAST_COST) ** COST_POWER
                found.append(_Candidate(worth, file, part, ranges, tokens))
        return sorted(found, key=lambda each: -each.worth)[:MOST_TRIED]

    def _ways(self, candidate: _Candidate) -> Iterator[list[_Taken]]:
        """Yield what can be given of a definition: all of it, unless it is very long, or an outline of a long one."""
        part, file = candidate.part, candidate.file
        if candidate.tokens <= max(LARGEST_SHARE * self.budget, _SHORT):
            yield [
                _Taken(file, *_with_blanks(self._of(file), first, last), [part], "whole")
                for first, last in candidate.ranges
            ]
        if candidate.tokens > min(LARGEST_SHARE * self.budget, _SHORT):
            yield [_Taken(file, *span, [part], "outline") for span in self._outline(file, candidate.ranges)]

    def _outline(self, file: FileOfParts, ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the first lines of a definition, up to the end of its signature, and its best lines."""
        lines = self._of(file)
        first, last = ranges[0]
        end = first
        while end < min(last, first + 8) and not _SIGNATURE.search(lines[end - 1]):
            end += 1
        body = [(max(start, end + 1), stop) for start, stop in ranges if stop > end]
        if not body:
            return [(first, end)]
        start, stop = self._window(lines, body)
        return [(first, stop)] if start == end + 1 else [(first, end), (start, stop)]

    def _window(self, lines: list[str], ranges: Sequence[tuple[int, int]]) -> tuple[int, int]:
        from metatree_routers.query.parse import sections
        from metatree_routers.query.terms import terms

        weights = sections(self.issue).term_weights()
        best, place = -1.0, ranges[0]
        for first, last in ranges:
            shared = [weights.keys() & set(terms(line)) for line in lines[first - 1 : last]]
            for start in range(0, max(1, len(shared) - WINDOW + 1), 4):
                said = set().union(*shared[start : start + WINDOW])
                worth = sum(weights[term] for term in said)
                if worth > best:
                    best, place = worth, (first + start, min(last, first + start + WINDOW - 1))
        return place

    def _cost(self, taken: _Taken, count: Callable[[str], int]) -> int:
        return count(self._shown(self._block(taken))) + 2

    def _block(self, taken: _Taken) -> ContextRange:
        from metatree_agents.code import place_of

        path, source = place_of(self.tree, taken.file.node_id)
        return ContextRange(
            path,
            taken.first,
            taken.last,
            ", ".join(dict.fromkeys(part.name for part in taken.parts)),
            taken.kind,
            self._reason(taken),
            self._text(taken.file, taken.first, taken.last).rstrip(),
            taken.parts[0].node_id,
            source,
        )

    def _reason(self, taken: _Taken) -> str:
        from metatree_routers.query.parse import sections
        from metatree_routers.query.terms import terms

        if any(part.named for part in taken.parts):
            return "the issue names it"
        parts = sections(self.issue)
        weights, spelled = parts.term_weights(), parts.spellings()
        said = weights.keys() & set(terms(self._text(taken.file, taken.first, taken.last)))
        telling = parts.telling(sorted(said, key=lambda term: (-weights[term], term)))
        words = list(dict.fromkeys(spelled.get(term, term) for term in telling))[:3]
        if words:
            return f"has {', '.join(words)}"
        return taken.file.reason.partition("; ")[0] or "lies in a file that fits"

    def _shown(self, block: ContextRange) -> str:
        outline = ", in part" if block.kind == "outline" else ""
        place = f"{block.source}/{block.path}" if block.source else block.path
        head = f"## {place}:{block.start_line}-{block.end_line} {block.name}{outline} ({block.reason})"
        return f"{visible(head)}\n{block.text}"

    def _detail(self, blocks: Sequence[ContextRange], candidates: Sequence[_Candidate]) -> str:
        if blocks:
            return ""
        if not candidates:
            if documents := [visible(file.path) for file in self.files if not file.parts]:
                return (
                    f"what fits is in documents, which have no lines to give ({', '.join(documents[:3])}):"
                    " `metatree ask` and `metatree find` look into them"
                )
            return (
                "nothing in this tree has a word of the issue: name what it is about as the source calls it"
            )
        best = candidates[0]
        place = f"{visible(best.file.path)}:{best.ranges[0][0]}-{best.ranges[-1][1]}"
        need = min(each.tokens for each in candidates) + _HEADER_TOKENS
        return f"{self.budget} tokens hold no definition: the best is {place}; ask for {need} or more"

    def _left_out(self, candidate: _Candidate) -> LeftOut:
        from metatree_agents.code import place_of

        path, source = place_of(self.tree, candidate.file.node_id)
        first, last = candidate.ranges[0][0], candidate.ranges[-1][1]
        return LeftOut(path, first, last, candidate.part.name, candidate.tokens, source)

    def _of(self, file: FileOfParts) -> list[str]:
        """Return the lines of a file as they are now; none when it cannot be read any more."""
        from metatree_memory_tools.text.lines import text_of

        if file.node_id not in self._lines:
            try:
                self._lines[file.node_id] = text_of(self.tree, file.node_id).lines
            except UserError:
                self._lines[file.node_id] = []
        return self._lines[file.node_id]

    def _text(self, file: FileOfParts, first: int, last: int) -> str:
        return "\n".join(self._of(file)[first - 1 : last])


def _with_blanks(lines: Sequence[str], first: int, last: int) -> tuple[int, int]:
    """Return a range with the empty lines around it: what is put beside a definition is put there."""
    while last < len(lines) and not lines[last].strip():
        last += 1
    while first > 1 and not lines[first - 2].strip():
        first -= 1
    return first, last


def _joined(taken: Sequence[_Taken]) -> list[_Taken]:
    """Join lines that lie side by side, at the place of the better ones."""
    joined: list[_Taken] = []
    for new in taken:
        beside = [
            old
            for old in joined
            if old.file is new.file and old.first <= new.last + 1 and new.first <= old.last + 1
        ]
        if not beside:
            joined.append(new)
            continue
        kept = beside[0]
        for other in [*beside[1:], new]:
            kept.first, kept.last = min(kept.first, other.first), max(kept.last, other.last)
            kept.parts += other.parts
            kept.kind = "outline" if "outline" in (kept.kind, other.kind) else "whole"
        joined = [each for each in joined if each is kept or each not in beside]
    return joined


@lru_cache(maxsize=1)
def token_counter() -> tuple[Callable[[str], int], str]:
    """Return what counts the tokens of a text, and its name: nothing is downloaded for it."""
    from metatree_routers.tokenizer import llama_tokenizer

    try:
        tokenizer = llama_tokenizer()
    except (LookupError, ImportError, OSError, ValueError):
        return lambda text: math.ceil(len(text.encode("utf-8", "replace")) / 3), "a third of the bytes"

    def count(text: str) -> int:
        return len(tokenizer.encode(text.encode("utf-8", "replace").decode(), add_special_tokens=False).ids)

    return count, "the tokenizer of Llama 2"
