"""What an administrator sees and does of users: their roles, secrets, one-time links and keys, and what some left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from metatree.errors import UserError
from metatree_agents.service.accounts.former_users import Choice, Left, NameWasUsed, delete_left, left_by_all
from metatree_agents.service.accounts.keys import next_label
from metatree_agents.service.accounts.tree_rights import UNNAMED
from metatree_agents.service.accounts.users import INSIDE, ROLES
from metatree_agents.service.settings import Service
from metatree_agents.service.web._account_pages import end_key_button, key_name_field, keys_table, use_of
from metatree_agents.service.web._admin_pages import TABS, Administrator, spaced
from metatree_agents.service.web._guard import Form, Here, Number, sessions_of
from metatree_agents.service.web._listing import topics_by_owner
from metatree_agents.service.web._replies import PageError, back_to, link, sentence
from metatree_agents.service.web._tables import (
    PAGE,
    Button,
    Cell,
    FormField,
    LinkCell,
    ListedTable,
    PageForm,
    ShownOnce,
    TimeCell,
    paged,
    tables_page,
)
from metatree_agents.service.web.sessions import Session, login_link

router = APIRouter()

_USERS: Final = 25
"""On one page: each brings five forms, and fifty of them were the one page that others waited for."""

for _page, _forms in (
    ("/admin/users", ("add", "secret", "link", "role", "remove", "delete-left")),
    ("/admin/keys", ("add", "end")),
):
    for _form in _forms:
        router.add_api_route(f"{_page}/{_form}", back_to(_page), response_class=Response)


# users


@router.get("/admin/users")
async def users_page(
    request: Request, session: Administrator, service: Here, start: Number = 0, left: Number = 0
) -> Response:
    """List the users, with what can be done about each."""
    return await _users(request, session, service, start=start, left=left)


async def _users(
    request: Request,
    session: Session,
    service: Service,
    *,
    start: int = 0,
    left: int = 0,
    shown: Sequence[ShownOnce] = (),
    notice: str = "",
    wrong: str = "",
    given: Mapping[str, str] | None = None,
    asks: Left | None = None,
    status: int = 200,
) -> Response:
    topics = await topics_by_owner(service.database)
    rows: list[list[Cell]] = []
    for each in await service.admin.users(start=start, limit=_USERS + 1):
        name, role = each["Name"], each["Role"]
        count = topics.get(name, 0)
        rows.append(
            [
                name,
                LinkCell(f"{count:,}", link("/topics", of=name)) if count else None,
                LinkCell(f"{each['Keys']:,}", link("/admin/keys", of=name)) if each["Keys"] else None,
                spaced(each["Added"]),
                None if each["LastSeen"] is None else spaced(each["LastSeen"]),
                *_doings(name, role, own=name == session.name),
            ]
        )
    columns = ("Name", "Topics", "Keys", "Added (UTC)", "Last seen (UTC)", "Role", "")
    listed, earlier, later = paged(rows, "/admin/users", start, page=_USERS)
    given = given or {}
    inputs = [
        FormField(
            "name",
            "Name",
            pattern="[A-Za-z0-9_.@\\-]{1,64}",
            value=given.get("name", ""),
            hint="(up to 64 letters without accents, digits and _ . @ -)",
        ),
        FormField(
            "role", "Role", choices=("user", "frontend", "engine", "admin"), value=given.get("role", "user")
        ),
    ]
    if asks is not None:
        inputs.append(FormField("old", "What was left", choices=[*_choices(asks)], required=False))
    add = PageForm(
        "Add somebody",
        "/admin/users/add",
        "Add",
        inputs,
        "A user asks for themselves, a frontend for anybody, an engine answers, an administrator may do all this.",
    )
    return tables_page(
        request,
        session,
        "Users",
        [
            ListedTable("Users", columns, listed, "There is nobody.", earlier, later),
            *await _left(service, start, left),
        ],
        tabs=TABS,
        forms=[add],
        shown=shown,
        notice=notice,
        wrong=wrong,
        status=status,
    )


def _choices(left: Left) -> dict[str, Choice]:
    """Return what may become of what somebody left, for people.

    Each says whose it is and how much, so that a choice made for one name counts for no other.
    """
    return {
        f"show {left} to the new {left.name}": "keep",
        f"delete {left} of the {left.name} before, for good": "delete",
    }


def _doings(name: str, role: str, *, own: bool) -> tuple[Cell, Cell]:
    """Return the cells of a user's role and of what can be done; nobody takes themselves out, or the engine inside."""
    if name == INSIDE:
        return role, None
    which = {"name": name}
    link_ = () if role == "engine" else (Button("Log-in link", "/admin/users/link", which, name),)
    doings = [
        *link_,
        Button(
            "New secret",
            "/admin/users/secret",
            which,
            f"for {name}",
            asks=f"The secret that {name} has ends, and so does every log-in of theirs.",
        ),
        Button("New key", "/admin/keys/add", which, name),
    ]
    if own:
        return role, doings
    change = Button("Change", "/admin/users/role", which, f"the role of {name}", choices=ROLES, chosen=role)
    remove = Button(
        "Remove",
        "/admin/users/remove",
        which,
        name,
        asks=f"Take {name} out? Secret, keys and log-ins end, and nothing brings them back. What they asked stays.",
    )
    return [change], [*doings, remove]


