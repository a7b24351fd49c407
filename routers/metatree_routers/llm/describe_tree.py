"""Write descriptions for the nodes of a tree, in few calls, only where something changed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from metatree._util.threads import run_apart
from metatree.durable import metered, report_usage
from metatree.errors import BadModelAnswer, MetatreeError, TransientError, UserError
from metatree.node import Node
from metatree.parts import as_describer
from metatree.protocols import AnyDescriber, Describer, DescribeRequest, Description
from metatree.trees.tree import Tree
from metatree_routers.wrappers.disk_cache import key_of

T = TypeVar("T")

BATCH = 20
RULES_TOKENS, NAMED_TOKENS, WRITTEN_TOKENS, TOKEN_CHARS = 140, 18, 40, 4
"""About what the rules take, the name of a node, and what is written of it; and characters of a token."""
MARK = "described"
"""Key in a node's provenance under which the basis of its description stands: a hash of the texts below the node.

Lost: a hash of the descriptions below it, with which children and parents could not share a call; as it is, there are
exactly a twentieth as many calls as nodes.
"""
ATTEMPTS = 3
MOST_FAILED = 3
"""After so many failed calls in a row, each with all of its attempts, no more are made."""
BACKOFF_S = 0.5
MAX_PAUSE_S = 30.0
_HEAD_CHARS = 6_000
_MAX_CHILDREN = 60


@dataclass(slots=True)
class Described:
    """What `describe_tree` did."""

    written: int = 0
    unchanged: int = 0
    """Nodes whose text and children are as they were when they were described."""
    kept: int = 0
    """Nodes with words that somebody gave them by hand."""
    calls: int = 0
    """Failed attempts included."""
    failed: dict[str, str] = field(default_factory=dict)
    """Node id -> why it has no new description; the next time tries again."""
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None
    """US dollars; None when no price of the model is known."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What `describe_tree` would do."""

    nodes: int
    """Those that are described."""
    unchanged: int
    kept: int
    requests: int
    """Exactly, unless one fails."""
    tokens_in: int
    """About."""
    tokens_out: int
    """About."""


def estimate(
    tree: Tree,
    *,
    under: str | Node | None = None,
    which: Callable[[Node], bool] | None = None,
    batch: int = BATCH,
    prompt_tokens: int = 6_000,
) -> Estimate:
    """Return what `describe_tree` would take with a describer of many; no model is asked.

    Args: as of `adescribe_tree`.
        prompt_tokens: what the describer's prompts take at most.
    """
    work = _Work(tree, None, which or _wanted, None)
    batches = work.batches(under, batch)
    requests = nodes = tokens = 0
    written = set[str]()
    for ids in batches:
        due = work.due(ids)
        if due:
            requests += 1
            nodes += len(due)
            written.update(node.id for node, _, _ in due)
            share = (prompt_tokens - RULES_TOKENS) // len(due)
            tokens += RULES_TOKENS + sum(
                min(share, work.tokens(node, request.content, written)) for node, request, _ in due
            )
    report = work.report
    return Estimate(nodes, report.unchanged, report.kept, requests, tokens, nodes * WRITTEN_TOKENS)


def describe_tree(tree: Tree, describer: AnyDescriber, **options: object) -> Described:
    """Do what `adescribe_tree` does, and wait for it; works inside a running event loop too."""
    return run_apart(lambda: adescribe_tree(tree, describer, **options))  # type: ignore[arg-type]


