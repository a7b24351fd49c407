"""The seconds of a benchmark are those of the whole command."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import benchmarks.planning.__main__ as bench

pytestmark = pytest.mark.integration

BEFORE_S = AFTER_S = 0.3


@pytest.mark.parametrize(
    "said", ['{"ended": "solved", "why": "", "steps": [1], "found": [], "text": "==>"}', ""]
)
def test_what_a_command_takes_before_and_after_its_search_counts(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is timed here: a command that sleeps cannot have taken less."""
    command = tmp_path / "metatree"
    command.write_text(
        f"#!{sys.executable}\nimport sys, time\ntime.sleep({BEFORE_S})\n"
        f"sys.stdout.write({said!r}); sys.stdout.flush(); time.sleep({AFTER_S})\n"
        "open(__file__ + '.given', 'w').write(' '.join(sys.argv[1:]))\n"
    )
    command.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    row, text = bench.ours(Path("domain.hddl"), Path("problem.hddl"), 20.0, 1000, ["--improve-for", "0"])
    assert row["seconds"] > BEFORE_S + AFTER_S
    assert (row["ended"], text) == (("solved", "==>") if said else ("failed", ""))
    given = Path(f"{command}.given").read_text()
    assert given == "plan domain.hddl problem.hddl --seconds 20.0 --memory 1000 --json --improve-for 0"
    used = bench.peer(command, seconds=20.0)
    assert used["seconds"] > BEFORE_S + AFTER_S