async def _left(service: Service, start: int, before: int) -> list[ListedTable]:
    """Return the table of names that no user has and that own topics; none when there is none.

    Args:
        start: where the page of users begins.
        before: how many of these names are on pages before.
    """
    async with service.database.snapshot() as do:
        left = await left_by_all(do, start=before, limit=PAGE + 1)
    rows: list[list[Cell]] = [
        [
            each.name,
            LinkCell(f"{each.topics:,}", link("/topics", of=each.name)),
            [
                Button(
                    "Delete",
                    "/admin/users/delete-left",
                    {"name": each.name},
                    f"what {each.name} asked",
                    asks=f"Delete what {each.name} asked, with the answers? Nothing brings it back.",
                )
            ],
        ]
        for each in left[:PAGE]
    ]
    earlier = link("/admin/users", start=start or None, left=max(0, before - PAGE)) if before else None
    later = link("/admin/users", start=start or None, left=before + PAGE) if len(left) > PAGE else None
    hint = (
        "They were taken out, or a frontend asked for them. A new user of such a name sees these topics only where you"
        " say so."
    )
    heading = "Topics of people who are no users"
    columns = ("Name", "Topics", "")
    return [ListedTable(heading, columns, rows, "", earlier, later, hint=hint)] if rows else []


def _of_others(session: Session, given: dict[str, str]) -> str:
    """Return the user that a form names, who is neither this person nor the engine inside."""
    name = given.get("name", "").strip()
    if name == session.name:
        raise PageError(422, "Another administrator has to do this: you would lock yourself out.")
    return _outside(name)


def _outside(name: str) -> str:
    if name == INSIDE:
        raise PageError(422, f"{name} is the engine inside this server, which knows its secret.")
    return name


@router.post("/admin/users/add")
async def add_user(request: Request, session: Administrator, service: Here, given: Form) -> Response:
    """Add a user, and show the secret and a link this once."""
    name, role = given.get("name", "").strip(), given.get("role", "user")
    if name in [known for known, _, _ in await service.users.list()]:
        wrong = f"There is a user {name} already: give them a new secret, or choose another name."
        return await _users(request, session, service, wrong=wrong, status=409)
    said = []
    try:
        try:
            secret = await service.users.add(name, role)
        except NameWasUsed as exc:
            left, choice = exc.left, _choices(exc.left).get(given.get("old", ""))
            if choice is None:
                wrong = (
                    f"{name} was here before and left {left}: say below what becomes of {left.them}, or choose another"
                    " name."
                )
                entered = {"name": name, "role": role}
                return await _users(
                    request, session, service, wrong=wrong, given=entered, asks=left, status=409
                )
            secret = await service.users.add(name, role, topics=choice)
            deleted = choice == "delete"
            said.append(
                f"{left} of the {name} before: deleted."
                if deleted
                else f"{name} sees {left} of the {name} before."
            )
    except UserError as exc:
        return await _users(
            request, session, service, wrong=sentence(exc), given={"name": name, "role": role}, status=422
        )
    shown = [ShownOnce(f"The secret of {name}. It is shown this once:", secret)]
    if role != "engine":
        shown.append(await _link_of(request, name))
    trees = [tree.name for tree in await service.tree_rights.all()]
    sees_none = role == "user" and trees and not await service.tree_rights.of(name) & ~UNNAMED
    if sees_none:
        said.append(f"{name} may ask no tree yet: give them access on the page Trees.")
    return await _users(request, session, service, shown=shown, notice=" ".join(said))


@router.post("/admin/users/secret")
async def new_secret(request: Request, session: Administrator, service: Here, given: Form) -> Response:
    """Give a user a new secret; the one before and all sessions end."""
    name = _outside(given.get("name", ""))
    role = await _role_of(service, name)
    shown = ShownOnce(
        f"The new secret of {name}. It is shown this once:", await service.users.add(name, role)
    )
    await service.revocation.check()
    if name == session.name:  # this session has ended with the others: one more page, and then the log-in
        return tables_page(request, session, "Your new secret", shown=[shown], notice="Log in with it again.")
    return await _users(request, session, service, shown=(shown,))


