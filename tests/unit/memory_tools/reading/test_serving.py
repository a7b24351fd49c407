"""The loop of a process that reads for another, and when that process ends."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from metatree_memory_tools.reading.own_process import OwnProcess

MAIN = """
import json, os
from metatree_memory_tools.reading.serving import serve
kept = []
def answer(header, data):
    print("a library prints this")
    if header[0] == "keep":
        kept.append(b"x" * 150_000_000)
    if header[0] == "last":
        return b"last\\n"
    return json.dumps([os.getpid(), len(data)]).encode() + b"\\n"
serve(answer, last=b"last\\n")
"""


@pytest.fixture
def process() -> Iterator[OwnProcess]:
    process = OwnProcess(lambda: f"exec({MAIN!r})")
    yield process
    process.close()


def test_one_process_answers_many_requests(process: OwnProcess) -> None:
    answers = [process.ask(["read"], bytes(size), 30) for size in (0, 10, 3_000_000)]
    assert process.process is not None
    assert answers == [b"[%d, %d]\n" % (process.process.pid, size) for size in (0, 10, 3_000_000)]


@pytest.mark.skipif(sys.platform == "win32", reason="the system does not say how much memory a process has")
def test_a_process_that_has_taken_much_memory_ends_behind_its_answer(process: OwnProcess) -> None:
    process.ask(["read"], b"", 30)
    first = process.process
    assert first is not None and first.poll() is None
    assert process.ask(["keep"], b"a", 30) == b"[%d, 1]\n" % first.pid
    assert first.wait(30) == 0
    assert process.ask(["read"], b"ab", 30).endswith(b", 2]\n")
    assert process.process is not None and process.process.pid != first.pid


def test_a_process_ends_behind_its_last_answer(process: OwnProcess) -> None:
    assert process.ask(["last"], b"", 30) == b"last\n"
    first = process.process
    assert first is not None and first.wait(30) == 0
    assert process.ask(["read"], b"a", 30).endswith(b", 1]\n")
