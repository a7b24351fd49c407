"""The service on SQLite needs no driver of PostgreSQL: `serve` starts where that extra is not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

START = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("psycopg", "psycopg_pool"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from metatree_agents.cli import main
main()
"""


def test_serve_starts(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# Lamp\n\nThe bulb has nine watts.\n")
    serve = [sys.executable, "-c", START, "serve", "notes=notes", "--port", "0", "--no-engine"]
    environment = {**os.environ, "METATREE_CONFIG_DIR": str(tmp_path / "config")}
    with subprocess.Popen(
        serve, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if "listening on" in line or "needs an extra" in line:
                break
        process.terminate()
        process.communicate(timeout=60)
    assert "listening on" in said[-1], "".join(said)
