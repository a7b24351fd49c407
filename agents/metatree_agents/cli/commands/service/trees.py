"""`metatree service trees`: the trees of a service, who may ask them, and groups."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from metatree.errors import UserError
from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FOUND, NOTHING
from metatree_agents.cli._groups import CommandGroup
from metatree_agents.cli.commands.service._database import ServiceOptions

if TYPE_CHECKING:
    from metatree_agents.service.accounts.tree_rights import TreeRights
    from metatree_agents.service.database.database import ServiceDatabase

T = TypeVar("T")
trees_app = CommandGroup(help="The trees of a service that has several, and who may ask which.")
TreeName = Annotated[str, options.argument("TREE")]
Who = Annotated[list[str], typer.Argument(metavar="WHO", help="Users' names, group:NAME, or everybody.")]
Group = Annotated[str, options.argument("GROUP")]
Users = Annotated[list[str], typer.Argument(metavar="USER", help="Users' names.")]


@trees_app.add("list")
def list_(*, service: ServiceOptions, json: options.Json = False) -> int:
    """List the trees with who may ask them, besides administrators, and the groups.

    \b
    Example: metatree service trees list
    """

    async def listed(rights: TreeRights) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
        may = await rights.rights()
        trees: list[dict[str, Any]] = [
            {"name": tree.name, "title": tree.title, "may": may.get(tree.name, [])}
            for tree in await rights.all()
        ]
        return trees, await rights.groups()

    trees, groups = _with_rights(service, listed)
    if json:
        output.write_json("service trees list", {"trees": trees, "groups": groups})
        return FOUND
    for tree in trees:
        output.write(
            [output.visible(f"{tree['name']}  {', '.join(tree['may']) or '(administrators alone)'}")]
        )
    output.write(
        output.visible(f"group:{name}  {', '.join(members) or '(nobody)'}")
        for name, members in groups.items()
    )
    if not trees:
        output.note("no tree has a name: `metatree serve NAME=FOLDER …` serves several")
    return FOUND


@trees_app.add("add")
def add(
    name: TreeName,
    title: Annotated[
        str | None, options.option("--title", "TEXT", "What people read; the name by default.")
    ] = None,
    *,
    service: ServiceOptions,
) -> int:
    """Add a tree, for administrators alone at first, or give one another title; `serve NAME=FOLDER` adds its own.

    \b
    Example: metatree service trees add recipes --title "The recipes"
    """

    async def added(rights: TreeRights) -> None:
        await rights.require_no_unnamed(name)
        await rights.add(name, title=title)

    _with_rights(service, added)
    return FOUND


@trees_app.add("remove")
def remove(
    name: TreeName,
    force: Annotated[
        bool, typer.Option("--force", help="Also one that something was asked of, or that an engine has.")
    ] = False,
    *,
    service: ServiceOptions,
) -> int:
    """Take a tree out, with the rights to it; its folder stays. Without any there is one tree for everybody again.

    \b
    Example: metatree service trees remove recipes
    """

    async def removed(rights: TreeRights) -> list[str]:
        await rights.remove(name, force=force)
        return [tree.name for tree in await rights.all()]

    left = _with_rights(service, removed)
    output.note(f"removed {name}; {'there are ' + ', '.join(left) if left else 'no tree has a name now'}")
    return FOUND


@trees_app.add("allow")
def allow(
    name: TreeName,
    who: Who,
    anyway: Annotated[
        bool,
        typer.Option(
            "--anyway", help="Also names that nobody has here: of people for whom a frontend will ask."
        ),
    ] = False,
    *,
    service: ServiceOptions,
) -> int:
    """Let users, groups or everybody ask a tree, and read what they asked of it.

    \b
    Example: metatree service trees allow recipes Ann group:cooks
    """

    async def changed(rights: TreeRights) -> None:
        for each in who:
            await rights.change(name, each, may=True, anyway=anyway)

    return _changed(service, name, changed)


@trees_app.add("deny")
def deny(name: TreeName, who: Who, *, service: ServiceOptions) -> int:
    """Take a right away again; the code is 1 where somebody had none, or still has it in another way, as by a group.

    \b
    Example: metatree service trees deny recipes everybody
    """
    code = FOUND

    async def changed(rights: TreeRights) -> None:
        nonlocal code
        for each in who:
            had = await rights.change(name, each, may=False)
            ways = await rights.other_ways(name, each)
            if had and not ways:
                continue
            code = NOTHING
            own = f"{each} had no right of their own" if not had else f"the right of {each} alone has ended"
            still = (
                f"{each} may still ask it by {', '.join(ways)}: {' or '.join(map(_end_of(name, each), ways))}"
            )
            output.note(output.visible(f"{own}; {still}" if ways else own))

    _changed(service, name, changed)
    return code


def _end_of(tree: str, user: str) -> Callable[[str], str]:
    """Return how the command is called that ends a way to a tree."""
    return lambda way: (
        f"`metatree service trees leave {way.removeprefix('group:')} {user}`"
        if way.startswith("group:")
        else f"`metatree service trees deny {tree} {way}`"
    )


def _changed(service: ServiceOptions, tree: str, what: Callable[[TreeRights], Awaitable[None]]) -> int:
    async def changed(rights: TreeRights) -> list[str]:
        await what(rights)
        return (await rights.rights())[tree]

    left = _with_rights(service, changed)
    output.note(output.visible(f"{tree}: {', '.join(left) or 'administrators alone'}"))
    return FOUND


@trees_app.add("join")
def join(group: Group, users: Users, *, service: ServiceOptions) -> int:
    """Take users into a group; it begins with its first.

    \b
    Example: metatree service trees join cooks Ann Ben
    """
    return _members(service, group, users, joined=True)


@trees_app.add("leave")
def leave(group: Group, users: Users, *, service: ServiceOptions) -> int:
    """Take users out of a group.

    \b
    Example: metatree service trees leave cooks Ben
    """
    return _members(service, group, users, joined=False)


def _members(service: ServiceOptions, group: str, users: list[str], *, joined: bool) -> int:
    from metatree_agents.service.accounts.tree_rights import TreeRights
    from metatree_agents.service.accounts.users import Users as KnownUsers

    async def changed(opened: ServiceDatabase) -> list[str]:
        known = {name for name, _, _ in await KnownUsers(opened).list()}
        if joined and (unknown := [name for name in users if name not in known]):
            raise UserError(f"no user {unknown[0]!r}: `metatree service users list` lists them")
        rights = TreeRights(opened)
        await rights.set_members(group, users, joined=joined)
        return (await rights.groups()).get(group, [])

    left = service.call(changed)
    output.note(output.visible(f"group:{group}: {', '.join(left) or 'nobody'}"))
    return FOUND


def _with_rights(service: ServiceOptions, what: Callable[[TreeRights], Awaitable[T]]) -> T:
    from metatree_agents.service.accounts.tree_rights import TreeRights

    return service.call(lambda opened: what(TreeRights(opened)))
