"""Routes for engines that search a copy of the service's tree: what is current, its files and memories."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field, StringConstraints

from metatree.notes.replication import RowChange, is_well_formed
from metatree_agents.service.http._description import described
from metatree_agents.service.http.bodies import Body, stamp
from metatree_agents.service.http.calls import admitted, number, refused, required, submitted
from metatree_agents.service.http.routes import ANSWERING

router = APIRouter(prefix="/api")
DIGEST = "[0-9a-f]{32}"
BYTES = "application/octet-stream"
MORE = "X-More"
_PACKED = {BYTES: {"schema": {"type": "string", "format": "binary"}}}


class TreeOf(Body):
    """The tree of the service as it is now; `Version` is 0 when none was published."""

    Name: str
    Version: int
    Digest: str
    Memory: int
    Size: int
    Nodes: int
    Published: str | None


class MemoryChange(Body):
    What: Literal["node", "override", "flag"]
    Id: Annotated[str, StringConstraints(min_length=1, max_length=8_000)]
    Body: str | None


class Memory(Body):
    """Changes of the memory, and the number of the latest."""

    Changes: list[dict[str, Any]]
    Latest: int


class GiveMemory(Body):
    Changes: Annotated[list[MemoryChange], Field(max_length=1_000)]


@router.get("/get-tree", response_model=TreeOf, **described(422))
async def get_tree(request: Request) -> Response:
    """Return the current version of the tree, and the number of the latest change of its memory."""
    service, _, _ = await admitted(request, *ANSWERING)
    now = await service.trees.current()
    return JSONResponse(
        {
            "Name": now.name,
            "Version": now.version,
            "Digest": now.digest,
            "Memory": now.memory,
            "Size": now.size,
            "Nodes": now.nodes,
            "Published": stamp(now.at) if now.version else None,
        }
    )


@router.get(
    "/get-tree-file",
    **described(404, 422, params=("Digest", "Part"), description="Packed bytes", content=_PACKED),
)
async def get_tree_file(request: Request) -> Response:
    """Return a part of the file of a version, or of one that nodes were built from, zlib-packed.

    `X-More: 1` when there is a next one.
    """
    service, _, given = await admitted(request, *ANSWERING)
    digest, part = required(given, "Digest"), number(given, "Part", least=0, default=0)
    if not re.fullmatch(DIGEST, digest):
        raise refused(422, f"Digest must be 32 hexadecimal digits, not {digest[:40]!r}")
    part_bytes = await service.trees.file_part(digest, part)
    if part_bytes is None:
        raise refused(404, "this file is not kept")
    return Response(part_bytes[0], media_type=BYTES, headers={MORE: str(int(part_bytes[1]))})


@router.get("/get-memory", response_model=Memory, **described(422, params=("After",)))
async def get_memory(request: Request) -> Response:
    """Return what was added, changed or taken out of the memory after a number, in order."""
    service, _, given = await admitted(request, *ANSWERING)
    after = number(given, "After", least=0, default=0)
    changes, latest = await service.trees.memory(after)
    listed = [{"What": one.what, "Id": one.id, "Body": one.body, "Number": its} for one, its in changes]
    return JSONResponse({"Changes": listed, "Latest": latest})


@router.post("/give-memory", **described(422, body=GiveMemory))
async def give_memory(request: Request) -> Response:
    """Take what was added, changed or taken out of the memory on one machine, for all others."""
    service, who, body = await submitted(request, GiveMemory, *ANSWERING)
    changes = [RowChange(one.What, one.Id, one.Body) for one in body.Changes]
    for one in changes:
        if not is_well_formed(one):
            raise refused(
                422, f"the body of {one.what} {one.id[:100]!r} is no JSON object of all that it says"
            )
    latest = await service.trees.give(changes, engine=who.name)
    return JSONResponse({"Latest": latest})
