"""No test reaches a model or the network by accident, and none reads the settings of the machine it runs on."""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import TypeAdapter

from tests.profiles import load_profile

for _name in [name for name in os.environ if name.startswith("METATREE_") and name != "METATREE_TESTS"]:
    del os.environ[_name]

# A shell that starts the tests in the background has them ignore Ctrl-C, and what they start would ignore it, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

load_profile()

# A full collection of garbage looks at all that was imported and at every test, and finds nothing there: garbage is
# collected as ever, though seldom. Lost: gc.freeze(), which hides what older hypothesis asks `gc.get_referrers` for.
gc.set_threshold(50_000, 20, 50)

_LOCAL = ("127.0.0.1", "::1", "localhost")
_OWN = "198.18."
"""Addresses of hosts that tests make for themselves; nobody has them on the internet (RFC 2544)."""


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a case with a long text by its argument: names of cases are printed, and in every process."""
    return argname if isinstance(val, str | bytes) and len(val) > 200 else None


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
    """Return a check that a JSON value fits the schema of a model, and has its fields alone, in their order."""
    return _check_output


def _check_output(value: Any, model: Any) -> None:
    jsonschema.validate(value, TypeAdapter(model).json_schema(mode="serialization"))
    read = TypeAdapter(model).validate_python(value)
    assert json.dumps(read.as_json()) == json.dumps(value)


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
