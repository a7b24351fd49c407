"""`.ci/run`: any part that fails fails the whole, and the end of its log says how the tests went."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration
RUN = Path(__file__).parents[2] / ".ci" / "run"
MAKE = """#!/bin/sh
[ "$1" = "$FAILS" ] && said="1 failed" || said="9 passed"
echo "===== $said of $1 in 0.10s ====="
[ "$1" != "$FAILS" ]
"""


@pytest.mark.parametrize("fails", ["", "setup", "test", "test-model", "test-real", "test-lowest", "check"])
def test_any_part_that_fails_fails_the_whole(tmp_path: Path, fails: str) -> None:
    for name, text in ((".ci/run", RUN.read_text(encoding="utf-8")), ("bin/make", MAKE)):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "FAILS": fails}
    done = subprocess.run(
        [tmp_path / ".ci" / "run"], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode == 0) == (fails == ""), done.stdout
    if fails != "setup":
        said = {part: "1 failed" if part == fails else "9 passed" for part in ("test", "test-lowest")}
        lines = done.stdout.splitlines()
        assert lines[-1] == f"===== {said['test']} of test in 0.10s ====="
        assert lines[-2].endswith(f"{said['test-lowest']} of test-lowest in 0.10s =====")
        assert f"make check: {'failed' if fails == 'check' else 'passed'}" in lines


def test_the_lowest_versions_are_tried_in_an_environment_of_their_own() -> None:
    shown = subprocess.run(
        ["make", "-n", "test-lowest"],
        cwd=RUN.parents[1],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    (tests,) = (line for line in shown.splitlines() if "-m pytest" in line)
    assert " .venv-lowest/bin/python -m pytest " in tests
    assert '.ci/lowest ".venv-lowest" ' in shown
