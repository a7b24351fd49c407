"""Which process holds something."""

from __future__ import annotations

import subprocess
import sys

from metatree._util.process import is_dead, this_process


def test_this_process_is_alive_and_one_that_ended_is_dead() -> None:
    assert not is_dead(this_process())
    script = "from metatree._util.process import this_process; print(this_process())"
    other = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert is_dead(other)
    assert this_process() != other


def test_a_pid_that_was_given_to_another_process_is_not_taken_for_the_first() -> None:
    assert is_dead(this_process().rpartition("/")[0] + "/1")


def test_what_runs_elsewhere_cannot_be_known_to_be_dead() -> None:
    assert not is_dead("another-host pid:[1]/99999999/5")
    assert not is_dead("")
    assert not is_dead("x/y/z/not-a-pid/5")


def test_one_of_another_start_of_this_machine_is_dead_unless_it_may_be_another_machine() -> None:
    host, pid, started = this_process().rsplit("/", 2)
    earlier = f"{host.rpartition(' ')[0]} another-boot/{pid}/{started}"
    assert is_dead(earlier)
    assert not is_dead(earlier, shared=True), "two machines may have one name, and one number of a process"
