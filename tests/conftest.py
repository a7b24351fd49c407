"""No test reaches a model or the network by accident, and none reads the settings of the machine it runs on."""

from __future__ import annotations

import os
import socket
from typing import Any

import pytest

for _name in [name for name in os.environ if name.startswith("METATREE_")]:
    del os.environ[_name]

_LOCAL = ("127.0.0.1", "::1", "localhost")


@pytest.fixture(autouse=True)
def no_model_requests(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse connections that leave the machine, and hide the keys, except in tests marked `live`."""
    if "live" in request.keywords:
        return
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and address[0] not in _LOCAL:
            raise RuntimeError(f"a test tried to reach {address[0]!r}: mark it `live`, or use a fake")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave `live` tests out unless they are asked for: `pytest -m live`."""
    if "live" in (config.option.markexpr or ""):
        return
    skip = pytest.mark.skip(reason="needs a real model and a key: run `pytest -m live`")
    for item in items:
        if "live" in item.keywords:
            item.add_marker(skip)
