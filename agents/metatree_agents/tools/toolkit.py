"""What other agents do with a tree: ask, search, files, context, read, outline, grep, references, remember, browse.

The docstrings and arguments of these methods are what models read; `_registry` makes the tools of them. Each answer has
what it stands on, fits the tokens that it may take, and says what was cut, or why it is empty.
"""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from metatree_memory_tools.text.readable import readable

from metatree import ClosestPassage, Limits, Node, SearchResult, Tree, UserError, astream
from metatree import Source as NodeSource
from metatree._util.threads import in_thread
from metatree._util.visible import visible
from metatree.errors import StaleSource
from metatree.notes.feedback import FLAG, take_back
from metatree.notes.notes import forget, remember, said_by
from metatree.notes.placement import GROUP_KIND, MEMORY_KIND
from metatree.result import Quote
from metatree.trees.content import Contents
from metatree.trees.text import lines_of
from metatree_agents.basis import Basis, basis_of
from metatree_agents.code import files_to_edit
from metatree_agents.context import context_for, token_counter
from metatree_agents.nothing_found import why_empty
from metatree_agents.tools import _code_look
from metatree_agents.tools._models import (
    Answer,
    AnsweredQuestion,
    Answers,
    BasisAnswer,
    ClosePassage,
    Context,
    ContextAnswer,
    DefinitionAnswer,
    Depth,
    FileAnswer,
    FileAnswers,
    ForgottenNodes,
    Hit,
    Hits,
    HowMany,
    IgnoreCase,
    Issue,
    Lines,
    ListedNode,
    Listing,
    MaxTokens,
    MemorySource,
    MemoryText,
    MemoryTitle,
    MemoryUnder,
    Name,
    NodeId,
    Offset,
    Pattern,
    Query,
    Questions,
    RangeAnswer,
    RememberedNode,
    Source,
    StandingWish,
    Text,
    TextRows,
    Under,
    Who,
    fields_of,
)
from metatree_agents.tools.closest import line_range, telling
from metatree_agents.tools.locations import earlier_lines, readable_answer, source_place

REFRESH_EVERY_S = 3.0
"""How often a look is taken at whether the sources have changed."""
MAX_SECONDS = 120.0
"""Of one search, unless the caller sets other limits."""
_MOST_LEAVES = 5_000
_PASSAGE_LINES = 12
_PASSAGE_CHARS = 400
"""Of each passage that comes close: an agent pays for them, and can read the node."""

LEAST_TOKENS = 50
_CUT_TOKENS = 40
"""That the note on what was cut takes."""
_HEADER_TOKENS = 40
"""That place, name and reason above a definition take."""
_ROOM_TOKENS = 200
"""What is advised where nothing fits."""

_LEAST_CHARS = 40
"""Of a text that is cut."""

T = TypeVar("T", bound=Answer)
Progress = Callable[[int, str], Awaitable[None]]
"""Told how many steps were made, and what the last one was."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """Who calls a tool, and how to tell of progress."""

    name: str | None = None
    """Who says what is remembered when the call does not tell; None for the toolkit's own."""
    progress: Progress | None = None


_MOST_LINKS = 30
_NOBODY = CallContext()


