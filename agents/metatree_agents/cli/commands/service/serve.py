"""`metatree serve`: the query service, with an engine inside."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metatree.errors import MissingExtra, UserError
from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FOUND
from metatree_agents.cli._inputs import host_and_port
from metatree_agents.cli.commands._signals import run_until_stopped
from metatree_agents.cli.commands._trees import TreeOptions
from metatree_agents.cli.commands.service._database import DatabasePath, ServiceOptions
from metatree_agents.cli.commands.service._serve_options import (
    Concurrency,
    Human,
    Limit,
    Log,
    LoginAdds,
    LoginHeader,
    LoginProxy,
    MetricsAddress,
    ModelAlias,
    NamedFolders,
    OidcClaim,
    OidcClient,
    OidcIssuer,
    Proxy,
    TrustSources,
    form_of,
    log_line,
    logins_of,
    opened_trees,
    proxies_of,
    rates_of,
)
from metatree_agents.listening import require_free

if TYPE_CHECKING:
    from metatree import Tree
    from metatree_agents.service.goal_agents import GoalAgents


def serve(
    trees: NamedFolders = None,
    host: Annotated[str, options.option("--host", None, "Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 for any free one.")] = 8080,
    database: DatabasePath = None,
    no_engine: Annotated[
        bool,
        typer.Option("--no-engine", help="Run no engine inside: others come with `metatree service worker`."),
    ] = False,
    concurrency: Concurrency = 2,
    shared: Annotated[
        bool,
        typer.Option(
            "--shared",
            help="Let users read the topics of others and ask in them; only an owner renames or deletes.",
        ),
    ] = False,
    lease: Annotated[
        float,
        typer.Option(
            "--lease",
            min=1,
            metavar="S",
            help="Seconds after which a topic is open again whose engine has gone; engines at work renew them.",
        ),
    ] = 60.0,
    attempts: Annotated[
        int, typer.Option("--attempts", min=1, metavar="N", help="A query fails after N engines had it.")
    ] = 5,
    claim_timeout: Annotated[
        float,
        typer.Option(
            "--claim-timeout", min=0, max=100, metavar="S", help="Seconds that an engine waits for a query."
        ),
    ] = 55.0,
    answer_timeout: Annotated[
        float,
        typer.Option(
            "--answer-timeout",
            min=0,
            max=60,
            metavar="S",
            help="Seconds that `check-query` waits for an answer.",
        ),
    ] = 55.0,
    no_sha1: Annotated[bool, typer.Option("--no-sha1", help="Accept proofs by SHA-256 alone.")] = False,
    newline_hash: Annotated[
        bool,
        typer.Option(
            "--newline-hash",
            help="Accept hashes of the text with an end of line too, as `echo | sha1sum` makes them.",
        ),
    ] = False,
    publish: Annotated[
        bool | None,
        typer.Option(
            "--publish/--no-publish",
            help="Publish the tree for engines on other machines; the default with a PostgreSQL database. With one and"
            " --no-publish, the engine inside searches a copy of what another server publishes.",
        ),
    ] = None,
    refresh: Annotated[
        float,
        typer.Option(
            "--refresh",
            min=0,
            metavar="S",
            help="Bring a published tree up to date every S seconds; 0 for never.",
        ),
    ] = 0.0,
    trust_sources: TrustSources = False,
    human: Human = False,
    allow: options.Allow = None,
    web: options.Web = None,
    limit: Limit = None,
    model_alias: ModelAlias = None,
    proxy: Proxy = None,
    metrics_address: MetricsAddress = None,
    agents: Annotated[
        str | None,
        options.option(
            "--agents",
            "FILE",
            "Show administrators the agents of `metatree goals` that are kept there, a file or postgresql://…; they"
            " answer, try again and cancel. Workers drive them.",
            parser=options.file_or_address,
        ),
    ] = None,
    login_header: LoginHeader = None,
    login_proxy: LoginProxy = None,
    oidc_issuer: OidcIssuer = None,
    oidc_client: OidcClient = None,
    oidc_claim: OidcClaim = "preferred_username",
    login_adds: LoginAdds = False,
    log: Log = "text",
    router: options.Router = None,
    *,
    budget: options.Budget,
    where: TreeOptions,
    debug: options.Debug = False,
) -> int:
    """Serve the memory to many users: they ask on a web page or over HTTP, and engines answer.

    The first start makes an administrator, a frontend and an engine, prints the first two's secrets once, and a link
    that logs the administrator in; the engine runs inside. docs/service.md has the routes, docs/web-page.md the page.

    A tool that changes something is called when --allow names it, when it was permitted for good, or when the person
    says yes in the thread.

    With NAME=FOLDER, several times, it serves several trees, and a question goes to those that its asker chooses and
    may ask (`metatree service trees`); the database is then in .metatree of the current folder unless --database says
    where.

    \b
    Example: metatree serve --source ~/src/requests
    Example: metatree serve handbook=~/handbook recipes=~/recipes
    """
    _require_service()
    from metatree.storage.postgres_address import is_postgres
    from metatree_agents.cli.commands._search import parts_for, suite_parts, web_parts
    from metatree_agents.service.accounts.users import Proofs
    from metatree_agents.service.http.logs import logging_to
    from metatree_agents.service.replication.publisher import Publication
    from metatree_agents.service.replication.sharing import require_service_rights, shared_at
    from metatree_agents.service.serving import serve_all
    from metatree_agents.service.settings import ServiceSettings

    form, rates = form_of(log), rates_of(limit)
    metrics_at = None if metrics_address is None else host_and_port(metrics_address, port_alone=False)
    proxies = proxies_of(proxy)
    parts = {**suite_parts(router), **web_parts(web)}
    service = ServiceOptions(database, where.source, where.tree)
    settings = ServiceSettings(
        lease_s=lease,
        attempts=attempts,
        claim_timeout_s=claim_timeout,
        answer_timeout_s=answer_timeout,
        shared=shared,
        proofs=Proofs(sha1=not no_sha1, newline=newline_hash),
        rates=rates,
        models=tuple(model_alias or ()),
        other_logins=logins_of(
            login_header, login_proxy, oidc_issuer, oidc_client, oidc_claim, adds=login_adds
        ),
    )
    several_machines = database is not None and is_postgres(database)
    copied = several_machines and publish is False and where == TreeOptions() and not trees
    published = (several_machines if publish is None else publish) and not trees

    def parts_of(searched: Tree) -> dict[str, Any]:
        return parts_for(searched, parts, allow=allow, human=human, terminal=False)

    with (
        logging_to(form, debug=debug),
        output.notes_to(log_line if form == "json" else None),
        ExitStack() as opened,
    ):
        if several_machines:
            require_service_rights(str(database))
        # A tree may take minutes to build: a port that is taken is said before.
        require_free(host, port)
        if metrics_at is not None:
            require_free(*metrics_at, option="--metrics-address")
        named = opened_trees(opened, trees, where, publish=publish)
        memory = None if copied or named else opened.enter_context(where.ready())
        for tree in named.values():
            parts_of(tree)
        if memory is not None:
            parts_of(memory)  # what is wrong with the options is said now
        shown_agents = None if agents is None else opened.enter_context(_agents_at(agents))
        service_database = service.open()
        sharing = None
        if copied or published:
            shared_runs = opened.enter_context(shared_at(str(database))) if several_machines else None
            sharing = Publication(
                memory, not no_engine, shared_runs, refresh_s=refresh, trust_sources=trust_sources
            )
        run_until_stopped(
            lambda stop: serve_all(
                service_database,
                settings,
                memory=None if no_engine else memory,
                shown=memory,
                parts=parts_of,
                limits=budget.limits(),
                concurrency=concurrency,
                host=host,
                port=port,
                stop=stop,
                say=output.note,
                show=(lambda line: output.write([line])) if form == "json" else output.note,
                options=service.words(),
                sharing=sharing,
                proxies=proxies,
                metrics_at=metrics_at,
                agents=shown_agents,
                trees=named,
                searches=not no_engine,
            )
        )
    return FOUND


@contextmanager
def _agents_at(place: str) -> Iterator[GoalAgents]:
    """Open durable agents to show them."""
    from metatree.storage.postgres_address import is_postgres
    from metatree_agents.planner.agents.agents import Agents
    from metatree_agents.planner.agents.views import AgentViews

    if not is_postgres(place) and not Path(place).exists():
        raise UserError(
            f"there are no agents at {place!r}: `metatree goals start --store {shlex.quote(place)}` makes one"
        )
    with Agents(place) as agents:
        yield AgentViews(agents)


def _require_service() -> None:
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in ("fastapi", "jinja2", "uvicorn")):
        raise MissingExtra("service", what="`metatree serve`")
