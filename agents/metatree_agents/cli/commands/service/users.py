"""`metatree service users`: who may call the service."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

from metatree.errors import UserError
from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FOUND
from metatree_agents.cli._groups import CommandGroup
from metatree_agents.cli.commands.service._database import ServiceOptions

if TYPE_CHECKING:
    from metatree_agents.service.accounts.former_users import Choice
    from metatree_agents.service.accounts.users import Users
    from metatree_agents.service.database.database import ServiceDatabase

T = TypeVar("T")

users_app = CommandGroup(help="Who may call the service.")


@users_app.add("add")
def add(
    name: Annotated[str, options.argument("NAME")],
    role: Annotated[
        str | None,
        options.option(
            "--role",
            None,
            "`frontend`, `engine`, `user` or `admin`; by default the one that they have, `user` for a new one.",
        ),
    ] = None,
    topics: Annotated[
        str | None,
        options.option(
            "--topics",
            "keep|delete",
            "Where somebody had this name before: whether the new one sees what they asked, or it is deleted.",
        ),
    ] = None,
    *,
    service: ServiceOptions,
    json: options.Json = False,
) -> int:
    """Add a user, or give one a new secret; the secret is printed this once.

    \b
    Example: metatree service users add Inference_2 --role engine
    """
    from metatree_agents.service.accounts.former_users import NameWasUsed

    _not_inside(name)
    if topics not in (None, "keep", "delete"):
        raise UserError(f"--topics is keep or delete, not {topics!r}")
    choice = cast("Choice | None", topics)

    async def added(users: Users) -> tuple[str, str, bool, str | None]:
        roles = {known: has for known, has, _ in await users.list()}
        assigned = role or roles.get(name, "user")
        try:
            secret = await users.add(name, assigned, topics=choice)
        except NameWasUsed as exc:
            raise UserError(
                f"{name} was here before and left {exc.left}: add `--topics keep` to show {exc.left.them} to the"
                f" new one, `--topics delete` to delete {exc.left.them}, or choose another name"
            ) from None
        return assigned, secret, not roles, roles.get(name)

    role, secret, first, before = _with_users(service, added, create=True)
    if json:
        output.write_json("service users add", {"name": name, "role": role, "secret": secret})
    else:
        output.write([secret])
        output.note(f"this is the secret of {name}, for the service of this database; it is not shown again")
        if before is not None:
            output.note("the one before is accepted no more, and sessions of the web page have ended")
        if before not in (None, role):
            page = ", who cannot log in to the page, and reads all topics" if role == "engine" else ""
            output.note(f"{name} was of role {before}, and is of role {role} now{page}")
    if first and role != "admin":
        output.note(
            f"{name} is the first user of this database, so `metatree serve` will make no administrator there;"
            f" `metatree service users add admin --role admin{service.words()}` makes one"
        )
    return FOUND


@users_app.add("login")
def login(
    name: Annotated[str, options.argument("NAME")],
    server: Annotated[
        str | None,
        options.option(
            "--server",
            "URL",
            "Where people reach the service; by default where a server of this database is at work.",
        ),
    ] = None,
    *,
    service: ServiceOptions,
    json: options.Json = False,
) -> int:
    """Print a link that logs a user in to the web page, once, within 15 minutes.

    \b
    Example: metatree service users login admin --server https://memory.example.org
    """
    from metatree_agents.service.web.sessions import CODE_S, Sessions, login_link

    if server is not None and not server.startswith(("http://", "https://")):
        raise UserError(f"{server!r} is no address of a service: give one such as http://127.0.0.1:8080")

    async def made(opened: ServiceDatabase) -> tuple[str, str, list[str]]:
        code = await Sessions(opened).make_code(name)
        address, others = (server, []) if server is not None else await _at_work(opened)
        return address, code, others

    address, code, others = service.call(made)
    link = login_link(address, code)
    if json:
        about = {"name": name, "link": link, "code": code, "seconds": int(CODE_S)}
        output.write_json("service users login", about)
    else:
        output.write([link])
        output.note(f"this logs {output.visible(name)} in, once, within {int(CODE_S // 60)} minutes")
    for other in others:
        output.note(f"it works at {output.visible(other)}, too")
    return FOUND


async def _at_work(database: ServiceDatabase) -> tuple[str, list[str]]:
    """Return where a server of a database is at work, and where others are.

    Raises:
        UserError: none is.
    """
    from metatree_agents.service.database.servers import machine_name, servers_of

    servers = await servers_of(database)
    if not servers:
        raise UserError(
            "no server is at work on this database: start `metatree serve`, or say with --server URL where people reach"
            " it, such as https://memory.example.org"
        )
    here = machine_name()
    named = [address if where == here else f"{address} on {where}" for address, where in servers]
    return servers[0][0], named[1:]


@users_app.add("list")
def list_(
    *,
    service: ServiceOptions,
    json: options.Json = False,
) -> int:
    """List the users with their roles.

    \b
    Example: metatree service users list
    """
    entries = _with_users(service, lambda users: users.list())
    if json:
        rows = [{"name": name, "role": role} for name, role, _ in entries]
        output.write_json("service users list", {"users": rows})
    else:
        output.write(f"{name}  {role}" for name, role, _ in entries)
    return FOUND


@users_app.add("remove")
def remove(
    name: Annotated[str, options.argument("NAME")],
    *,
    service: ServiceOptions,
) -> int:
    """Take a user out; what was asked and answered stays, and `users add` of the same name asks what becomes of it.

    \b
    Example: metatree service users remove Inference_2
    """
    _not_inside(name)

    async def removed(users: Users) -> None:
        if [known for known, role, _ in await users.list() if role == "admin"] == [name]:
            raise UserError(f"{name} is the last administrator: add another one first")
        await users.remove(name)

    _with_users(service, removed)
    output.note(f"removed {name}")
    return FOUND


def _not_inside(name: str) -> None:
    """Refuse to change the user that is a server itself.

    Raises:
        UserError: the name is its own.
    """
    from metatree_agents.service.accounts.users import INSIDE

    if name == INSIDE:
        raise UserError(
            f"{name} is the engine inside `metatree serve`, which knows its secret: add one of another name"
        )


def _with_users(
    service: ServiceOptions, what: Callable[[Users], Coroutine[Any, Any, T]], *, create: bool = False
) -> T:
    from metatree_agents.service.accounts.users import Users

    return service.call(lambda opened: what(Users(opened)), create=create)
