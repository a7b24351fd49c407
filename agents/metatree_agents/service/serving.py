"""One process of the service: the server, its first users, and an engine inside."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, nullcontext
from hashlib import sha256
from typing import Any, cast

import httpx2
import uvicorn
from starlette.types import ASGIApp
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from metatree import Limits, Tree
from metatree.errors import UserError
from metatree_agents.listening import listen
from metatree_agents.service._app import create_app
from metatree_agents.service.accounts.keys import Keys
from metatree_agents.service.accounts.other_logins import PeerMark
from metatree_agents.service.accounts.tree_rights import TreeRights
from metatree_agents.service.accounts.users import INSIDE, Role, Users
from metatree_agents.service.database.database import ServiceDatabase
from metatree_agents.service.database.servers import announced
from metatree_agents.service.engine.client import ServiceClient
from metatree_agents.service.engine.engine import Engine
from metatree_agents.service.goal_agents import GoalAgents
from metatree_agents.service.http.admin_routes import metrics_app
from metatree_agents.service.http.slow_clients import TimeoutProtocol
from metatree_agents.service.replication.publisher import Publication, Published
from metatree_agents.service.settings import Service, ServiceSettings
from metatree_agents.service.web.sessions import Sessions, login_link

GRACE_S = 5
SWITCH_S = 0.0005
"""How long a thread computes while another one wants to. What reads a tree gives way at each statement of SQLite, and
with Python's 5 ms then waits so long for its turn, a hundred times for a page of the tree."""


async def serve_all(
    database: ServiceDatabase,
    settings: ServiceSettings,
    *,
    memory: Tree | None,
    shown: Tree | None = None,
    parts: Mapping[str, Any] | Callable[[Tree], Mapping[str, Any]],
    limits: Limits | None,
    concurrency: int,
    host: str,
    port: int,
    stop: asyncio.Event,
    say: Callable[[str], None],
    options: str = "",
    sharing: Publication | None = None,
    show: Callable[[str], None] | None = None,
    proxies: Sequence[str] = (),
    metrics_at: tuple[str, int] | None = None,
    agents: GoalAgents | None = None,
    trees: Mapping[str, Tree] | None = None,
    searches: bool = True,
) -> None:
    """Serve until `stop` is set.

    Args:
        memory: what the engine inside searches; None for no engine inside.
        shown: what the web page shows when there is no engine inside.
        say: told what a person should know: the address, and the secrets of the first users, once.
        options: options of the command line that name this database.
        sharing: what is shared with other machines; None for nothing.
        show: told the secrets of the first users instead of `say`, where that writes a log.
        proxies: addresses of proxies whose word is taken for who their callers are; this machine's by default.
        metrics_at: where figures are served besides, to whoever can reach it.
        agents: the durable agents that administrators see; None for none.
        trees: trees by their names, in place of `memory` and `shown`; a new one is for administrators at first.
        searches: whether an engine inside searches `trees`.

    Raises:
        UserError: the address cannot be listened on, or the tree cannot be published.
    """
    listening, listening_too = None, None
    try:
        await database.start()
        if trees:
            await TreeRights(database).require_no_unnamed(next(iter(trees)), topics=False)
        listening = listen(host, port)
        if metrics_at is not None:
            listening_too = listen(*metrics_at, option="--metrics-address")
    except UserError:
        if listening is not None:
            listening.close()
        await database.close()
        raise
    show = show or say
    users = Users(database, settings.proofs)
    roles: dict[str, Role] = {"admin": "admin", "Frontend_1": "frontend"}
    if made := await users.first(roles):
        show(
            f"first start: these secrets are shown only now; `metatree service users add NAME{options}` makes new ones"
        )
        for name, secret in made.items():
            show(f"  {name} ({roles[name]}): {secret}")
    known = [name for name, role, _ in await users.list() if role == "admin"]
    if not known:
        say(
            f"nobody is an administrator here: `metatree service users add admin --role admin{options}` makes one"
        )
    app = create_app(
        database, settings, memory=shown if memory is None else memory, agents=agents, trees=trees
    )
    service: Service = app.state.service
    async with AsyncExitStack() as ending:
        serving = await _started(_server(app, proxies), listening, ending)
        if listening_too is not None:
            await _started(_server(metrics_app(service), ()), listening_too, ending)
            say("metrics at http://{}:{}/metrics".format(*listening_too.getsockname()[:2]))
        ending.callback(service.waiting.end)
        await service.queue.free_dead()  # what an engine had in a process that was killed
        working: list[asyncio.Future[None]] = []
        for name in trees or ():
            await service.tree_rights.add(name)
        await _say_trees(service, trees or {}, say, options)
        if trees:
            if before := await service.tree_rights.unnamed_topics():
                say(
                    f"{before:,} of the topics are of before trees had names: they are read as ever, and end there"
                )
            await _say_rights(service, say, options)
        if memory is not None or sharing is not None or (trees and searches):
            secret = await users.own(INSIDE, "engine")
            # By a name for each place: of databases of older versions a tree remembers by it what it has learned.
            inner = f"http://inside-{sha256(database.place.encode()).hexdigest()[:12]}"
            key = await Keys(database).own(INSIDE, secret)
            client = ServiceClient(inner, INSIDE, key, transport=httpx2.ASGITransport(app))
            await ending.enter_async_context(client)
            searched: Tree | Published | Mapping[str, Tree] | None = trees or memory
            if sharing is not None:
                published = Published(client, service.trees, sharing, say=say)
                ending.push_async_callback(published.close)
                working.append(publishing := asyncio.ensure_future(published.run()))
                ending.push_async_callback(_finished, publishing)
                ending.callback(publishing.cancel)
                app.state.web.memories[""] = (
                    published.using
                )  # whichever tree it has: that of this machine or a copy
                searched = published if sharing.engine else None
            if searched is not None:
                inside = Engine(client, searched, parts=parts, limits=limits, concurrency=concurrency)
                working.append(engine := asyncio.ensure_future(inside.run()))
                ending.push_async_callback(_finished, engine)
                ending.callback(inside.stop)
        stopping: asyncio.Future[Any] = asyncio.ensure_future(stop.wait())
        ending.callback(stopping.cancel)
        address = f"http://{_browser_host(host)}:{listening.getsockname()[1]}"
        async with announced(database, address):
            say(f"listening on {address}")
            if made:
                show("log in as admin with this link, once, within 15 minutes:")
                show(f"  {login_link(address, await Sessions(database).make_code('admin'))}")
                show(f"  (`metatree service users login admin{options}` makes another)")
            elif known:
                say(
                    f"`metatree service users login {known[0]}{options}` prints a link that logs {known[0]} in, once"
                )
            await asyncio.wait({serving, stopping, *working}, return_when=asyncio.FIRST_COMPLETED)
        for task in working:
            if task.done():
                task.result()


