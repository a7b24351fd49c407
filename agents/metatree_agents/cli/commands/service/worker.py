"""`metatree service worker`: an engine of a service, on this machine or any other."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from metatree.errors import UserError
from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FOUND
from metatree_agents.cli.commands._signals import on_stop, run_until_stopped, unless_stopped
from metatree_agents.cli.commands._trees import TreeOptions
from metatree_agents.cli.commands.service._serve_options import (
    Concurrency,
    Human,
    NamedFolders,
    TrustSources,
    opened_trees,
)

if TYPE_CHECKING:
    from metatree import Tree
    from metatree_agents.service.engine.client import ServiceClient

SECRET = "METATREE_SECRET"


def worker(
    trees: NamedFolders = None,
    *,
    server: Annotated[str, options.option("--server", "URL", "The service to work for.")],
    user: Annotated[str, options.option("--user", "NAME", "The engine's name there.")],
    concurrency: Concurrency = 1,
    database: Annotated[
        str | None,
        options.option(
            "--database",
            "URL",
            "The service's postgresql:// address: runs and tool calls are then shared with all its engines, and"
            " a run that died with its machine goes on on another.",
        ),
    ] = None,
    copy: Annotated[
        Path | None,
        options.option(
            "--copy",
            "FOLDER",
            "Where the copy of the service's tree is kept; by default in the user's cache folder.",
            parser=options.path,
        ),
    ] = None,
    trust_sources: TrustSources = False,
    human: Human = False,
    allow: options.Allow = None,
    web: options.Web = None,
    router: options.Router = None,
    budget: options.Budget,
    source: Annotated[
        list[str] | None,
        options.option(
            "--source",
            "SOURCE",
            "Folder, file or address to search, several for several; a copy of the service's tree by default.",
        ),
    ] = None,
    tree: Annotated[
        Path | None,
        options.option(
            "--tree",
            "PATH",
            "A tree of this machine to search in place of a copy of the service's.",
            parser=options.path,
        ),
    ] = None,
) -> int:
    """Run an engine: claim topics of a service, search the tree for answers, and post them.

    With NAME=FOLDER it has trees that the service knows by these names. Without them, --source and --tree it searches
    a copy of the tree that the service publishes, kept in sync with it.

    The engine's secret, or an API key of it, is read from METATREE_SECRET, so that no list of processes shows it.
    Ctrl-C, or a TERM signal, stops it gracefully: what it has not answered goes back to the queue.

    \b
    Example: METATREE_SECRET=… metatree service worker --server http://127.0.0.1:8080 --user Inference_1
    """
    from metatree.storage.postgres_address import is_postgres
    from metatree_agents.cli.commands._search import parts_for, suite_parts, web_parts
    from metatree_agents.service.engine.client import ServiceClient
    from metatree_agents.service.engine.engine import Engine
    from metatree_agents.service.replication.copies import TreeCopy, copies_folder
    from metatree_agents.service.replication.sharing import shared_at

    secret = os.environ.get(SECRET, "")
    if not secret:
        raise UserError(f"the secret of {user!r} is missing: put it into {SECRET}")
    parts = {**suite_parts(router), **web_parts(web)}
    own = source is not None or tree is not None or bool(trees)
    if database is not None and (own or not is_postgres(database)):
        raise UserError(
            "--database is the service's own postgresql:// address, for engines that search a copy of its tree:"
            f" {'leave out --source and --tree' if own else 'a file is of one machine'}"
        )

    if trust_sources and own:
        raise UserError("--trust-sources is for a copy of the service's tree: leave out --source and --tree")

    def parts_of(searched: Tree) -> dict[str, Any]:
        return parts_for(searched, parts, allow=allow, human=human, terminal=False)

    with ExitStack() as opened:
        named = opened_trees(opened, trees, TreeOptions(source, tree))
        memory = opened.enter_context(TreeOptions(source, tree).ready()) if own and not named else None
        for each in named.values():
            parts_of(each)
        if memory is not None:
            parts_of(memory)  # what is wrong with the options is said now
        shared = opened.enter_context(shared_at(database)) if database is not None else None
        client = ServiceClient(server, user, secret)
        searched: Tree | TreeCopy | Mapping[str, Tree] = named or (
            TreeCopy(
                client,
                copy or copies_folder(),
                shared=shared,
                say=output.note,
                trust_sources=trust_sources,
            )
            if memory is None
            else memory
        )
        engine = Engine(
            client,
            searched,
            parts=parts_of,
            limits=budget.limits(),
            concurrency=concurrency,
            on_answer=lambda query, reply: output.note(
                output.visible(f"{query.topic} {query.seq}: {reply.ended}: {query.text}")
            ),
        )

        async def work(stop: asyncio.Event) -> None:
            async with client, AsyncExitStack() as inside:
                if isinstance(searched, TreeCopy):
                    fetched = await unless_stopped(stop, inside.enter_async_context(searched))
                    if fetched is None:
                        return
                if text := unlike(list(named), await _names_of(client)):
                    output.note(output.visible(f"warning: {text}"))
                output.note(f"working for {server} as {user}")
                stopping = asyncio.ensure_future(on_stop(stop, engine.stop))
                try:
                    await engine.run()
                finally:
                    stopping.cancel()

        run_until_stopped(work)
    return FOUND


async def _names_of(client: ServiceClient) -> list[str]:
    """Return the names of the trees of a service; none for one that does not say."""
    from metatree_agents.service.engine.client import ServiceAway, ServiceRefused

    with suppress(ServiceAway, ServiceRefused):
        return [str(tree["Name"]) for tree in await client.call("GET", "trees")]
    return []


def unlike(own: Sequence[str], known: Sequence[str]) -> str:
    """Return what to say of an engine whose trees are not those of its service; empty when they are."""
    others = [name for name in known if name not in own]
    if not others:
        return ""
    if own:
        return f"the service has {', '.join(others)}, too: a question to one of them waits for an engine that has it"
    return (
        f"the trees of the service have names ({', '.join(others)}), and this engine's has none, so it is given no new"
        f" question: start `metatree service worker {others[0]}=FOLDER …`"
    )
