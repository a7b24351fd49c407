"""Where an administrator says who may ask which tree."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping

from fastapi import APIRouter, Request
from fastapi.responses import Response

from metatree.errors import UserError
from metatree_agents.service.accounts.tree_rights import UNNAMED, who_named
from metatree_agents.service.settings import Service
from metatree_agents.service.web._admin_pages import TABS, Administrator
from metatree_agents.service.web._guard import Form, Here
from metatree_agents.service.web._replies import back_to, sentence
from metatree_agents.service.web._state import Web
from metatree_agents.service.web._tables import (
    Button,
    Cell,
    FormField,
    ListedTable,
    PageForm,
    tables_page,
)
from metatree_agents.service.web.sessions import Session

router = APIRouter()
for _form in ("trees/right", "trees/title", "trees/remove", "groups/join", "groups/leave"):
    router.add_api_route(f"/admin/{_form}", back_to("/admin/trees"), response_class=Response)
_NONE = (
    "No tree has a name: this service has one memory, for everybody who can log in. `metatree serve NAME=FOLDER …`"
    " serves several."
)


@router.get("/admin/trees")
async def trees_page(request: Request, session: Administrator, service: Here) -> Response:
    """List the trees, who may ask them, and the groups."""
    return await _trees(request, session, service)


async def _trees(
    request: Request,
    session: Session,
    service: Service,
    notice: str = "",
    *,
    wrong: str = "",
    given: Mapping[str, str] | None = None,
) -> Response:
    """Return the page of the trees.

    Args:
        wrong: why nothing was done, where the forms have what was given.
    """
    given = given or {}
    rights, trees = await service.tree_rights.rights(), await service.tree_rights.all()
    here, engines = Web.of(request).memories, await service.admin.engine_trees()
    rows: list[list[Cell]] = []
    for tree in trees:
        may = rights.get(tree.name, [])
        serving = [name for name, sets in engines.items() if any(tree.bit & each for each in sets)]
        rows.append(
            [
                tree.name,
                tree.title,
                "yes" if tree.name in here else "no",
                ", ".join(serving) or None,
                ", ".join(may) or "administrators alone",
                [
                    *(_remove_access(who, tree.name) for who in may),
                    Button(
                        "Remove",
                        "/admin/trees/remove",
                        {"tree": tree.name},
                        tree.name,
                        asks=f"Remove {tree.name} from this service, with all access to it? Its folder stays.",
                    ),
                ],
            ]
        )
    groups: list[list[Cell]] = [
        [
            name,
            ", ".join(members) or "nobody; who joins has the access that it has",
            [
                Button(
                    f"Remove {one}",
                    "/admin/groups/leave",
                    {"group": name, "member": one},
                    f"from {name}",
                    asks=f"{one} loses the access that the group {name} has.",
                )
                for one in members
            ],
        ]
        for name, members in (await service.tree_rights.groups()).items()
    ]
    tables = [
        ListedTable("Trees", ("Name", "Title", "On this server", "Engines", "Who may ask", ""), rows, _NONE),
        ListedTable("Groups", ("Name", "Members", ""), groups, "There is no group."),
    ]
    names = [tree.name for tree in trees]
    forms = [
        PageForm(
            "Give somebody access to a tree",
            "/admin/trees/right",
            "Give access",
            (
                FormField("choice", "Tree", choices=names, value=given.get("choice", "".join(names[:1]))),
                FormField("who", "Who", value=given.get("who", "")),
            ),
            "A user's name, group:NAME, or everybody. Who has lost access does not see any more what they asked of it.",
        ),
        PageForm(
            "Give a tree a title",
            "/admin/trees/title",
            "Rename",
            (
                FormField("choice", "Tree", choices=names, value=given.get("choice", "".join(names[:1]))),
                FormField("title", "Title", value=given.get("title", "")),
            ),
        ),
    ]
    join = PageForm(
        "Add somebody to a group",
        "/admin/groups/join",
        "Add",
        (
            FormField("group", "Group", value=given.get("group", "")),
            FormField("member", "User", value=given.get("member", "")),
        ),
        "A group begins with its first member.",
    )
    return tables_page(
        request,
        session,
        "Trees",
        tables,
        tabs=TABS,
        forms=[*forms, join] if names else [],
        notice=notice,
        wrong=wrong,
        status=422 if wrong else 200,
        lead="A question goes to the trees that its asker chooses of those that they may ask.",
    )


def _remove_access(who: str, tree: str) -> Button:
    """Return the button that removes the access of a user, a group or everybody to a tree, which asks before."""
    kind, _, name = who_named(who).partition(":")
    whom = {"user": name, "group": f"Everybody in the group {name}"}.get(kind, "Everybody but administrators")
    return Button(
        f"Remove access of {who}",
        "/admin/trees/right",
        {"tree": tree, "who": who},
        f"to {tree}",
        asks=f"{whom} can no longer ask {tree} then, and what they asked of it is hidden from them, unless another"
        " entry of this list gives them access. It can be given again below.",
    )


@router.post("/admin/trees/right")
async def set_right(request: Request, session: Administrator, service: Here, given: Form) -> Response:
    """Let somebody ask a tree, chosen in the form, or not any more, by the button of a row."""
    tree, who = given.get("tree") or given.get("choice", ""), given.get("who", "").strip()
    may = "tree" not in given
    before = await _hidden(service)
    if wrong := await _refused(service.tree_rights.change(tree, who, may=may)):
        return await _trees(request, session, service, wrong=wrong, given=given)
    said = f"{who} may ask {tree} now." if may else f"{who} may not ask {tree} any more."
    if count := await _hidden(service) - before:
        many = f"{abs(count):,} topic{'' if abs(count) == 1 else 's'}"
        said += f" This {'hides' if count > 0 else 'shows'} {many} {'from' if count > 0 else 'again to'} who asked."
    return await _trees(request, session, service, said)


@router.post("/admin/trees/title")
async def set_title(request: Request, session: Administrator, service: Here, given: Form) -> Response:
    """Give a tree another title."""
    name = given.get("choice", "")
    wrong = await _refused(service.tree_rights.set_of([name]))
    title = given.get("title", "") or name
    wrong = wrong or await _refused(service.tree_rights.add(name, title=title))
    if wrong:
        return await _trees(request, session, service, wrong=wrong, given=given)
    return await _trees(request, session, service, f"{name} is called “{title}” now.")


@router.post("/admin/trees/remove")
async def remove(request: Request, session: Administrator, service: Here, given: Form) -> Response:
    """Take out a tree that nothing was asked of, and that no engine has."""
    name = given.get("tree", "")
    if wrong := await _refused(service.tree_rights.remove(name)):
        return await _trees(request, session, service, wrong=wrong)
    return await _trees(request, session, service, f"{name} is not a tree of this service any more.")


@router.post("/admin/groups/join")
async def join(request: Request, session: Administrator, service: Here, given: Form) -> Response:
    """Take a user into a group."""
    return await _member(request, session, service, given, joined=True)


@router.post("/admin/groups/leave")
async def leave(request: Request, session: Administrator, service: Here, given: Form) -> Response:
    """Take a user out of a group."""
    return await _member(request, session, service, given, joined=False)


async def _hidden(service: Service) -> int:
    """Return how many topics their owners do not see, since they may not ask all their trees."""
    rows = await service.database.rows(
        "SELECT owner, trees, count(*) FROM topic WHERE trees <> ? GROUP BY owner, trees", UNNAMED
    )
    admins = {name for name, role, _ in await service.users.list() if role == "admin"}
    may = {owner: await service.tree_rights.of(owner) for owner in {row[0] for row in rows}}
    return sum(int(count) for owner, trees, count in rows if owner not in admins and trees & ~may[owner])


async def _member(
    request: Request, session: Session, service: Service, given: dict[str, str], *, joined: bool
) -> Response:
    group, member = given.get("group", "").strip(), given.get("member", "").strip()
    wrong = ""
    if joined and member not in [name for name, _, _ in await service.users.list()]:
        wrong = f"There is no user {member!r}."
    wrong = wrong or await _refused(service.tree_rights.set_members(group, [member], joined=joined))
    if wrong:
        return await _trees(request, session, service, wrong=wrong, given=given)
    said = "is in" if joined else "is not in"
    return await _trees(request, session, service, f"{member} {said} {group} now.")


async def _refused(change: Awaitable[object]) -> str:
    """Make a change, and return why it was not made; empty where it was."""
    try:
        await change
    except UserError as exc:
        return sentence(UserError(str(exc).partition(": `metatree ")[0]))  # nobody types commands here
    return ""
