"""Routes for engines that search a copy of the service's tree: what is current, its blocks, files and memories."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field, StringConstraints

from metatree.notes.replication import BLOCK, Change, is_well_formed
from metatree_agents.service.http.bodies import Body, stamp
from metatree_agents.service.http.calls import (
    caller,
    number,
    parameters,
    parameters_of,
    read,
    refused,
    required,
)
from metatree_agents.service.http.routes import ANSWERING, described, said, taking
from metatree_agents.service.replication.trees import as_json
from metatree_agents.service.settings import Service

router = APIRouter(prefix="/api")
HASH = "[0-9a-f]{32}"
Hash = Annotated[str, StringConstraints(pattern=f"^{HASH}$")]
BYTES = "application/octet-stream"
MORE = "X-More"
_PACKED: dict[int | str, dict[str, Any]] = {
    **described(404, 422),
    200: {
        "description": "Packed bytes",
        "content": {BYTES: {"schema": {"type": "string", "format": "binary"}}},
    },
}


class TreeOf(Body):
    """The tree of the service as it is now; `Version` is 0 when none was published."""

    Name: str
    Version: int
    Digest: str
    Memory: int
    Size: int
    Block: int
    Nodes: int
    Published: str | None


class GetBlocks(Body):
    Hashes: Annotated[list[Hash], Field(min_length=1, max_length=256)]


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


@router.get("/get-tree", response_model=TreeOf, responses=described(422), openapi_extra=said())
async def get_tree(request: Request) -> Response:
    """Return the current version of the tree, and the number of the latest change of its memory."""
    service = Service.of(request)
    await caller(request, service.users, await parameters(request), *ANSWERING)
    now = await service.trees.current()
    return JSONResponse(
        {
            "Name": now.name,
            "Version": now.version,
            "Digest": now.digest,
            "Memory": now.memory,
            "Size": now.size,
            "Block": BLOCK,
            "Nodes": now.nodes,
            "Published": stamp(now.at) if now.version else None,
        }
    )


@router.get("/get-tree-hashes", responses=_PACKED, openapi_extra=said("Version"))
async def get_tree_hashes(request: Request) -> Response:
    """Return the hashes of the blocks of a version, 16 bytes each, in their order."""
    service, given = Service.of(request), await parameters(request)
    await caller(request, service.users, given, *ANSWERING)
    version = number(given, "Version")
    found = await service.trees.hashes(version)
    if found is None:
        raise refused(404, f"version {version} is not kept any more")
    return Response(found, media_type=BYTES)


@router.post("/get-blocks", responses=_PACKED, openapi_extra=taking(GetBlocks))
async def get_blocks(request: Request) -> Response:
    """Return blocks in the order of their hashes, each zlib-packed behind its length in four bytes."""
    service = Service.of(request)
    await caller(request, service.users, parameters_of(request), *ANSWERING)
    wanted = (await read(request, GetBlocks)).Hashes
    found = await service.trees.blocks(wanted)
    if not found.keys() >= set(wanted):
        raise refused(404, "a block is not kept any more: ask for the current version")
    packed = [found[digest] for digest in wanted]
    return Response(b"".join(len(one).to_bytes(4, "big") + one for one in packed), media_type=BYTES)


@router.get("/get-tree-file", responses=_PACKED, openapi_extra=said("Digest", "Part"))
async def get_tree_file(request: Request) -> Response:
    """Return a part of a file that nodes were built from, zlib-packed; `X-More: 1` when there is a next one."""
    service, given = Service.of(request), await parameters(request)
    await caller(request, service.users, given, *ANSWERING)
    digest, part = required(given, "Digest"), number(given, "Part", least=0) if "Part" in given else 0
    if not re.fullmatch(HASH, digest):
        raise refused(422, f"Digest must be 32 hexadecimal digits, not {digest[:40]!r}")
    found = await service.trees.file_part(digest, part)
    if found is None:
        raise refused(404, "this file is not kept")
    return Response(found[0], media_type=BYTES, headers={MORE: str(int(found[1]))})


@router.get("/get-memory", response_model=Memory, responses=described(422), openapi_extra=said("After"))
async def get_memory(request: Request) -> Response:
    """Return what was added, changed or taken out of the memory after a number, in order."""
    service, given = Service.of(request), await parameters(request)
    await caller(request, service.users, given, *ANSWERING)
    after = number(given, "After", least=0) if "After" in given else 0
    found, latest = await service.trees.memory(after)
    return JSONResponse({"Changes": [as_json(one) for one in found], "Latest": latest})


@router.post("/give-memory", responses=described(422), openapi_extra=taking(GiveMemory))
async def give_memory(request: Request) -> Response:
    """Take what was added, changed or taken out of the memory on one machine, for all others."""
    service = Service.of(request)
    who = await caller(request, service.users, parameters_of(request), *ANSWERING)
    given = (await read(request, GiveMemory)).Changes
    for one in given:
        if not is_well_formed(Change(one.What, one.Id, one.Body)):
            raise refused(
                422, f"the body of {one.What} {one.Id[:100]!r} is no JSON object of all that it says"
            )
    latest = await service.trees.give([(one.What, one.Id, one.Body) for one in given], engine=who.name)
    return JSONResponse({"Latest": latest})