@router.post("/admin/users/link")
async def new_link(request: Request, session: Administrator, service: Here, given: Form) -> Response:
    """Make a link that logs somebody in once."""
    name = given.get("name", "")
    await _role_of(service, name)
    try:
        return await _users(request, session, service, shown=(await _link_of(request, name),))
    except UserError as exc:
        raise PageError(422, str(exc)) from None


async def _link_of(request: Request, name: str) -> ShownOnce:
    address = f"{request.url.scheme}://{request.url.netloc}"
    code = await sessions_of(request).make_code(name)
    return ShownOnce(f"This link logs {name} in, once, within 15 minutes:", login_link(address, code))


@router.post("/admin/users/role")
async def new_role(request: Request, session: Administrator, service: Here, given: Form) -> Response:
    """Give a user another role."""
    name, role = _of_others(session, given), given.get("choice", "")
    try:
        await service.users.change_role(name, role)
    except UserError as exc:
        raise PageError(422, str(exc)) from None
    await service.revocation.check()
    return await _users(request, session, service, notice=f"{name} is of role {role} now.")


@router.post("/admin/users/remove")
async def remove_user(request: Request, session: Administrator, service: Here, given: Form) -> Response:
    """Take a user out, with keys and sessions; what was asked and answered stays."""
    name = _of_others(session, given)
    await _role_of(service, name)
    await service.users.remove(name)
    await service.revocation.check()
    return await _users(request, session, service, notice=f"{name} is a user no more. What they asked stays.")


@router.post("/admin/users/delete-left")
async def delete_topics_left(
    request: Request, session: Administrator, service: Here, given: Form
) -> Response:
    """Delete what somebody left who is no user."""
    name = given.get("name", "")
    try:
        async with service.database.transaction() as do:
            left = await delete_left(do, name)
    except UserError as exc:
        raise PageError(422, str(exc)) from None
    if not left:
        raise PageError(404, "There is nothing left of anybody of this name.")
    said = f"{left} of {name}: deleted."
    return await _users(request, session, service, notice=said)


async def _role_of(service: Service, name: str) -> str:
    for known, role, _ in await service.users.list():
        if known == name:
            return role
    raise PageError(404, "There is no such user.")


# keys


@router.get("/admin/keys")
async def keys_page(request: Request, session: Administrator, service: Here, of: str = "") -> Response:
    """List the API keys of a user, or all."""
    return await _keys(request, session, service, of=of)


async def _keys(
    request: Request,
    session: Session,
    service: Service,
    *,
    of: str = "",
    shown: Sequence[ShownOnce] = (),
    notice: str = "",
    wrong: str = "",
    given: Mapping[str, str] | None = None,
) -> Response:
    """Return the page of the keys.

    Args:
        wrong: why no key was made, where the form has what was given.
    """
    given = given or {}
    keys = await service.keys.list(of or None)
    rows: list[list[Cell]] = [
        [
            each.shown_name,
            each.id,
            each.name,
            TimeCell(each.made_at),
            None if each.used_at is None else TimeCell(each.used_at),
            None if each.name == INSIDE else [end_key_button(each, "/admin/keys/end")],
        ]
        for each in keys
    ]
    name = key_name_field(given.get("label", next_label(keys) if of else ""))
    return tables_page(
        request,
        session,
        f"Keys of {of}" if of else "Keys",
        [keys_table(rows, whose=True)],
        tabs=TABS,
        shown=shown,
        notice=notice,
        wrong=wrong,
        status=422 if wrong else 200,
        forms=[
            PageForm(
                "Another key",
                "/admin/keys/add",
                "Make a key",
                (FormField("name", "For", value=given.get("name", of)), name),
            )
        ],
    )


@router.post("/admin/keys/add")
async def add_key(request: Request, session: Administrator, service: Here, given: Form) -> Response:
    """Make a key for a user, and show it this once."""
    name = _outside(given.get("name", "").strip())
    label = given.get("label", "").strip() or next_label(await service.keys.list(name))
    try:
        key = await service.keys.add(name, label=label)
    except UserError as exc:
        return await _keys(request, session, service, wrong=sentence(exc), given=given)
    shown = ShownOnce(
        f"The new API key of {name} ({label}). It is shown this once:", key, use_of(request, key)
    )
    return await _keys(request, session, service, shown=(shown,))


@router.post("/admin/keys/end")
async def end_key(request: Request, session: Administrator, service: Here, given: Form) -> Response:
    """End a key."""
    which = given.get("id", "")
    if which not in [each.id for each in await service.keys.list() if each.name != INSIDE]:
        raise PageError(404, "There is no such key.")
    owner = await service.keys.remove(which)
    return await _keys(request, session, service, notice=f"A key of {owner} has ended.")
