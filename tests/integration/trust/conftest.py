"""A folder that somebody else made, and the key of the one who got it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.trust.prepared import Clone


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clone]:
    made = Clone(tmp_path)
    monkeypatch.setenv("METATREE_CONFIG_DIR", str(tmp_path / "victim"))
    monkeypatch.chdir(made.folder)
    with made.listener:
        yield made