async def adescribe_tree(
    tree: Tree,
    describer: AnyDescriber,
    *,
    under: str | Node | None = None,
    which: Callable[[Node], bool] | None = None,
    batch: int = BATCH,
    concurrency: int = 4,
    max_calls: int | None = None,
    on_progress: Callable[[int, int], object] | None = None,
) -> Described:
    """Have the nodes of a tree described, children before their parents, and keep it in the tree's memory.

    What a description was made from is kept with it, so that a second run asks only for what changed, and a run that
    was cut off goes on where it stopped. Ids and titles stay; a node without a title gets one.

    Args:
        describer: one that describes many is asked for `batch` nodes in one call, any other for each.
        under: the node below which to describe, itself included; None for the whole tree.
        which: the nodes to describe; None for built nodes, and for others that have no description.
        batch: nodes in one call, at most.
        concurrency: calls in progress at once.
        max_calls: stop after so many calls; what is left comes the next time.
        on_progress: called with how many nodes are settled, of how many.

    Raises:
        UnknownNode: there is no such node.
        UserError: the model cannot be used as it is set up; what was described is kept.
    """
    work = _Work(tree, as_describer(describer), which or _wanted, max_calls)
    batches = work.batches(under, batch)
    total = sum(map(len, batches))
    place = {node: number for number, ids in enumerate(batches) for node in ids}
    done = [asyncio.Event() for _ in batches]
    slots = asyncio.Semaphore(max(1, concurrency))
    settled = 0

    async def settle(number: int) -> None:
        nonlocal settled
        for before in work.needed(batches[number], place) - {number}:
            await done[before].wait()
        async with slots:
            await work.describe(batches[number])
        done[number].set()
        settled += len(batches[number])
        if on_progress is not None:
            on_progress(settled, total)

    try:
        with metered() as used:
            async with asyncio.TaskGroup() as group:
                for number in range(len(batches)):
                    group.create_task(settle(number))
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    work.report.tokens_in, work.report.tokens_out = (
        int(used.get("tokens_in", 0)),
        int(used.get("tokens_out", 0)),
    )
    work.report.cost_usd = used.get("cost_usd")
    return work.report