class Toolkit:
    """A tree, as tools for other agents. Calls may overlap.

    Args:
        tree: the tree, or a function that opens or builds it when it is first needed.
        who: who says what is remembered, when a call does not tell.
        parts: router, reader and so on, as `search` takes them; the embedded ones when empty.
        limits: of each search.
        refresh: whether a tree whose sources have changed is brought up to date before it is used.
    """

    def __init__(
        self,
        tree: Tree | Callable[[], Tree],
        *,
        who: str = "an agent",
        parts: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        refresh: bool = True,
    ) -> None:
        self._open = tree
        self._tree: Tree | None = tree if isinstance(tree, Tree) else None
        self._lock = threading.Lock()
        self._looked_at = float("-inf")
        self.who = who
        self._parts = dict(parts or {})
        self._limits = limits or Limits(seconds=MAX_SECONDS)
        self._refresh = refresh
        self._basis: tuple[float, Basis] | None = None

    def close(self) -> None:
        """Close the tree if this object opened it."""
        with self._lock:
            if self._tree is not None and self._tree is not self._open:
                self._tree.close()
            self._tree = None if callable(self._open) else self._tree

    def ready(self) -> Tree:
        """Return the tree, opened, and refreshed when it is stale; may take as long as building it.

        Raises:
            UserError: there is no tree and none can be built.
        """
        with self._lock:
            if self._tree is None:
                assert not isinstance(self._open, Tree)
                self._tree = self._open()
                self._looked_at = time.monotonic()
            elif self._refresh and time.monotonic() - self._looked_at > REFRESH_EVERY_S:
                if self._tree.stale():
                    self._tree.refresh()
                self._looked_at = time.monotonic()
            return self._tree

    def _ready_now(self) -> Tree:
        """Return the tree as its sources are at this moment, unless it is not to be refreshed."""
        self._looked_at, self._basis = float("-inf"), None
        return self.ready()

    def basis(self) -> Basis:
        """Return what answers stand on, as it was at most a few seconds ago."""
        tree, now = self.ready(), time.monotonic()
        if self._basis is None or now - self._basis[0] > REFRESH_EVERY_S:
            self._basis = now, basis_of(tree)
        return self._basis[1]

    def finished(self, answer: T, max_tokens: int) -> T:
        """Add to an answer what it stands on, and leave out from the end what is more than the tokens hold."""
        basis = self.basis()
        answer.basis = BasisAnswer.model_validate(basis, from_attributes=True)
        count = token_counter()[0]
        items: list[Any] = getattr(answer, answer.listed) if answer.listed else []
        whole = list(items)
        low, high = 0, len(whole)
        while low < high:  # the most items that fit
            middle = (low + high + 1) // 2
            items[:] = whole[:middle]
            if count(answer.text_for_model(basis.line)) <= max(max_tokens, LEAST_TOKENS) - _CUT_TOKENS * (
                middle < len(whole)
            ):
                low = middle
            else:
                high = middle - 1
        items[:] = whole[:low]
        if low < len(whole):
            count_out = f"{len(whole) - low} of {len(whole)} {answer.listed}"
            cut = f"cut: {count_out} left out; for them: max_tokens above {max_tokens}"
            answer.cut = f"{answer.cut}; {cut}".lstrip("; ")
        self._shorten(answer, basis.line, max_tokens)
        return answer

    def _shorten(self, answer: Answer, basis: str, max_tokens: int) -> None:
        """Cut the text of an answer that takes too many tokens though nothing more can be left out."""
        count, most = token_counter()[0], max(max_tokens, LEAST_TOKENS)
        if not any(answer.lines()) or count(answer.text_for_model(basis)) <= most:
            return
        cut = f"cut: the text goes on; for all of it: max_tokens above {max_tokens}"
        answer.cut = f"{answer.cut}; the text goes on" if answer.cut else cut
        low, high = _LEAST_CHARS, max(_LEAST_CHARS, len("\n".join(answer.lines())))
        while low < high:
            middle = (low + high + 1) // 2
            answer.shorten(middle)
            low, high = (middle, high) if count(answer.text_for_model(basis)) <= most else (low, middle - 1)
        answer.shorten(low)

    # finding

    async def search(
        self,
        query: Query,
        *,
        k: HowMany = 10,
        under: Under = "",
        max_tokens: MaxTokens = 2_000,
        caller: CallContext = _NOBODY,
    ) -> Hits:
        """Better than grep when you know what code or text does but not how it is spelled.

        Definitions and passages with path and lines, best first.
        """
        tree = await self._ready_with_evidence(caller.progress)
        result = await self._searched(tree, [query], under or None, caller.progress, returns="nodes", k=k)
        hits = []
        for ref in result.nodes:
            node = tree.find(ref.id)
            if node is not None:
                hits.append(_hit(node, ref.score, ref.reason))
        found = Hits(nodes=hits, wishes=_wishes(result), ended=result.ended, run=result.run_id)
        if not hits:
            found.empty = await in_thread(lambda: why_empty(tree, query, under))
        return await in_thread(lambda: self.finished(found, max_tokens))

    async def ask(
        self,
        questions: Questions,
        *,
        under: Under = "",
        context: Context = "",
        max_tokens: MaxTokens = 2_000,
        caller: CallContext = _NOBODY,
    ) -> Answers:
        """Better than reading files when a question has an answer in words: each answer with its exact source.

        What is not answered has the passages that come closest.
        """
        tree = await self._ready_with_evidence(caller.progress)
        result = await self._searched(tree, questions, under or None, caller.progress, context=context)
        answers = [
            AnsweredQuestion(
                question=each.question,
                answer=each.answer,
                cited=readable_answer(each),
                sources=[_source(tree, source) for source in each.sources],
                verified=each.verified,
                earlier=list(earlier_lines(each)),
            )
            for each in result.answers
        ]
        found = Answers(
            answer=result.answer,
            cited=answers[0].cited if len(answers) == 1 else readable(result.cited),
            answers=answers,
            notes=result.sentences,
            wishes=_wishes(result),
            open_questions=list(result.open_questions),
            closest=[_close_passage(tree, passage) for passage in result.closest],
            ended=result.ended,
            detail=result.detail,
            run=result.run_id,
        )
        if not answers and not found.closest:
            found.empty = await in_thread(lambda: why_empty(tree, " ".join(questions), under))
        return await in_thread(lambda: self.finished(found, max_tokens))

    async def files_to_edit(
        self, issue: Issue, *, k: HowMany = 5, max_tokens: MaxTokens = 1_500
    ) -> FileAnswers:
        """Better than grep to find which files a bug report or task wants changed, with the definitions in them."""
        tree = await self._ready_with_evidence(None)

        def find() -> FileAnswers:
            files = [
                FileAnswer(
                    path=file.place,
                    score=round(file.score, 4),
                    reason=file.reason,
                    definitions=[
                        DefinitionAnswer.model_validate(each, from_attributes=True)
                        for each in file.definitions
                    ],
                )
                for file in files_to_edit(issue, tree, k, limits=self._limits)
            ]
            found = FileAnswers(files=files)
            if not files:
                found.empty = why_empty(tree, issue, "")
            return self.finished(found, max_tokens)

        return await in_thread(find)

    async def context(self, issue: Issue, *, max_tokens: MaxTokens = 4_000) -> ContextAnswer:
        """Better than grep and reading to start on a bug report or task: the lines to look at, within max_tokens."""
        tree = await self._ready_with_evidence(None)

        def find() -> ContextAnswer:
            own = token_counter()[0](self.basis().line) + 5
            chosen = context_for(issue, tree, max(1, max(max_tokens, LEAST_TOKENS) - own))
            ranges = [RangeAnswer.model_validate(each, from_attributes=True) for each in chosen.ranges]
            found = ContextAnswer(ranges=ranges, empty=chosen.detail)
            if chosen.left_out and not ranges:
                best = chosen.left_out[0]
                found.empty = (
                    f"no definition fits: the best is {best.path}:{best.start_line}-{best.end_line};"
                    f" for it: max_tokens of {best.tokens + own + _HEADER_TOKENS} or more"
                )
            if chosen.left_out and ranges:
                rest = ", ".join(f"{x.path}:{x.start_line}-{x.end_line}" for x in chosen.left_out[:2])
                found.cut = f"next: {rest}"
            return self.finished(found, max_tokens)

        return await in_thread(find)

    async def grep(
        self,
        pattern: Pattern,
        *,
        under: Under = "",
        ignore_case: IgnoreCase = False,
        max_tokens: MaxTokens = 2_000,
    ) -> TextRows:
        """Lines that match, for a text whose spelling you know; for what code does, `search` is better."""
        tree = await in_thread(self.ready)

        def find() -> TextRows:
            place = tree.resolve(under) if under else tree.root
            rows, cut = _code_look.grep(tree, place, pattern, ignore_case=ignore_case)
            found = TextRows(rows=rows, cut=cut)
            if not rows:
                found.empty = _code_look.no_lines(tree, place, pattern)
            return self.finished(found, max_tokens)

        return await in_thread(find)

    async def references(self, name: Name, *, max_tokens: MaxTokens = 2_000) -> TextRows:
        """Better than grep for a name: where it is defined, which lines call it, which files import it."""
        tree = await in_thread(self.ready)

        def find() -> TextRows:
            rows = _code_look.references(tree, name)
            found = TextRows(rows=rows)
            if not rows:
                found.empty = why_empty(tree, name, "")
            return self.finished(found, max_tokens)

        return await in_thread(find)

    async def outline(
        self, node: NodeId = ".", *, depth: Depth = 2, max_tokens: MaxTokens = 2_000
    ) -> TextRows:
        """Better than reading a file or listing a folder to see what is in it: names, lines, what each is."""
        tree = await in_thread(self.ready)

        def find() -> TextRows:
            rows = _code_look.outline(tree, tree.resolve(node), depth)
            empty = "" if len(rows) > 1 else f"{node} has nothing below it: `read` it"
            return self.finished(TextRows(rows=rows, empty=empty), max_tokens)

        return await in_thread(find)

    async def _ready_with_evidence(self, progress: Progress | None) -> Tree:
        if progress is not None and self._tree is None:
            await progress(0, "building the tree")
        return await in_thread(self._with_evidence)

    def _with_evidence(self) -> Tree:
        from metatree.parts import find_evidence

        tree = self.ready()
        evidence = find_evidence(tree, required=True)
        if evidence is not None:
            evidence.score(["ready"], k=1)  # takes in what has changed, which may take a while
        return tree

    async def _searched(
        self, tree: Tree, questions: list[str], under: str | None, progress: Progress | None, **options: Any
    ) -> SearchResult:
        start = None if under is None else tree.resolve(under)
        parts = dict(self._parts)
        if parts and "evidence" not in parts:
            from metatree.parts import find_evidence

            parts["evidence"] = find_evidence(tree, required=True)
        events = astream(questions, start, tree=tree, limits=self._limits, **options, **parts)
        return await _last(events, progress)

    # reading

    async def read(self, node: NodeId, *, lines: Lines = "", max_tokens: MaxTokens = 6_000) -> Text:
        """Read lines of a file, or a definition, section or memory by id, with line numbers."""
        tree = await in_thread(self.ready)
        options: dict[str, Any] = {"lines": lines, "max_tokens": max_tokens}
        try:
            return await in_thread(self._read, tree=tree, named=node, **options)
        except StaleSource as stale:  # between two looks at whether something has changed
            before = _lines(tree.get(stale.node_id))
            tree = await in_thread(self._ready_now)
            if node not in tree:
                raise UserError(
                    f"{node!r} was found before its file changed, and is gone: search again, or read the file"
                ) from stale
            changed = "changed since it was found: these are its lines now"
            changed += f", it had {before}" if before else ""
            return await in_thread(self._read, tree=tree, named=node, changed=changed, **options)

    def whole_text(self, named: str) -> str:
        """Return the text of a node: of a file all of it, of a folder a list."""
        tree = self.ready()
        return _text_of(tree, tree.get(tree.resolve(named)))

    def _read(self, tree: Tree, named: str, lines: str, max_tokens: int, changed: str = "") -> Text:
        node = tree.get(tree.resolve(named))
        start = node.source.start_line if node.source is not None else None
        if lines and node.path is not None and node.path in tree:
            node, start = tree.get(node.path), 1  # lines are those of the file
        text = _text_of(tree, node).split("\n")
        if len(text) > 1 and not text[-1]:
            text.pop()
        offset = start or 1
        first, _, last = lines.partition("-")
        begin = max(int(first[:18] or offset), offset)
        end = min(
            int(last[:18] or (first[:18] if lines and "-" not in lines else 10**9)), offset + len(text) - 1
        )
        if begin > end:
            raise UserError(
                f"lines {lines} are not in {node.id!r}, which has {offset}-{offset + len(text) - 1}"
            )
        basis, count = self.basis(), token_counter()[0]
        made = Text(
            **fields_of(node),
            path=node.path,
            first_line=begin,
            last_line=end,
            total_lines=len(text),
            said_by=said_by(node),
            changed=changed,
            text="",
        )
        made.basis = BasisAnswer.model_validate(basis, from_attributes=True)
        shown = text[begin - offset : end - offset + 1]

        def fits(number: int) -> bool:
            made.text, made.last_line = "\n".join(shown[:number]), begin + number - 1
            made.cut = (
                ""
                if number == len(shown)
                else f"cut: the rest is lines {begin + number}-{end}, for `lines` or a larger max_tokens"
            )
            return count(made.text_for_model(basis.line)) <= max(max_tokens, LEAST_TOKENS)

        low, high = 1, min(len(shown), max(max_tokens, LEAST_TOKENS))  # each line is a token at least
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if fits(middle) else (low, middle - 1)
        if not fits(low):  # one line alone is too long
            keep = max(LEAST_TOKENS, max_tokens)
            made.text = made.text[:keep] + "…"
            made.cut = (
                f"cut: line {begin} is {len(shown[0])} characters long; use `grep` for a part of it"
                if len(shown[0]) > keep
                else f"cut: no line fits; for one: max_tokens of {_ROOM_TOKENS} or more"
            )
        return made

    async def browse(
        self, node: NodeId = ".", *, offset: Offset = 0, limit: HowMany = 50, max_tokens: MaxTokens = 2_000
    ) -> Listing:
        """List what lies directly below a node, with ids; `.` is the root. For code, `outline` is better."""
        tree = await in_thread(self.ready)
        made = await in_thread(self._browse, tree=tree, named=node, offset=offset, limit=limit)
        if not made.children:
            made.empty = f"nothing lies below {node}: `read` it"
        whole = len(made.children)
        made = await in_thread(lambda: self.finished(made, max_tokens))
        if len(made.children) < whole:
            made.next_offset = offset + len(made.children)
            made.cut += f", or offset {made.next_offset}"
        return made

    def _browse(self, tree: Tree, named: str, offset: int, limit: int) -> Listing:
        node = tree.get(tree.resolve(named))
        children = tree.children(node)
        end = offset + limit
        return Listing(
            **fields_of(node),
            description=node.description,
            above=tree.ancestors(node),
            links=sorted({other for _, other in tree.links(node)})[:_MOST_LINKS],
            linked_from=sorted({other for _, other in tree.links_to(node)})[:_MOST_LINKS],
            children=[
                ListedNode(
                    **fields_of(child),
                    description=child.description,
                    children=tree.child_count(child),
                    has_text=_has_text(tree, child),
                )
                for child in children[offset:end]
            ],
            total=len(children),
            next_offset=end if end < len(children) else None,
        )

    # memory

    async def remember(
        self,
        text: MemoryText,
        *,
        title: MemoryTitle = "",
        source: MemorySource = "",
        under: MemoryUnder = "",
        who: Who = "",
        max_tokens: MaxTokens = 500,
        caller: CallContext = _NOBODY,
    ) -> RememberedNode:
        """Keep a fact or decision where the next search finds it, with who said it and when. Never secrets."""
        tree = await in_thread(self.ready)
        made = await in_thread(
            remember,
            tree=tree,
            text=text,
            title=title or None,
            source=source or None,
            who=who or caller.name or self.who,
            under=tree.resolve(under) if under else None,
        )
        kept = RememberedNode(
            id=made.node.id,
            title=made.node.title,
            under=made.parent,
            why=made.why,
            known=made.known,
            warnings=list(made.warnings),
        )
        return await in_thread(lambda: self.finished(kept, max_tokens))

    async def forget(self, node: NodeId) -> ForgottenNodes:
        """Take back a memory, or another node that was added; what was built from a source cannot be forgotten."""
        tree = await in_thread(self.ready)
        if node.startswith(FLAG):
            flag = await in_thread(take_back, tree=tree, flag_id=node)
            return ForgottenNodes(forgotten=[flag.id], text=str(flag))
        removal = await in_thread(forget, tree=tree, node=node)
        return ForgottenNodes(forgotten=[each.id for each in removal.nodes], text=str(removal.undo["text"]))


