"""No test reaches a model or the network by accident, and none reads the settings of the machine it runs on."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import settings

for _name in [name for name in os.environ if name.startswith("METATREE_")]:
    del os.environ[_name]

# A shell that starts the tests in the background has them ignore Ctrl-C, and what they start would ignore it, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says how busy the machine is, and nothing of the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

_LOCAL = ("127.0.0.1", "::1", "localhost")
_OWN = "198.18."
"""Addresses of hosts that tests make for themselves; nobody has them on the internet (RFC 2544)."""


@pytest.fixture(autouse=True, scope="session")
def cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what is remembered of model servers, and the key that marks stores, out of the user's folders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(autouse=True)
def no_model_requests(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse connections that leave the machine, and hide the keys, except in tests marked `live`."""
    if "live" in request.keywords:
        return
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and address[0] not in _LOCAL and not address[0].startswith(_OWN):
            raise RuntimeError(f"a test tried to reach {address[0]!r}: mark it `live`, or use a fake")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


_BY_REQUEST = {
    "live": "needs a real model and a key: run `pytest -m live`",
    "model": "needs the small real model of `make test-model`",
    "real": "needs the programs, servers and files of `make test-real`",
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests out that are run by request only, with `-m live`, `-m model` or `-m real`."""
    for mark, reason in _BY_REQUEST.items():
        if mark in (config.option.markexpr or ""):
            continue
        for item in items:
            if mark in item.keywords:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def conforms() -> Callable[[Any, Any], None]:
    """Return a check that a JSON value has exactly the fields and types of a `TypedDict`."""
    return _check_shape


def _check_shape(value: Any, hint: Any, where: str = "$") -> None:
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return
    if typing.is_typeddict(hint):
        fields = get_type_hints(hint)
        hints = get_type_hints(hint, include_extras=True)
        may_lack = {name for name in hints if get_origin(hints[name]) is typing.NotRequired}
        assert isinstance(value, dict), f"{where}: {value!r} is no object"
        listed = [name for name in fields if name in value or name not in may_lack]
        assert list(value) == listed, f"{where}: has {list(value)}, documented is {list(fields)}"
        for name, item in value.items():
            _check_shape(item, fields[name], f"{where}.{name}")
    elif origin is list:
        assert isinstance(value, list), f"{where}: {value!r} is no list"
        for number, item in enumerate(value):
            _check_shape(item, args[0], f"{where}[{number}]")
    elif origin is dict:
        assert isinstance(value, dict), f"{where}: {value!r} is no object"
        for name, item in value.items():
            _check_shape(item, args[1], f"{where}.{name}")
    elif origin in (types.UnionType, typing.Union):
        if value is not None or type(None) not in args:
            (only,) = [arg for arg in args if arg is not type(None)]
            _check_shape(value, only, where)
    else:
        allowed = (int, float) if hint is float else (hint,)
        assert type(value) in allowed, f"{where}: {value!r} is no {hint.__name__}"


@pytest.fixture
def pdf() -> Callable[..., bytes]:
    """Return `make_pdf`, which makes a PDF of lines and bookmarks."""
    found: Callable[..., bytes] = _documents().make_pdf
    return found


@pytest.fixture
def docx() -> Callable[..., bytes]:
    """Return `make_docx`, which makes a Word document of XML."""
    found: Callable[..., bytes] = _documents().make_docx
    return found


@pytest.fixture
def assemble() -> Callable[..., bytes]:
    """Return `assembled`, which makes a PDF of objects."""
    found: Callable[..., bytes] = _documents().assembled
    return found


def _documents() -> Any:
    spec = importlib.util.spec_from_file_location("documents", Path(__file__).with_name("documents.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
