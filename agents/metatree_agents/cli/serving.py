"""`metatree serve`, `worker` and `users`: the query service, its engines, and who may call it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, ExitStack, suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from metatree.errors import MissingExtra, UserError
from metatree_agents.cli import options, screen
from metatree_agents.cli.exits import FOUND
from metatree_agents.cli.serve_options import (
    Limit,
    Log,
    MetricsAddress,
    Offer,
    Proxy,
    address_of_metrics,
    form_of,
    log_line,
    proxies_of,
    rates_of,
)
from metatree_agents.cli.shapes import UserAddedShape, UserLoginShape, UserShape, UsersShape

if TYPE_CHECKING:
    from metatree import Limits, Tree
    from metatree.shared import Shared
    from metatree_agents.service.database import Database
    from metatree_agents.service.users import Users

T = TypeVar("T")
SECRET = "METATREE_SECRET"
DATABASE = "service.db"

DatabasePath = Annotated[
    str | None,
    typer.Option(
        "--database",
        parser=options.given,
        metavar="FILE|URL",
        help="Where topics and users are kept: a file, by default service.db beside the tree, or an address such as"
        " postgresql://USER@HOST/NAME, which several servers may share; its password comes best from PGPASSWORD.",
    ),
]
Several = Annotated[
    int, typer.Option("--several", min=1, metavar="N", help="How many topics are answered at the same time.")
]
AskPerson = Annotated[
    bool,
    typer.Option(
        "--ask-person", help="Put what the tree does not answer to the person who asked, in the thread."
    ),
]


def serve(
    host: Annotated[
        str, typer.Option("--host", parser=options.given, help="Address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 for any free one.")] = 8080,
    database: DatabasePath = None,
    no_engine: Annotated[
        bool, typer.Option("--no-engine", help="Run no engine inside: others come with `metatree worker`.")
    ] = False,
    several: Several = 2,
    shared: Annotated[
        bool, typer.Option("--shared", help="Let users ask and read in the topics of others.")
    ] = False,
    lease: Annotated[
        float, typer.Option("--lease", min=1, metavar="S", help="Seconds that an engine has for a topic.")
    ] = 300.0,
    attempts: Annotated[
        int, typer.Option("--attempts", min=1, metavar="N", help="A query fails after N engines had it.")
    ] = 5,
    engine_wait: Annotated[
        float,
        typer.Option(
            "--engine-wait", min=0, max=100, metavar="S", help="Seconds that an engine waits for a query."
        ),
    ] = 55.0,
    check_wait: Annotated[
        float,
        typer.Option(
            "--check-wait", min=0, max=60, metavar="S", help="Seconds that `check-query` waits for an answer."
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
    ask_person: AskPerson = False,
    allow: options.Allow = None,
    web: options.Web = None,
    limit: Limit = None,
    offer: Offer = None,
    proxy: Proxy = None,
    metrics_address: MetricsAddress = None,
    log: Log = "text",
    router: options.Router = None,
    max_calls: options.MaxCalls = None,
    max_seconds: options.MaxSeconds = None,
    source: options.Source = None,
    tree: options.TreePath = None,
    debug: options.Debug = False,
) -> int:
    """Serve the memory to many users: they ask on a web page or over HTTP, and engines answer.

    The first start makes an administrator, a frontend and an engine, prints the first two's secrets once, and a link
    that logs the administrator in; the engine runs inside. docs/service.md has the routes, docs/web-page.md the page.

    A tool that changes something is called when --allow names it, when it was permitted for good, or when the person
    says yes in the thread.

    \b
    Example: metatree serve --source ~/src/requests
    """
    _require_service()
    from metatree.postgres import is_postgres
    from metatree_agents.cli.engines import engine_parts
    from metatree_agents.cli.searching import limits_of, suite_parts
    from metatree_agents.cli.trees import ready_tree
    from metatree_agents.service.logs import logging_to
    from metatree_agents.service.serving import serve_all
    from metatree_agents.service.sharing import Sharing, shared_at
    from metatree_agents.service.state import Settings
    from metatree_agents.service.users import Proofs

    form, rates, metrics_at = form_of(log), rates_of(limit), address_of_metrics(metrics_address)
    proxies = proxies_of(proxy)
    parts, limits = suite_parts(router), limits_of(max_calls, max_seconds)
    settings = Settings(
        lease_s=lease,
        attempts=attempts,
        engine_wait_s=engine_wait,
        check_wait_s=check_wait,
        shared=shared,
        proofs=Proofs(sha1=not no_sha1, newline=newline_hash),
        rates=rates,
        models=tuple(offer or ()),
    )
    several_machines = database is not None and is_postgres(database)
    copied = several_machines and publish is False and source is None and tree is None
    published = several_machines if publish is None else publish

    def parts_of(searched: Tree) -> dict[str, Any]:
        return engine_parts(parts, searched, web=web, ask_person=ask_person, allow=allow)

    with (
        logging_to(form, debug=debug),
        screen.notes_to(log_line if form == "json" else None),
        ExitStack() as opened,
    ):
        memory = None if copied else opened.enter_context(ready_tree(source, tree))
        if memory is not None:
            parts_of(memory)  # what is wrong with the options is said now
        kept = _opened(database, source, tree)
        sharing = None
        if copied or published:
            shared_runs = opened.enter_context(shared_at(str(database))) if several_machines else None
            sharing = Sharing(memory, not no_engine, shared_runs, refresh_s=refresh)
        _run(
            lambda stop: serve_all(
                kept,
                settings,
                memory=None if no_engine else memory,
                shown=memory,
                parts=parts_of,
                limits=limits,
                several=several,
                host=host,
                port=port,
                stop=stop,
                say=screen.note,
                show=(lambda line: screen.write([line])) if form == "json" else screen.note,
                options=again(database, source, tree),
                sharing=sharing,
                proxies=proxies,
                metrics_at=metrics_at,
            )
        )
    return FOUND


def worker(
    server: Annotated[
        str, typer.Option("--server", parser=options.given, metavar="URL", help="The service to work for.")
    ],
    user: Annotated[
        str, typer.Option("--user", parser=options.given, metavar="NAME", help="The engine's name there.")
    ],
    several: Several = 1,
    database: Annotated[
        str | None,
        typer.Option(
            "--database",
            parser=options.given,
            metavar="URL",
            help="The service's postgresql:// address: runs and tool calls are then shared with all its engines, and"
            " a run that died with its machine goes on on another.",
        ),
    ] = None,
    copy: Annotated[
        Path | None,
        typer.Option(
            "--copy",
            parser=options.path,
            metavar="FOLDER",
            help="Where the copy of the service's tree is kept; by default in the user's cache folder.",
        ),
    ] = None,
    ask_person: AskPerson = False,
    allow: options.Allow = None,
    web: options.Web = None,
    router: options.Router = None,
    max_calls: options.MaxCalls = None,
    max_seconds: options.MaxSeconds = None,
    source: options.Source = None,
    tree: options.TreePath = None,
    debug: options.Debug = False,
) -> int:
    """Run an engine: claim topics of a service, search the tree for answers, and post them.

    Without --source and --tree it searches a copy of the tree that the service publishes, kept in step with it.

    The engine's secret is read from METATREE_SECRET, so that no list of processes shows it. Ctrl-C, or a TERM signal,
    stops it gracefully: what it has not answered goes back to the queue.

    \b
    Example: METATREE_SECRET=… metatree worker --server http://127.0.0.1:8080 --user Inference_1
    """
    from metatree.postgres import is_postgres
    from metatree_agents.cli.engines import engine_parts
    from metatree_agents.cli.searching import limits_of, suite_parts
    from metatree_agents.cli.trees import ready_tree
    from metatree_agents.service.sharing import copies_folder, shared_at

    secret = os.environ.get(SECRET, "")
    if not secret:
        raise UserError(f"the secret of {user!r} is missing: put it into {SECRET}")
    parts, limits = suite_parts(router), limits_of(max_calls, max_seconds)
    own = source is not None or tree is not None
    if database is not None and (own or not is_postgres(database)):
        raise UserError(
            "--database is the service's own postgresql:// address, for engines that search a copy of its tree:"
            f" {'leave out --source and --tree' if own else 'a file is of one machine'}"
        )

    def parts_of(searched: Tree) -> dict[str, Any]:
        return engine_parts(parts, searched, web=web, ask_person=ask_person, allow=allow)

    with ExitStack() as opened:
        memory = opened.enter_context(ready_tree(source, tree)) if own else None
        if memory is not None:
            parts_of(memory)  # what is wrong with the options is said now
        shared = opened.enter_context(shared_at(database)) if database is not None else None
        folder = copy or copies_folder()
        _run(
            lambda stop: _work(
                server, user, secret, memory, parts_of, limits, several, stop, folder=folder, shared=shared
            )
        )
    return FOUND


async def _work(
    server: str,
    user: str,
    secret: str,
    memory: Tree | None,
    parts: Callable[[Tree], dict[str, Any]],
    limits: Limits | None,
    several: int,
    stop: asyncio.Event,
    *,
    folder: Path,
    shared: Shared | None,
) -> None:
    from metatree_agents.service.client import ServiceClient
    from metatree_agents.service.copies import TreeCopy
    from metatree_agents.service.engine import Engine

    async with AsyncExitStack() as opened:
        client = await opened.enter_async_context(ServiceClient(server, user, secret))
        searched: Tree | TreeCopy | None = memory
        if searched is None:
            copy = TreeCopy(client, folder, shared=shared, say=screen.note)
            searched = await _unless(stop, opened.enter_async_context(copy))
            if searched is None:
                return
        engine = Engine(
            client,
            searched,
            parts=parts,
            limits=limits,
            several=several,
            on_answer=lambda asked, said: screen.note(
                screen.visible(f"{asked.topic} {asked.seq}: {said.ended}: {asked.text}")
            ),
        )
        screen.note(f"working for {server} as {user}")
        stopping = asyncio.ensure_future(_then(stop, engine.stop))
        try:
            await engine.run()
        finally:
            stopping.cancel()


async def _unless(stop: asyncio.Event, what: Coroutine[Any, Any, T]) -> T | None:
    """Await something that may take long, or give it up and return None when it is time to stop."""
    task, stopped = asyncio.ensure_future(what), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return None
    finally:
        stopped.cancel()


async def _then(stop: asyncio.Event, what: Callable[[], None]) -> None:
    await stop.wait()
    what()


users_app = typer.Typer(
    name="users", help="Who may call the service.", no_args_is_help=True, rich_markup_mode=None
)


@users_app.command("add")
def add(
    name: Annotated[str, typer.Argument(parser=options.given, metavar="NAME")],
    role: Annotated[
        str | None,
        typer.Option(
            "--role",
            parser=options.given,
            help="`frontend`, `engine`, `user` or `admin`; by default the one that they have, `user` for a new one.",
        ),
    ] = None,
    database: DatabasePath = None,
    source: options.Source = None,
    tree: options.TreePath = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Add a user, or give one a new secret; the secret is printed this once.

    \b
    Example: metatree users add Inference_2 --role engine
    """
    _not_inside(name)

    async def added(users: Users) -> tuple[str, str]:
        kept = role or next((has for known, has, _ in await users.list() if known == name), "user")
        return kept, await users.add(name, kept)

    role, secret = _with_users(database, source, tree, added, create=True)
    if json:
        screen.write_json(UserAddedShape(name=name, role=role, secret=secret))
    else:
        screen.write([secret])
        screen.note(f"this is the secret of {name}, for the service of this database; it is not shown again")
    return FOUND