async def _last(events: AsyncIterator[Any], progress: Progress | None) -> SearchResult:
    """Return the result that a stream ends with, and tell of what comes before it."""
    from metatree.searches.on_blackboard import describe

    steps = 0
    result: SearchResult | None = None
    async for event in events:
        if isinstance(event, SearchResult):
            result = event
        elif progress is not None and event.event != "mark":  # the step that ruled a node out says so
            steps += 1
            entry = {"event": event.event, "node": event.node, "reason": event.reason, "data": event.data}
            await progress(steps, describe(entry))
    assert result is not None
    return result


def _wishes(result: SearchResult) -> list[StandingWish]:
    return [
        StandingWish(
            text=wish.text, about=wish.about, who=wish.who, at=wish.at, source=wish.source, file=wish.file
        )
        for wish in result.wishes
    ]


def _hit(node: Node, score: float, reason: str) -> Hit:
    return Hit(
        **fields_of(node),
        description=node.description,
        path=node.path,
        lines=_lines(node),
        score=round(score, 4),
        reason=reason,
    )


def _source(tree: Tree, quote: Quote) -> Source:
    return Source(
        node=quote.node,
        title=quote.title,
        place=source_place(tree, quote),
        number=quote.number,
        quote=quote.quote,
        said_by=_said_by(tree, quote.node),
    )


