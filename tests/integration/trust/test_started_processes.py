"""Where programs and processes are started, and what they are given: nothing of a folder that is read."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from metatree_memory_tools.build import _pool
from metatree_memory_tools.git._command import _environment
from metatree_memory_tools.reading.own_process import OwnProcess
from metatree_memory_tools.web import _browser_process
from metatree_routers.index import _segment_process

from metatree._util.process import absolute_libraries
from tests.integration.trust.prepared import Clone

pytestmark = pytest.mark.integration


def test_programs_are_given_no_relative_folders_of_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """`LD_LIBRARY_PATH=$LD_LIBRARY_PATH:/opt/lib`: git would load what lies in the clone that it is started in."""
    monkeypatch.setenv("LD_LIBRARY_PATH", ":/opt/lib:lib:;/usr/lib")
    monkeypatch.delenv("DYLD_LIBRARY_PATH", raising=False)
    assert absolute_libraries() == {"LD_LIBRARY_PATH": "/opt/lib:/usr/lib"}
    monkeypatch.setenv("LD_PRELOAD", "lib/hook.so /opt/a.so:./b.so:libc.so.6")
    monkeypatch.setenv("LD_AUDIT", "c.so:d/e.so")
    monkeypatch.setenv("GCONV_PATH", "conv:/usr/lib/gconv")
    assert absolute_libraries() == {
        "LD_LIBRARY_PATH": "/opt/lib:/usr/lib",
        "LD_PRELOAD": "/opt/a.so:libc.so.6",
        "LD_AUDIT": "c.so",
        "GCONV_PATH": "/usr/lib/gconv",
    }
    assert _environment()["LD_LIBRARY_PATH"] == "/opt/lib:/usr/lib"


@pytest.mark.skipif(sys.platform != "linux", reason="where a process is, is read from /proc")
@pytest.mark.parametrize(
    "start", [_pool._start, _segment_process._start, OwnProcess(lambda: "input()", 0).start]
)
def test_no_process_of_ours_is_started_in_a_folder_that_is_read(
    clone: Clone, start: Callable[[], subprocess.Popen[bytes]]
) -> None:
    """An empty element of LD_LIBRARY_PATH is the folder that a process is started in."""
    process = start()
    try:
        assert Path(f"/proc/{process.pid}/cwd").readlink() == Path("/")
    finally:
        process.kill()
        process.wait()
        for pipe in filter(None, (process.stdin, process.stdout)):
            pipe.close()


@pytest.mark.skipif(sys.platform != "linux", reason="where a process is, is read from /proc")
def test_a_browser_is_started_in_its_own_folder(clone: Clone, tmp_path: Path) -> None:
    """Chromium's loader of Vulkan looks for libraries in a folder `:` of the current one."""
    home = tmp_path / "it's a profile"
    home.mkdir()
    ends = os.pipe()
    program = tmp_path / "browser"
    program.write_text(f"#!/bin/sh\nreadlink /proc/$$/cwd > {tmp_path}/cwd\nexec sleep 60\n")
    program.chmod(0o700)
    pid = _browser_process._spawn([str(program), "a b"], *ends, str(home))
    try:
        for _ in range(200):
            if (tmp_path / "cwd").exists() and (said := (tmp_path / "cwd").read_text()):
                break
            time.sleep(0.05)
        assert said == f"{home}\n"
    finally:
        _browser_process._end(pid)
        for end in ends:
            os.close(end)
    with pytest.raises(OSError, match="Permission denied"):
        _browser_process._spawn([str(tmp_path / "none")], 0, 1, str(home))
