"""Routes for engines that search a copy of the service's tree: what is current, its blocks, files and memories."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field, StringConstraints

from metatree.copying import BLOCK
from metatree_agents.service.bodies import Body, stamp
from metatree_agents.service.calls import caller, parameters, parameters_of, read, refused
from metatree_agents.service.state import Service
from metatree_agents.service.trees import as_json, is_body
from metatree_agents.service.wire import ANSWERING, described, taking

router = APIRouter(prefix="/api")
Hash = Annotated[str, StringConstraints(pattern="^[0-9a-f]{32}$")]
BYTES = "application/octet-stream"
MORE = "X-More"


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


class GiveMemory(Body):
    Changes: Annotated[list[MemoryChange], Field(max_length=1_000)]


@router.get("/get-tree", response_model=TreeOf, responses=described(422))
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


@router.get("/get-tree-hashes", response_class=Response, responses=described(404, 422))
async def get_tree_hashes(request: Request, Version: Annotated[int, Field(ge=1, le=2**53)]) -> Response:  # noqa: N803
    """Return the hashes of the blocks of a version, 16 bytes each, in their order."""
    service = Service.of(request)
    await caller(request, service.users, await parameters(request), *ANSWERING)
    found = await service.trees.hashes(Version)
    if found is None:
        raise refused(404, f"version {Version} is not kept any more")
    return Response(found, media_type=BYTES)


@router.post(
    "/get-blocks", response_class=Response, responses=described(404, 422), openapi_extra=taking(GetBlocks)
)
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


@router.get("/get-tree-file", response_class=Response, responses=described(404, 422))
async def get_tree_file(
    request: Request,
    Digest: Hash,  # noqa: N803
    Part: Annotated[int, Field(ge=0, le=2**31)] = 0,  # noqa: N803
) -> Response:
    """Return a part of a file that nodes were built from, zlib-packed; `X-More: 1` when there is a next one."""
    service = Service.of(request)
    await caller(request, service.users, await parameters(request), *ANSWERING)
    found = await service.trees.file_part(Digest, Part)
    if found is None:
        raise refused(404, "this file is not kept")
    return Response(found[0], media_type=BYTES, headers={MORE: str(int(found[1]))})


@router.get("/get-memory", responses=described(422))
async def get_memory(request: Request, After: Annotated[int, Field(ge=0, le=2**53)] = 0) -> Response:  # noqa: N803
    """Return what was added, changed or taken out of the memory after a number, in order."""
    service = Service.of(request)
    await caller(request, service.users, await parameters(request), *ANSWERING)
    found, latest = await service.trees.memory(After)
    return JSONResponse({"Changes": [as_json(one) for one in found], "Latest": latest})


@router.post("/give-memory", responses=described(422), openapi_extra=taking(GiveMemory))
async def give_memory(request: Request) -> Response:
    """Take what was added, changed or taken out of the memory on one machine, for all others."""
    service = Service.of(request)
    who = await caller(request, service.users, parameters_of(request), *ANSWERING)
    given = (await read(request, GiveMemory)).Changes
    if not all(one.Body is None or is_body(one.Body) for one in given):
        raise refused(422, "a body is no JSON object")
    latest = await service.trees.give([(one.What, one.Id, one.Body) for one in given], engine=who.name)
    return JSONResponse({"Latest": latest})
