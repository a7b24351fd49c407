"""Gateways over odd servers, each with a memory and a state folder of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from metatree import Tree
from tests.integration.agents.gateway.gateway_bench import Bench


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with Tree.create(tmp_path / "gateway.db") as memory:
        yield Bench(tmp_path, memory)


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, None]], None]:
    def runs(main: Coroutine[Any, Any, None]) -> None:
        asyncio.run(asyncio.wait_for(main, 120))

    return runs