class _Work:
    """What is done for the nodes of one batch."""

    def __init__(
        self, tree: Tree, describer: Describer | None, which: Callable[[Node], bool], max_calls: int | None
    ) -> None:
        self.tree = tree
        self.report = Described()
        self._describer = describer
        self._which = which
        self._max_calls = max_calls
        self._failed, self._why = 0, ""
        self.basis: dict[str, str] = {}
        """Node id -> hash of what it is described from: its own text and all that lies below it.

        Descriptions that are written here are no part of it, or a parent would be described anew after its children.
        """

    def batches(self, under: str | Node | None, size: int) -> list[list[str]]:
        """Return the nodes from one on, children before their parents, as many as go into one call."""
        if size < 1:
            raise UserError(f"batch={size}: use 1 or more")
        top = self.tree.get(under if under is not None else self.tree.root)
        nodes = self.look_through([node.id for node in _children_first(self.tree, top)])
        return [nodes[at : at + size] for at in range(0, len(nodes), size)]

    def look_through(self, ids: Sequence[str]) -> list[str]:
        """Note what each node is described from, children before their parents; return those that are there."""
        below: dict[str, list[str]] = {}
        for node, parent, text in self.tree.texts(ids):
            own = "" if self._which(node) else node.description
            basis = key_of(node.kind, own, text, below.pop(node.id, []))
            self.basis[node.id] = basis
            if parent is not None:
                below.setdefault(parent, []).append(basis)
        return [node for node in ids if node in self.basis]

    def needed(self, ids: Sequence[str], place: dict[str, int]) -> set[int]:
        """Return the numbers of the batches that hold children of these nodes."""
        return {
            place[child.id]
            for node in ids
            if node in self.tree
            for child in self.tree.children(node)
            if child.id in place
        }

    def due(self, ids: Sequence[str]) -> list[tuple[Node, DescribeRequest, str]]:
        """Return those of these nodes whose text or children changed since they were described, with their basis."""
        due: list[tuple[Node, DescribeRequest, str]] = []
        for node_id in ids:
            node = self.tree.find(node_id)
            if node is None:
                continue
            if not self._which(node):
                self.report.kept += 1
                continue
            basis = self.basis[node_id]
            if node.description and node.provenance.get(MARK) == basis:
                self.report.unchanged += 1
            else:
                due.append((node, DescribeRequest(self._text(node), node), basis))
        return due

    def tokens(self, node: Node, text: str, written: Collection[str]) -> int:
        """Return about how many tokens a node takes in a prompt, once some others are described."""
        children = self.tree.children(node.id)[:_MAX_CHILDREN]
        more = sum(
            max(0, WRITTEN_TOKENS - len(each.description) // TOKEN_CHARS)
            for each in children
            if each.id in written
        )
        return NAMED_TOKENS + len(text) // TOKEN_CHARS + more

    async def describe(self, ids: Sequence[str]) -> None:
        """Describe those of these nodes that are due."""
        due = self.due(ids)
        if not due:
            return
        try:
            if self._failed >= MOST_FAILED and not self._spent:
                raise BadModelAnswer(f"the last {self._failed} requests brought nothing: {self._why}")
            descriptions = await self._ask([request for _, request, _ in due])
        except (BadModelAnswer, TransientError, TimeoutError) as exc:
            if self._failed < MOST_FAILED and not self._spent:
                self._failed, self._why = self._failed + 1, str(exc)
            self.report.failed.update((node.id, str(exc)) for node, _, _ in due)
            return
        self._failed = 0
        for (node, _, basis), description in zip(due, descriptions, strict=True):
            if description is None:
                self.report.failed[node.id] = "the model left it out"
            else:
                self._keep(node, description, basis)

    async def _ask(self, requests: list[DescribeRequest]) -> Sequence[Description | None]:
        describer = self._describer
        assert describer is not None
        if describer.traits.describes_many:
            return await self._tried(lambda: describer.describe_many(requests))
        descriptions: list[Description | None] = []
        for request in requests:
            descriptions.append(await self._tried(lambda one=request: describer.describe(one)))  # type: ignore[misc]
        return descriptions

    @property
    def _spent(self) -> bool:
        return self._max_calls is not None and self.report.calls >= self._max_calls

    async def _tried(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call, again when it fails in a way that may pass."""
        attempt = 0
        while True:
            attempt += 1
            if self._spent:
                raise TransientError(f"max_calls={self._max_calls} was reached: run it again to go on")
            self.report.calls += 1
            report_usage(model_calls=1)
            try:
                return await call()
            except TransientError as exc:
                if attempt >= ATTEMPTS:
                    raise
                pause = BACKOFF_S * 2 ** (attempt - 1) if exc.retry_after_s is None else exc.retry_after_s
                await asyncio.sleep(min(pause, MAX_PAUSE_S))
            except BadModelAnswer:
                if attempt >= ATTEMPTS:
                    raise

    def _text(self, node: Node) -> str:
        """Return what a node is described from: its own text, or the titles and descriptions of its children."""
        parts: list[str] = []
        if node.has_content:
            try:
                parts.append(self.tree.content(node.id)[:_HEAD_CHARS])
            except (MetatreeError, OSError):
                parts.append(node.description)
        children = self.tree.children(node.id)
        for child in children[:_MAX_CHILDREN]:
            parts.append(f"- {child.title}: {child.description}" if child.description else f"- {child.title}")
        if len(children) > _MAX_CHILDREN:
            parts.append(f"- and {len(children) - _MAX_CHILDREN} more")
        return "\n".join(parts)

    def _keep(self, node: Node, description: Description, basis: str) -> None:
        current = self.tree.find(node.id)
        if current is None or current.digest != node.digest:
            self.report.failed[node.id] = "it changed meanwhile"
            return
        title = node.title or description.title
        self.tree.update(
            replace(
                current,
                title=title,
                description=description.description,
                provenance={**current.provenance, MARK: basis},
            )
        )
        self.report.written += 1


def _wanted(node: Node) -> bool:
    """Say whether a node is described when nothing else is asked: never one with words that somebody gave it."""
    return node.path is not None or not node.description or MARK in node.provenance


def _children_first(tree: Tree, top: Node) -> Iterator[Node]:
    """Yield a node and all below it, each after its children."""
    pending = [(top, iter(tree.children(top.id)))]
    while pending:
        node, children = pending[-1]
        child = next(children, None)
        if child is not None:
            pending.append((child, iter(tree.children(child.id))))
        else:
            pending.pop()
            yield node
