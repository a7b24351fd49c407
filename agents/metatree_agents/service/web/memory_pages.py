"""The memory in the browser: the tree, page by page, one node with its text, and a search box."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import Response

from metatree import Tree
from metatree.errors import UnknownNode, UnknownRun, UserError
from metatree_agents.service.state import Service
from metatree_agents.service.web import browse
from metatree_agents.service.web.guard import entered
from metatree_agents.service.web.prose import quotes_of
from metatree_agents.service.web.replies import PageError, page
from metatree_agents.service.web.sessions import Session
from metatree_agents.service.web.state import Web
from metatree_agents.service.web.thread_pages import number_of, owner_of

router = APIRouter()
T = TypeVar("T")
NO_MEMORY = "This server shows no memory: it was started without a tree. Start it with --source or --tree."


@router.get("/tree")
async def tree_page(request: Request) -> Response:
    """Show the tree, open down to one node."""
    session, tree = await entered(request), memory_of(request)
    node, said = request.query_params.get("id", tree.root), request.query_params.get("start")
    start = None if said is None else number_of(said)
    top = await reading(browse.opened, tree, node, start)
    above = await reading(browse.above, tree, top)
    return page(request, "tree.html", session=session, top=top, at=node, above=above)


@router.get("/tree/children")
async def tree_children(request: Request) -> Response:
    """Give one page of the children of a node, for a tree that is open already."""
    session, tree = await entered(request), memory_of(request)
    node, start = request.query_params.get("id", tree.root), number_of(request.query_params.get("start", "0"))
    found = await reading(browse.children_of, tree, node, start)
    return page(request, "children.html", session=session, page=found)


@router.get("/node")
async def node_page(request: Request) -> Response:
    """Show one node, with the lines marked that an answer quotes when it was come to from there."""
    session, tree = await entered(request), memory_of(request)
    wanted = request.query_params
    node = wanted.get("id", tree.root)
    topic, seq = wanted.get("topic", ""), number_of(wanted.get("seq", ""))
    quotes = await _quotes(request, session, node, topic, seq) if topic else []
    first = number_of(wanted.get("line", "")) or None
    start = number_of(wanted.get("start", "0"))
    shown = await reading(lambda: browse.shown(tree, node, quotes=quotes, first=first, start=start))
    return page(request, "node.html", session=session, shown=shown, topic=topic, seq=seq, quoted=bool(quotes))


@router.get("/find")
async def find_page(request: Request) -> Response:
    """Show the nodes that fit some words best."""
    session, tree = await entered(request), memory_of(request)
    text = request.query_params.get("q", "").strip()[:1_000]
    found: list[Any] = []
    exact = None
    if text:
        found = await reading(browse.find, tree, text)
        exact = await reading(browse.named, tree, text)
    return page(request, "find.html", session=session, text=text, found=found, exact=exact)


def memory_of(request: Request) -> Tree:
    """Return the tree that this server shows, or answer that there is none."""
    tree = Web.of(request).memory
    if tree is None:
        raise PageError(404, NO_MEMORY)
    return tree


async def reading(what: Callable[..., T], *given: Any) -> T:
    """Read the tree in a thread, beside the requests of others; a node that is not there is a page that says so."""
    try:
        return await asyncio.to_thread(what, *given)
    except UnknownNode as exc:
        raise PageError(404, f"{str(exc)[:1].upper()}{str(exc)[1:]}.") from None
    except UnknownRun:
        raise
    except UserError as exc:
        raise PageError(422, str(exc)) from None


async def _quotes(request: Request, session: Session, node: str, topic: str, seq: int) -> list[str]:
    service = Service.of(request)
    await owner_of(service, session, topic)
    query = await service.queue.query(topic, seq)
    sources = [] if query is None else query.sources or []
    return quotes_of([source for source in sources if source.get("Node") == node])
