"""Files from a service that is no friend: what comes is bounded and checked, and nothing is left of what is wrong."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import httpx2
import pytest
from metatree_agents.service.engine.client import ServiceClient, ServiceRefused
from metatree_agents.service.replication._download import download
from metatree_agents.service.replication.copies import TreeCopy
from metatree_agents.service.replication.trees import PART

from metatree.errors import BrokenStore, MetatreeError, StorageFull, UserError

pytestmark = pytest.mark.integration
DATA = b"metatree " * (PART // 9 + 100)
DIGEST = blake2b(DATA, digest_size=16).hexdigest()
Answer = Callable[[int], httpx2.Response]


def part(data: bytes, *, more: bool) -> httpx2.Response:
    return httpx2.Response(200, headers={"X-More": str(int(more))}, content=data)


def right(number: int) -> httpx2.Response:
    piece = DATA[number * PART : (number + 1) * PART]
    return part(zlib.compress(piece), more=(number + 1) * PART < len(DATA))


def fetched(answer: Answer, file: Path, *, digest: str = DIGEST, most: int = len(DATA)) -> list[int]:
    """Download a file from a service that answers so; return which parts it was asked for."""
    asked: list[int] = []

    def serve(request: httpx2.Request) -> httpx2.Response:
        asked.append(int(request.url.params["Part"]))
        return answer(asked[-1])

    async def run() -> None:
        client = ServiceClient(
            "http://hostile", "Inference_1", "e" * 24, transport=httpx2.MockTransport(serve)
        )
        async with client:
            await download(client, digest, file, most=most)

    asyncio.run(run())
    return asked


def test_a_file_comes_in_parts_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    assert fetched(right, tmp_path / "file") == [0, 1]
    assert (tmp_path / "file").read_bytes() == DATA
    assert (tmp_path / "file").stat().st_mode & 0o077 == 0
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_download_goes_on_where_it_broke_off(tmp_path: Path) -> None:
    failures = iter([503, 429])

    def answer(number: int) -> httpx2.Response:
        status = next(failures, None) if number else None
        return right(number) if status is None else httpx2.Response(status)

    assert fetched(answer, tmp_path / "file") == [0, 1, 1, 1]
    assert (tmp_path / "file").read_bytes() == DATA


@pytest.mark.parametrize(
    "answer",
    [
        lambda number: part(b"no zlib", more=False),
        lambda number: part(zlib.compress(b"another file"), more=False),
        lambda number: part(zlib.compress(bytes(PART)), more=True),
        lambda number: part(zlib.compress(b""), more=True),
        lambda number: part(zlib.compress(bytes(50 * PART)), more=False),
        lambda number: right(number) if number == 0 else part(zlib.compress(DATA[PART:] + b"!"), more=False),
    ],
    ids=["not packed", "another file", "never ends", "never begins", "bomb", "one byte too many"],
)
def test_what_is_not_the_file_is_refused_and_the_one_before_stays(tmp_path: Path, answer: Answer) -> None:
    (tmp_path / "file").write_bytes(b"before")
    with pytest.raises(BrokenStore, match="did not come as it was published"):
        fetched(answer, tmp_path / "file")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("file", b"before")]


def test_a_file_larger_than_announced_is_refused_though_its_hash_is_right(tmp_path: Path) -> None:
    with pytest.raises(BrokenStore):
        fetched(right, tmp_path / "file", most=len(DATA) - 1)
    assert not list(tmp_path.iterdir())


def test_an_answer_that_does_not_end_fills_neither_memory_nor_disk(tmp_path: Path) -> None:
    sent = 0

    def endless(number: int) -> httpx2.Response:
        async def chunks() -> Any:
            nonlocal sent
            while True:
                sent += 100_000
                yield bytes(100_000)

        return httpx2.Response(200, content=chunks())

    with pytest.raises(ServiceRefused, match="more than"):
        fetched(endless, tmp_path / "file")
    assert sent < 2 * PART and not list(tmp_path.iterdir())


def test_a_digest_that_is_a_path_leads_nowhere(tmp_path: Path) -> None:
    with pytest.raises(BrokenStore, match="no digest"):
        fetched(right, tmp_path / "file", digest="../" * 10 + "etc")


TREE = {"Name": "a1", "Version": 1, "Digest": DIGEST, "Size": len(DATA), "Memory": 0}


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (TREE | {"Name": "../up"}, UserError),
        (TREE | {"Name": 7}, UserError),
        (TREE | {"Digest": "../../up"}, UserError),
        (TREE | {"Size": "large"}, UserError),
        ({"Version": 1}, UserError),
        ([], UserError),
        (TREE | {"Size": 10**18}, StorageFull),
        (TREE, BrokenStore),
    ],
)
def test_a_service_that_announces_what_cannot_be_is_refused(
    tmp_path: Path, said: Any, error: type[MetatreeError]
) -> None:
    def serve(request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("get-tree"):
            return httpx2.Response(200, json=said)
        return right(int(request.url.params["Part"]))  # a file with the right hash that is no store

    async def run() -> None:
        client = ServiceClient(
            "http://hostile", "Inference_1", "e" * 24, transport=httpx2.MockTransport(serve)
        )
        async with client, TreeCopy(client, tmp_path / "copies"):
            pass

    with pytest.raises(error):
        asyncio.run(run())
    assert not list(tmp_path.rglob("index.db")) and not (tmp_path / "up").exists()
