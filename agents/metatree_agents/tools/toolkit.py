"""What other agents do with a tree: search, ask, read, browse, remember, forget.

The docstrings and arguments of these six methods are what models read; `_registry` makes the tools of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from metatree_memory_tools.text.readable import readable

from metatree import ClosestPassage, Limits, Node, SearchResult, Tree, astream
from metatree import Source as NodeSource
from metatree._util.threads import in_thread
from metatree.notes.feedback import FLAG, take_back
from metatree.notes.notes import forget, remember, said_by
from metatree.notes.placement import GROUP_KIND, MEMORY_KIND
from metatree.result import Quote
from metatree.trees.content import Contents
from metatree.trees.text import lines_of
from metatree_agents.tools._models import (
    AnsweredQuestion,
    Answers,
    ClosePassage,
    Context,
    ForgottenNodes,
    Hit,
    Hits,
    HowMany,
    ListedNode,
    Listing,
    MaxChars,
    MemorySource,
    MemoryText,
    MemoryTitle,
    MemoryUnder,
    NodeId,
    Offset,
    Query,
    Questions,
    RememberedNode,
    Source,
    Text,
    Under,
    Who,
)
from metatree_agents.tools.closest import line_range, telling
from metatree_agents.tools.locations import readable_answer, source_place
from metatree_agents.tools.question_notes import notes_of

REFRESH_EVERY_S = 3.0
"""How often a look is taken at whether the sources have changed."""
MAX_SECONDS = 120.0
"""Of one search, unless the caller sets other limits."""
_MOST_LEAVES = 5_000
_PASSAGE_LINES = 12
_PASSAGE_CHARS = 400
"""Of each passage that comes close: an agent pays for them, and can read the node."""

Progress = Callable[[int, str], Awaitable[None]]
"""Told how many steps were made, and what the last one was."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """Who calls a tool, and how to tell of progress."""

    name: str | None = None
    """Who says what is remembered when the call does not tell; None for the toolkit's own."""
    progress: Progress | None = None


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

    # finding

    async def search(
        self, query: Query, *, k: HowMany = 10, under: Under = None, caller: CallContext = _NOBODY
    ) -> Hits:
        """Find the parts of the memory that are about something: files, definitions, sections, notes; best first."""
        tree = await self._ready_with_evidence(caller.progress)
        result = await self._searched(tree, [query], under, caller.progress, returns="nodes", k=k)
        hits = []
        for ref in result.nodes:
            node = tree.find(ref.id)
            if node is not None:
                hits.append(_hit(node, ref.score, ref.reason))
        return Hits(nodes=hits, ended=result.ended, run=result.run_id)

    async def ask(
        self,
        questions: Questions,
        *,
        under: Under = None,
        context: Context = "",
        caller: CallContext = _NOBODY,
    ) -> Answers:
        """Answer questions from the memory, each answer with its sources and their exact words.

        It says what it could not answer, and which passages come closest to that. For the text around an answer or a
        passage, `read` its node.
        """
        tree = await self._ready_with_evidence(caller.progress)
        result = await self._searched(tree, questions, under, caller.progress, context=context)
        answers = [
            AnsweredQuestion(
                question=each.question,
                answer=each.answer,
                cited=readable_answer(each),
                sources=[_source(tree, source) for source in each.sources],
                verified=each.verified,
            )
            for each in result.answers
        ]
        return Answers(
            answer=result.answer,
            cited=answers[0].cited if len(answers) == 1 else readable(result.cited),
            answers=answers,
            notes=list(notes_of(result)),
            open_questions=list(result.open_questions),
            closest=[_close_passage(tree, passage) for passage in result.closest],
            ended=result.ended,
            detail=result.detail,
            run=result.run_id,
        )

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

    async def read(self, node: NodeId, *, offset: Offset = 0, max_chars: MaxChars = 20_000) -> Text:
        """Read the text of a node: a definition, a section, a whole file, a memory."""
        tree = await in_thread(self.ready)
        return await in_thread(self._read, tree=tree, named=node, offset=offset, max_chars=max_chars)

    def _read(self, tree: Tree, named: str, offset: int, max_chars: int) -> Text:
        node = tree.get(tree.resolve(named))
        text = _text_of(tree, node)
        end = offset + max_chars
        return Text(
            **_named(node),
            path=node.path,
            lines=_lines(node),
            said_by=said_by(node),
            text=text[offset:end],
            total_chars=len(text),
            next_offset=end if end < len(text) else None,
        )

    async def browse(self, node: NodeId = ".", *, offset: Offset = 0, limit: HowMany = 100) -> Listing:
        """List what lies directly below a node of the memory; `.` is the root."""
        tree = await in_thread(self.ready)
        return await in_thread(self._browse, tree=tree, named=node, offset=offset, limit=limit)

    def _browse(self, tree: Tree, named: str, offset: int, limit: int) -> Listing:
        node = tree.get(tree.resolve(named))
        children = tree.children(node)
        end = offset + limit
        return Listing(
            **_named(node),
            description=node.description,
            above=tree.ancestors(node),
            children=[
                ListedNode(
                    **_named(child),
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
        title: MemoryTitle = None,
        source: MemorySource = None,
        under: MemoryUnder = None,
        who: Who = None,
        caller: CallContext = _NOBODY,
    ) -> RememberedNode:
        """Keep a fact, decision or preference in the memory, where the next search finds it.

        It is marked with who said it and when. The same text is kept once. Never remember passwords or keys.
        """
        tree = await in_thread(self.ready)
        made = await in_thread(
            remember,
            tree=tree,
            text=text,
            title=title,
            source=source,
            who=who or caller.name or self.who,
            under=None if under is None else tree.resolve(under),
        )
        return RememberedNode(
            id=made.node.id,
            title=made.node.title,
            under=made.parent,
            why=made.why,
            known=made.known,
            warnings=list(made.warnings),
        )

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


def _named(node: Node) -> dict[str, Any]:
    """Return the fields of a `NodeAnswer`."""
    return {"id": node.id, "title": node.title, "kind": node.kind}


def _hit(node: Node, score: float, reason: str) -> Hit:
    return Hit(
        **_named(node),
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
            f"{child.id}  {child.title}: {child.description}".rstrip(": ") for child in tree.children(node)
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
