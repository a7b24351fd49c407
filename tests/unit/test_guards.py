"""The guards of conftest: no connection leaves the machine, no setting of it is seen."""

from __future__ import annotations

import os
import socket

import pytest


def test_connections_that_leave_the_machine_are_refused() -> None:
    with socket.socket() as connection, pytest.raises(RuntimeError, match=r"198\.51\.100\.1"):
        connection.connect(("198.51.100.1", 443))


def test_local_connections_are_let_through() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as connection:
        connection.connect(server.getsockname())
        assert connection.getpeername() == server.getsockname()


def test_settings_of_the_machine_are_not_seen() -> None:
    seen = [name for name in os.environ if name.startswith("METATREE_")]
    assert seen in ([], ["METATREE_TESTS"]), "that one says how often properties are tried; no code reads it"
    assert "OPENAI_API_KEY" not in os.environ
