"""The memory in the browser: the tree, page by page, one node with its text, and a search box."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final, NamedTuple, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import Response
from metatree_memory_tools.text.document_place import document_place, page_word

from metatree import Tree
from metatree.errors import UnknownNode, UnknownRun, UserError
from metatree.trees.layer import ROOT
from metatree_agents.service.accounts.tree_rights import NamedTree
from metatree_agents.service.engine.answering import corrections_of_text
from metatree_agents.service.http.tree_access import named_trees
from metatree_agents.service.openai.answer_segments import quotes_of
from metatree_agents.service.settings import Service
from metatree_agents.service.web import _browse as browse
from metatree_agents.service.web._guard import Entered, Here, Id, Number
from metatree_agents.service.web._replies import PageError, link, page
from metatree_agents.service.web._state import Web
from metatree_agents.service.web._thread_pages import owner_of
from metatree_agents.service.web.sessions import Session

router = APIRouter()
T = TypeVar("T")
WAIT_S: Final = 10.0
"""How long a page waits for a copy of the memory of another machine."""
NO_MEMORY = "This server shows no memory: it was started without a tree. Start it with --source or --tree."


@router.get("/tree")
async def tree_page(
    request: Request, session: Entered, node: Id = ROOT, start: Number | None = None, tree: str = ""
) -> Response:
    """Show the tree, open down to one node."""
    named = await tree_named(request, session, tree)
    top, above = await reading(request, named, _opened, node, start)
    trees = await trees_here(request, session)
    return page(request, "tree.html", session=session, top=top, at=node, above=above, tree=named, trees=trees)


def _opened(tree: Tree, node: str, start: int | None) -> tuple[browse.ChildRow, tuple[str, int] | None]:
    top = browse.opened(tree, node, start)
    return top, browse.above(tree, top)


@router.get("/tree/children")
async def tree_children(
    request: Request, session: Entered, node: Id = ROOT, start: Number = 0, tree: str = ""
) -> Response:
    """Give one page of the children of a node, for a tree that is open already."""
    named = await tree_named(request, session, tree)
    children = await reading(request, named, browse.children_of, node, start)
    return page(request, "children.html", session=session, page=children, tree=named)


@router.get("/node")
async def node_page(
    request: Request,
    session: Entered,
    service: Here,
    node: Id = ROOT,
    *,
    topic: str = "",
    seq: Number = 0,
    line: Number = 0,
    start: Number = 0,
    tree: str = "",
    masked: bool = False,
) -> Response:
    """Show one node, with the lines marked that an answer quotes when it was come to from there.

    Args:
        masked: say that its PDF is not opened: `/file` leads here then.
    """
    named = await tree_named(request, session, tree)
    quotes: list[str] = []
    pages: list[int] = []
    if topic:
        await owner_of(service, session, topic)
        query = await service.queue.query(topic, seq)
        sources = [] if query is None else [*(query.sources or ()), *query.ending.closest]
        here = (node, named)
        sources = [each for each in sources if (each.get("Node"), each.get("Tree") or "") == here]
        quotes = quotes_of(sources)
        pages = [each["Pages"][0] for each in sources if each.get("Pages")]
    try:
        view, corrections = await reading(request, named, _shown, node, quotes, line or None, start)
    except PageError as exc:
        exc.back = f"{link('/thread', topic=topic)}#q{seq}" if topic else ""
        raise
    pdf_page = browse.pdf_page_of(view.node)
    return page(
        request,
        "node.html",
        session=session,
        shown=view,
        topic=topic,
        seq=seq,
        quoted=bool(quotes),
        pdf_page=pdf_page and (pages or [pdf_page])[0],
        document=document_place(view.node),
        page_word=page_word(view.node.path or ""),
        masked=masked,
        corrections=corrections,
        tree=named,
    )


def _shown(
    tree: Tree, node: str, quotes: Sequence[str], first: int | None, start: int
) -> tuple[browse.NodeView, list[str]]:
    view = browse.shown(tree, node, quotes=quotes, first=first, start=start)
    lines = "\n".join(each.text for each in view.lines)
    return view, corrections_of_text(tree, view.node.id, lines) if lines else []


@router.get("/find")
async def find_page(request: Request, session: Entered, q: str = "", tree: str = "") -> Response:
    """Show the nodes that fit some words best."""
    text = q.strip()[:1_000]
    trees = await trees_here(request, session)
    named = await tree_named(request, session, tree) if text else tree
    wanted = [each.name for each in trees] if trees and not tree else [named]
    found: list[FoundRow] = []
    exact: list[tuple[str, str]] = []
    for name in wanted if text else ():
        rows, same = await reading(
            request, name, lambda opened: (browse.find(opened, text), browse.named(opened, text))
        )
        found += [FoundRow(*row, name) for row in rows]
        exact += [(same, name)] if same else []
    found.sort(key=lambda row: -row.score)  # a score is a share of what was asked for, in any tree
    least = browse.LEAST_SHARE * found[0].score if found else 0.0
    return page(
        request,
        "find.html",
        session=session,
        text=text,
        found=[row for row in found if row.score >= least][: browse.FOUND],
        exact=exact,
        tree=tree,
        trees=trees,
        titles={each.name: each.title for each in trees} if len(wanted) > 1 else {},
    )


class FoundRow(NamedTuple):
    """A node that fits some words, as a page shows it."""

    child: browse.ChildRow
    above: list[str]
    score: float
    line: str
    tree: str


async def trees_here(request: Request, session: Session) -> list[NamedTree]:
    """Return the trees of this server that have names and that a person may look into, by their names."""
    here = Web.of(request).memories
    return [tree for tree in await named_trees(Service.of(request), session.caller) if tree.name in here]


async def tree_named(request: Request, session: Session, name: str) -> str:
    """Return the name of the tree that an address means: the first that a person may look into where it names none.

    Raises:
        PageError: there is none, or it is not theirs, which look alike.
    """
    here = Web.of(request).memories
    if "" in here or not here:
        if name:
            raise PageError(404, "There is no such tree here.")
        return ""
    names = [tree.name for tree in await trees_here(request, session)]
    if not names:
        raise PageError(403, "There is no tree here that you may look into: ask an administrator for it.")
    if name and name not in names:
        raise PageError(404, "There is no such tree here, or it is not yours.")
    return name or names[0]


async def reading(request: Request, named: str, what: Callable[..., T], *given: Any) -> T:
    """Read a tree that this server shows, in a thread that the requests of others wait for only while it is short.

    Args:
        named: its name, as `tree_named` gives it to who may look into it.
        what: called with the tree and what is given besides.

    Raises:
        PageError: there is no tree, the node is not there, or it cannot be shown now.
        UnknownRun: as `what` raises it.
    """
    memory = Web.of(request).memories.get(named)
    if memory is None:
        raise PageError(404, NO_MEMORY)
    try:
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(WAIT_S):
                tree = await stack.enter_async_context(memory())
            return await Web.of(request).readers.read(_read, what, tree, *given)
    except TimeoutError:
        raise PageError(503, "The memory is not here yet: come again in a moment.") from None
    except UnknownNode as exc:
        message = str(exc).partition("; `metatree find`")[0]
        message = message[:1].upper() + message[1:] + ("" if message.endswith("?") else ".")
        raise PageError(404, f"{message} It may have gone since: find it by its words.") from None
    except UnknownRun:
        raise
    except UserError as exc:
        raise PageError(422, str(exc)) from None


def _read(what: Callable[..., T], tree: Tree, *given: Any) -> T:
    with tree.synced():
        return what(tree, *given)
