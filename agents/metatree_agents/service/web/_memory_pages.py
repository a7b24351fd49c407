"""The memory in the browser: the tree, page by page, one node with its text, and a search box."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, Final, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import Response

from metatree.errors import UnknownNode, UnknownRun, UserError
from metatree.trees.layer import ROOT
from metatree_agents.service.openai.answer_segments import quotes_of
from metatree_agents.service.web import _browse as browse
from metatree_agents.service.web._guard import Entered, Here, Id, Number
from metatree_agents.service.web._replies import PageError, page
from metatree_agents.service.web._state import Web
from metatree_agents.service.web._thread_pages import owner_of

router = APIRouter()
T = TypeVar("T")
WAIT_S: Final = 10.0
"""How long a page waits for a copy of the memory of another machine."""
NO_MEMORY = "This server shows no memory: it was started without a tree. Start it with --source or --tree."


@router.get("/tree")
async def tree_page(
    request: Request, session: Entered, node: Id = ROOT, start: Number | None = None
) -> Response:
    """Show the tree, open down to one node."""
    top = await reading(request, browse.opened, node, start)
    above = await reading(request, browse.above, top)
    return page(request, "tree.html", session=session, top=top, at=node, above=above)


@router.get("/tree/children")
async def tree_children(request: Request, session: Entered, node: Id = ROOT, start: Number = 0) -> Response:
    """Give one page of the children of a node, for a tree that is open already."""
    children = await reading(request, browse.children_of, node, start)
    return page(request, "children.html", session=session, page=children)


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
) -> Response:
    """Show one node, with the lines marked that an answer quotes when it was come to from there."""
    quotes: list[str] = []
    if topic:
        await owner_of(service, session, topic)
        query = await service.queue.query(topic, seq)
        sources = [] if query is None else [*(query.sources or ()), *query.ending.closest]
        quotes = quotes_of([source for source in sources if source.get("Node") == node])
    view = await reading(
        request, lambda tree: browse.shown(tree, node, quotes=quotes, first=line or None, start=start)
    )
    return page(request, "node.html", session=session, shown=view, topic=topic, seq=seq, quoted=bool(quotes))


@router.get("/find")
async def find_page(request: Request, session: Entered, q: str = "") -> Response:
    """Show the nodes that fit some words best."""
    text = q.strip()[:1_000]
    matches: list[Any] = []
    exact = None
    if text:
        matches = await reading(request, browse.find, text)
        exact = await reading(request, browse.named, text)
    return page(request, "find.html", session=session, text=text, found=matches, exact=exact)


async def reading(request: Request, what: Callable[..., T], *given: Any) -> T:
    """Read the tree that this server shows, in a thread beside the requests of others.

    Args:
        what: called with the tree and what is given besides.

    Raises:
        PageError: there is no tree, the node is not there, or it cannot be shown now.
        UnknownRun: as `what` raises it.
    """
    memory = Web.of(request).memory
    if memory is None:
        raise PageError(404, NO_MEMORY)
    try:
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(WAIT_S):
                tree = await stack.enter_async_context(memory())
            return await asyncio.to_thread(what, tree, *given)
    except TimeoutError:
        raise PageError(503, "The memory is not here yet: come again in a moment.") from None
    except UnknownNode as exc:
        message = str(exc)
        raise PageError(
            404, message[:1].upper() + message[1:] + ("" if message.endswith("?") else ".")
        ) from None
    except UnknownRun:
        raise
    except UserError as exc:
        raise PageError(422, str(exc)) from None
