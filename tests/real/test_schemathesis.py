"""What schemathesis makes of the service's OpenAPI description, with signed requests: it must find nothing.

Here it is an administrator, who may do most; `make fuzz-service` takes all roles, and longer.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.real.conftest import FOLDER

pytestmark = pytest.mark.real


def test_schemathesis_finds_nothing() -> None:
    program = FOLDER / "fuzz/bin/schemathesis"
    if not program.exists():
        pytest.fail("schemathesis is not there: run `make test-real`")
    command = [sys.executable, "-m", "benchmarks.fuzz_service", "--schemathesis", str(program)]
    done = subprocess.run(
        [*command, "--examples", "5", "--role", "admin"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-2_000:]
