"""numpy starts no threads under a command that ends soon, unless the user asks for them."""

from __future__ import annotations

import os

import pytest
from metatree_agents.cli import main


@pytest.mark.parametrize(("asked", "given"), [(None, "1"), ("3", "3")])
def test_threads_of_numpy(monkeypatch: pytest.MonkeyPatch, asked: str | None, given: str) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", asked or "")
    if asked is None:
        monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    monkeypatch.setattr("sys.argv", ["metatree", "--version"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert os.environ["OPENBLAS_NUM_THREADS"] == given
