"""Routes for administrators: the trees of the service, who may ask them, and groups."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field, StrictBool, StringConstraints

from metatree.errors import UserError
from metatree_agents.service.accounts.tree_rights import MAX_TITLE, TreeInUse, UnnamedServed, require_name
from metatree_agents.service.http._description import described
from metatree_agents.service.http.bodies import Body, Name
from metatree_agents.service.http.calls import admitted, refused, submitted

router = APIRouter(prefix="/api/admin")


class TreeSettings(Body):
    """A tree that is added, or gets another title."""

    Name: Name
    Title: Annotated[str, StringConstraints(min_length=1, max_length=MAX_TITLE)] | None = None


class TreeTaken(Body):
    """A tree that is taken out, with `Force` also one that something was asked of."""

    Name: Name
    Force: StrictBool = False


class TreeRight(Body):
    """Whether somebody may ask a tree: `Who` is a user's name, `group:NAME` or `everybody`.

    With `Anyway` a name is taken that nobody has here yet, of somebody for whom a frontend will ask.
    """

    Tree: Name
    Who: Annotated[str, StringConstraints(min_length=1, max_length=80)]
    May: StrictBool
    Anyway: StrictBool = False


class Membership(Body):
    """Users that join a group or leave it."""

    Group: Name
    Members: Annotated[list[Name], Field(min_length=1, max_length=1_000)]
    Member: StrictBool


class TreeShown(Body):
    """A tree as an administrator sees it."""

    Name: str
    Title: str
    May: list[str]


class TreesShown(Body):
    """All trees, and the members of each group."""

    Trees: list[TreeShown]
    Groups: dict[str, list[str]]


@router.get("/trees", response_model=TreesShown, **described())
async def shown_trees(request: Request) -> Response:
    """Return the trees that have names with who may ask them besides administrators, and the groups."""
    service, _, _ = await admitted(request, "admin")
    may = await service.tree_rights.rights()
    trees = [
        {"Name": tree.name, "Title": tree.title, "May": may.get(tree.name, [])}
        for tree in await service.tree_rights.all()
    ]
    return JSONResponse({"Trees": trees, "Groups": await service.tree_rights.groups()})


@router.post("/set-tree", **described(409, 422, body=TreeSettings))
async def set_tree(request: Request) -> Response:
    """Add a tree, for administrators alone at first, or give one another title; 409 where the one tree has no name."""
    service, _, body = await submitted(request, TreeSettings, "admin")
    try:
        await service.tree_rights.require_no_unnamed(require_name(body.Name))
        await service.tree_rights.add(body.Name, title=body.Title)
    except UnnamedServed as exc:
        raise refused(409, str(exc)) from None
    except UserError as exc:
        raise refused(422, str(exc)) from None
    return JSONResponse({})


@router.post("/remove-tree", **described(404, 409, 422, body=TreeTaken))
async def remove_tree(request: Request) -> Response:
    """Take a tree out, with the rights to it; without `Force` 409 when something was asked of it."""
    service, _, body = await submitted(request, TreeTaken, "admin")
    try:
        await service.tree_rights.remove(body.Name, force=body.Force)
    except TreeInUse as exc:
        raise refused(409, str(exc)) from None
    except UserError as exc:
        raise refused(404, str(exc)) from None
    return JSONResponse({})


@router.post("/set-tree-right", **described(422, body=TreeRight))
async def set_tree_right(request: Request) -> Response:
    """Let somebody ask a tree, or not any more: what they asked of it is then closed to them, too."""
    service, _, body = await submitted(request, TreeRight, "admin")
    try:
        await service.tree_rights.change(body.Tree, body.Who, may=body.May, anyway=body.Anyway)
    except UserError as exc:
        raise refused(422, str(exc)) from None
    return JSONResponse({})


@router.post("/set-group", **described(422, body=Membership))
async def set_group(request: Request) -> Response:
    """Take users into a group, or out of it."""
    service, _, body = await submitted(request, Membership, "admin")
    try:
        await service.tree_rights.set_members(body.Group, body.Members, joined=body.Member)
    except UserError as exc:
        raise refused(422, str(exc)) from None
    return JSONResponse({})
