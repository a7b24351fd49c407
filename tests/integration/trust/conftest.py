"""A folder that somebody else made, and the key of the one who got it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import metatree_agents.cli.commands._trees  # noqa: F401  # imported later, it would keep what a test has put in a module
import pytest

from metatree import Node, Source, Tree, plugins
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


@pytest.fixture
def by_hand(tmp_path: Path) -> Iterator[Tree]:
    """A tree over a folder with private files, one of which its maker named."""
    folder = tmp_path / "made"
    folder.mkdir()
    for name in (".env", "diary.md", "named.md"):
        (folder / name).write_text(f"the harbour of {name}\n")
    with closing(sqlite3.connect(folder / "private.sqlite")) as store:
        store.execute("CREATE TABLE harbour(name TEXT)")
    with Tree.create(tmp_path / "hand.db", source_root=folder) as tree:
        tree.add(Node("named", "Named", source=Source(path="named.md")))
        yield tree
