"""A folder that somebody else made, and the key of the one who got it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from metatree import plugins
from metatree.trees.source_types import register_type
from tests.integration.trust.prepared import Clone, Vault


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clone]:
    made = Clone(tmp_path)
    monkeypatch.setenv("METATREE_CONFIG_DIR", str(tmp_path / "victim"))
    monkeypatch.chdir(made.folder)
    with made.listener:
        yield made


@pytest.fixture
def vault() -> Iterator[Vault]:
    made = Vault()
    register_type(made)
    yield made
    plugins.unregister(plugins.SOURCES, "vault")