def _close_passage(tree: Tree, passage: ClosestPassage) -> ClosePassage:
    return ClosePassage(
        question=passage.question,
        node=passage.node,
        title=passage.title,
        place=passage.place,
        lines=line_range(passage),
        quote="\n".join(
            telling(passage.question, lines_of(passage.quote), lines=_PASSAGE_LINES, chars=_PASSAGE_CHARS)
        ),
        said_by=_said_by(tree, passage.node),
    )


def _said_by(tree: Tree, node_id: str) -> str:
    node = tree.find(node_id)
    return "" if node is None else said_by(node)


def _lines(node: Node) -> str | None:
    source = node.source
    if source is None or source.start_line is None:
        return None
    return f"{source.start_line}-{source.end_line}"


def _has_text(tree: Tree, node: Node) -> bool:
    """Say whether a node has a text, its own or, as a file, in its parts; the list that a folder reads as is none."""
    if node.has_content:
        return True
    if node.kind in ("folder", GROUP_KIND) or node.path is None:
        return False
    return any(_is_part(each, node) for _, each in tree.walk(node))


def _is_part(node: Node, of: Node) -> bool:
    return node.has_content and node.kind != MEMORY_KIND and node.path == of.path


def _text_of(tree: Tree, node: Node) -> str:
    """Return the text of a node; of a file all of it, of another node without text its leaves, of a folder a list."""
    if node.has_content:
        return tree.content(node)
    if node.kind in ("folder", GROUP_KIND) or node.path is None:
        below = (
            visible(f"{child.id}  {child.title}: {child.description}".rstrip(": "))
            for child in tree.children(node)
        )
        return "\n".join(below)
    leaves: list[Node] = []
    for _, each in tree.walk(node):
        if _is_part(each, node):
            leaves.append(each)
            if len(leaves) >= _MOST_LEAVES:
                break
    if node.kind == "file" and leaves and all(leaf.source and leaf.source.type == "text" for leaf in leaves):
        # As its parts are read: inside the source, with secrets masked, and only what the tree was built from.
        whole = replace(node, content=None, source=NodeSource(path=node.path))
        return Contents(tree.index, tree.sources(), tree.files).read(whole)
    leaves.sort(key=lambda leaf: (leaf.source.start_line or 0) if leaf.source else 0)
    return "\n".join(text.rstrip("\n") for _, _, text in tree.texts(leaf.id for leaf in leaves))