async def _say_trees(
    service: Service, trees: Mapping[str, Tree], say: Callable[[str], None], options: str
) -> None:
    """Say of trees of the service that this server does not have what becomes of questions."""
    others = [tree.name for tree in await service.tree_rights.all() if tree.name not in trees]
    if not others:
        return
    removed = f"`metatree service trees remove NAME{options}` takes one out"
    if trees:
        say(
            f"this service has other trees, too, which are not served here ({', '.join(others)}): a question to one"
            f" waits for an engine that has all trees that it asks; {removed}"
        )
    else:
        say(
            f"the trees of this service have names ({', '.join(others)}), so nobody can ask the one that is served here"
            f" without a name: start `metatree serve {others[0]}=FOLDER …`, or {removed}"
        )


async def _say_rights(service: Service, say: Callable[[str], None], options: str) -> None:
    """Say of trees that nobody but administrators may ask how others are let in."""
    for name, who in (await service.tree_rights.rights()).items():
        if not who:
            # No colon behind the name: one such as `secret` would have what follows hidden in the log.
            say(
                f"only administrators may ask {name}, until `metatree service trees allow {name} everybody{options}`,"
                " or a user's name or group:NAME in place of everybody, lets others in"
            )


async def _started(
    server: uvicorn.Server, listening: socket.socket, ending: AsyncExitStack
) -> asyncio.Future[None]:
    """Return a server at work, when it is, which ends with a stack."""
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))

    async def end() -> None:
        server.should_exit = True
        await serving

    ending.push_async_callback(end)
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    return serving


async def _finished(task: asyncio.Future[None]) -> None:
    await asyncio.gather(task, return_exceptions=True)


def _server(app: ASGIApp, proxies: Sequence[str]) -> uvicorn.Server:
    server = server_of(app, proxies=proxies)
    # The command line stops the server, with all else; two handlers of one signal would get in each other's way.
    server.capture_signals = nullcontext  # type: ignore[assignment, method-assign]
    return server


def server_of(app: ASGIApp, *, proxies: Sequence[str] = ()) -> uvicorn.Server:
    """Return the server that runs an application of the service.

    Args:
        proxies: addresses of proxies whose word is taken for who their callers are; this machine's by default.
    """
    sys.setswitchinterval(SWITCH_S)
    trusted = [*proxies] or os.environ.get("FORWARDED_ALLOW_IPS", "127.0.0.1")
    # Starlette's types and uvicorn's say the same in words that differ.
    behind = cast(ASGIApp, ProxyHeadersMiddleware(cast(Any, app), trusted))
    return uvicorn.Server(
        uvicorn.Config(
            PeerMark(behind),
            http=TimeoutProtocol,
            log_config=None,
            log_level="warning",
            access_log=False,
            lifespan="auto",
            timeout_graceful_shutdown=GRACE_S,
            proxy_headers=False,  # done here, behind what notes where a request came from
        )
    )


def _browser_host(host: str) -> str:
    """Return how a browser on this machine calls the address that a server listens on."""
    if host in ("", "0.0.0.0", "::"):
        return "127.0.0.1" if host != "::" else "[::1]"
    return f"[{host}]" if ":" in host else host