@users_app.command("login")
def login(
    name: Annotated[str, typer.Argument(parser=options.given, metavar="NAME")],
    server: Annotated[
        str,
        typer.Option("--server", parser=options.given, metavar="URL", help="Where people reach the service."),
    ] = "http://127.0.0.1:8080",
    database: DatabasePath = None,
    source: options.Source = None,
    tree: options.TreePath = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Print a link that logs a user in to the web page, once, within 15 minutes.

    \b
    Example: metatree users login admin --server https://memory.example.org
    """
    from metatree_agents.service.web.sessions import CODE_S, Sessions

    if not server.startswith(("http://", "https://")):
        raise UserError(f"{server!r} is no address of a service: give one such as http://127.0.0.1:8080")
    code = _with_database(database, source, tree, lambda kept: Sessions(kept).make_code(name))
    link = f"{server.rstrip('/')}/login#code={code}"
    if json:
        screen.write_json(UserLoginShape(name=name, link=link, code=code, seconds=int(CODE_S)))
    else:
        screen.write([link])
        screen.note(f"this logs {screen.visible(name)} in, once, within {int(CODE_S // 60)} minutes")
    return FOUND


@users_app.command("list")
def list_(
    database: DatabasePath = None,
    source: options.Source = None,
    tree: options.TreePath = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """List the users with their roles.

    \b
    Example: metatree users list
    """
    found = _with_users(database, source, tree, lambda users: users.list())
    if json:
        screen.write_json(UsersShape(users=[UserShape(name=name, role=role) for name, role, _ in found]))
    else:
        screen.write(f"{name}  {role}" for name, role, _ in found)
    return FOUND


@users_app.command("remove")
def remove(
    name: Annotated[str, typer.Argument(parser=options.given, metavar="NAME")],
    database: DatabasePath = None,
    source: options.Source = None,
    tree: options.TreePath = None,
    debug: options.Debug = False,
) -> int:
    """Take a user out; what was asked and answered stays.

    \b
    Example: metatree users remove Inference_2
    """
    _not_inside(name)

    async def removed(users: Users) -> None:
        left = [(known, has) for known, has, _ in await users.list() if known != name]
        if (name, "admin") in [(known, has) for known, has, _ in await users.list()] and not any(
            has == "admin" for _, has in left
        ):
            raise UserError(f"{name} is the last administrator: add another one first")
        await users.remove(name)

    _with_users(database, source, tree, removed)
    screen.note(f"removed {name}")
    return FOUND


def _not_inside(name: str) -> None:
    """Refuse to change the user that is a server itself.

    Raises:
        UserError: the name is its own.
    """
    from metatree_agents.service.serving import INSIDE

    if name == INSIDE:
        raise UserError(
            f"{name} is the engine inside `metatree serve`, which knows its secret: add one of another name"
        )


def _with_users(
    database: str | None,
    source: list[str] | None,
    tree: Path | None,
    what: Callable[[Users], Coroutine[Any, Any, Any]],
    *,
    create: bool = False,
) -> Any:
    from metatree_agents.service.users import Users

    return _with_database(database, source, tree, lambda kept: what(Users(kept)), create=create)


def _with_database(
    database: str | None,
    source: list[str] | None,
    tree: Path | None,
    what: Callable[[Database], Coroutine[Any, Any, Any]],
    *,
    create: bool = False,
) -> Any:
    kept = _opened(database, source, tree, create=create)

    async def do() -> Any:
        try:
            await kept.start()
            return await what(kept)
        finally:
            await kept.close()

    return asyncio.run(do())


def _opened(
    database: str | None, source: list[str] | None, tree: Path | None, *, create: bool = True
) -> Database:
    """Return the database of the service; a file is readable for nobody else.

    Raises:
        MissingExtra: it is PostgreSQL's, and psycopg is not installed.
        UserError: its address is none, its folder is not there, or `create` is False and it is not.
    """
    from metatree_agents.cli.trees import FOLDER, place_of
    from metatree_agents.service.database import SqliteDatabase

    if database is not None and "://" in database:
        from metatree.postgres import is_postgres
        from metatree_agents.service.postgres_address import address_of

        if not is_postgres(database):
            raise UserError(
                f"{database.partition('://')[0]!r} is no kind of database: name a file, or postgresql://USER@HOST/NAME"
            )
        address = address_of(database)
        from metatree_agents.service.postgres import PostgresDatabase

        return PostgresDatabase(address, create=create)
    if database is not None:
        file = Path(database).expanduser()
    else:
        place = place_of(source, tree)
        # A tree in one file has its database beside it; any other in its folder, which builds make and scans pass over.
        file = (place.parent if place.is_file() else place) / DATABASE
        if create and file.parent.name == FOLDER and not file.parent.exists():
            file.parent.mkdir()
            (file.parent / ".gitignore").write_text("*\n")
    if not create and not file.exists():
        raise UserError(
            f"there is no service in {str(file)!r}: name the --source, --tree or --database that `metatree serve` has"
        )
    if not file.parent.is_dir():
        raise UserError(
            f"there is no folder {str(file.parent)!r} for the database: make it, or name another file with --database"
        )
    # SQLite gives the files beside it, in which secrets are too, the rights of the database itself.
    for path in (file, *(file.with_name(file.name + end) for end in ("-wal", "-shm"))):
        if path == file or path.exists():
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            with suppress(OSError):
                path.chmod(0o600)
    return SqliteDatabase.open(file)


def again(database: str | None, source: list[str] | None, tree: Path | None) -> str:
    """Return the options that name the same database in another command, without secrets."""
    if database is not None:
        from metatree.postgres import is_postgres
        from metatree_agents.service.postgres_address import without_secrets

        return f" --database {quote(without_secrets(database) if is_postgres(database) else database)}"
    named = "".join(f" --source {each}" for each in source or ())
    return named + (f" --tree {tree}" if tree is not None else "")


def _require_service() -> None:
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in ("fastapi", "jinja2", "uvicorn")):
        raise MissingExtra("service", what="`metatree serve`")


def _run(what: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine until it ends, or a signal asks it to stop; a second signal stops it at once."""

    async def run() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()

        def asked() -> None:
            for name in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(name)
            screen.note(
                "stopping; what is not answered yet goes back to the queue (Ctrl-C again to stop at once)"
            )
            stop.set()

        for name in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError):  # Windows
                loop.add_signal_handler(name, asked)
        await what(stop)

    asyncio.run(run())
