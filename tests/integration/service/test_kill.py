"""Servers and engines that are killed and stopped at random: nothing lost, nothing done twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.service.killing import Soak

pytestmark = pytest.mark.integration
JOBS = 500


def test_nothing_is_lost_or_done_twice_while_processes_die(tmp_path: Path) -> None:
    soak = Soak(
        str(tmp_path / "service.db"), tmp_path, jobs=JOBS, servers=2, engines=3, askers=2, seed=20_260
    )
    outcome = soak.run(every=50, say=lambda _: None, limit_s=60.0)
    assert not outcome.wrong(), outcome.table()
    disturbed = sum(outcome.counts[name] for name in ("server killed", "server stopped", "engine killed"))
    assert disturbed and outcome.counts["proofs used twice"], outcome.table()
