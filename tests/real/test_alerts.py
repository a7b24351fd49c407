"""The alerts that operators copy, checked and tried by Prometheus's own tool."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.real
FOLDER = Path(__file__).parents[2] / "examples" / "monitoring"


def test_prometheus_reads_the_alerts_and_fires_them_when_it_should(real_files: Path) -> None:
    promtool = real_files / "prometheus" / "usr" / "bin" / "promtool"
    for command in (("check", "rules", "metatree.rules.yaml"), ("test", "rules", "alerts_test.yaml")):
        done = subprocess.run(
            [promtool, *command], cwd=FOLDER, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
