"""One board, many processes: nothing lost, nothing twice, order kept, readers woken, nothing lost by a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import IO

import pytest

from metatree import Blackboard
from metatree.errors import UserError

pytestmark = pytest.mark.integration


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def output_of(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None
    return process.stdout


def ended(process: subprocess.Popen[str]) -> str:
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0, out
    return out


WRITERS = """
    import sys, threading
    from metatree import Blackboard

    path, process, threads, each = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    board = Blackboard(path)

    def write(thread):
        writer = f"{process}.{thread}"
        for n in range(each):
            board.add("log", {"n": n}, agent=writer)

    running = [threading.Thread(target=write, args=(t,)) for t in range(threads)]
    for thread in running: thread.start()
    for thread in running: thread.join()
    board.close()
"""


def test_many_writers_lose_nothing_and_keep_their_order(tmp_path: Path) -> None:
    """`benchmarks/bench_blackboard.py` does the same with 100,000 items."""
    path = tmp_path / "board.db"
    processes = [start(WRITERS, path, p, 4, 100) for p in range(4)]
    for process in processes:
        ended(process)
    with Blackboard(path) as board:
        items = board.items("log")
        assert len(items) == len({item.id for item in items}) == 1_600
        assert sorted(item.changed for item in items) == list(range(1, 1_601))
        by_writer: dict[str, list[int]] = {}
        for item in items:
            by_writer.setdefault(item.agent, []).append(item.data["n"])
        assert len(by_writer) == 16
        assert all(order == list(range(100)) for order in by_writer.values())


COUNTERS = """
    import sys
    from metatree import Blackboard
    from metatree.errors import Conflict

    board, item = Blackboard(sys.argv[1]), sys.argv[2]
    for _ in range(50):
        while True:
            now = board.get(item)
            try:
                board.update(item, {"count": now.data["count"] + 1}, if_version=now.version)
                break
            except Conflict:
                pass
"""


def test_conditional_writes_of_processes_never_overwrite_each_other(tmp_path: Path) -> None:
    with Blackboard(tmp_path / "board.db") as board:
        item = board.add("facts", {"count": 0})
        for process in [start(COUNTERS, tmp_path / "board.db", item.id) for _ in range(3)]:
            ended(process)
        assert board.get(item.id).data == {"count": 150}
        assert board.get(item.id).version == 151


ENDLESS = """
    import sys
    from metatree import Blackboard

    board = Blackboard(sys.argv[1])
    n = 0
    while True:
        item = board.add("log", {"n": n})
        print(item.id, flush=True)
        n += 1
"""


def test_item_whose_call_returned_survives_a_kill(tmp_path: Path) -> None:
    for round_ in range(3):
        path = tmp_path / f"{round_}.db"
        process = start(ENDLESS, path)
        returned = [output_of(process).readline().strip() for _ in range(50 + 17 * round_)]
        os.kill(process.pid, signal.SIGKILL)
        returned += [line.strip() for line in output_of(process) if line.endswith("\n")]
        process.communicate()
        with Blackboard(path) as board:
            stored_ids = [item.id for item in board.items("log")]
            assert stored_ids[: len(returned)] == returned
            assert [item.data["n"] for item in board.items("log")] == list(range(len(stored_ids)))


IMAGES = """
    import sys
    from pathlib import Path
    from metatree import Blackboard

    board = Blackboard(sys.argv[1])
    content = Path(sys.argv[2]).read_bytes()
    n = 0
    while True:
        item = board.add_image(content=content + bytes([n % 256, n // 256]))
        print(item.id, flush=True)
        n += 1
"""


def test_image_whose_call_returned_survives_a_kill(tmp_path: Path) -> None:
    image = tmp_path / "a.png"
    image.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100_000))
    process = start(IMAGES, tmp_path / "board.db", image)
    returned = [output_of(process).readline().strip() for _ in range(10)]
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    with Blackboard(tmp_path / "board.db") as board:
        for item in board.screenshots:
            path = board.image_path(item)
            assert path is not None
            assert path.stat().st_size == 100_010
        assert [item.id for item in board.screenshots][:10] == returned


WAITER = """
    import sys, time
    from metatree import Blackboard
    from metatree.blackboard import _notify

    _notify.POLL_S = 60.0
    board = Blackboard(sys.argv[1])
    print("ready", flush=True)
    for item in board.subscribe(0):
        print(time.time(), item.data["n"], flush=True)
        if item.data["n"] == 9:
            break
    print(time.process_time(), flush=True)
"""

ASYNC_WAITER = """
    import asyncio, sys, time
    from metatree import Blackboard
    from metatree.blackboard import _notify

    _notify.POLL_S = 60.0

    async def main():
        board = Blackboard(sys.argv[1])
        print("ready", flush=True)
        async for item in board.watch(0):
            print(time.time(), item.data["n"], flush=True)
            if item.data["n"] == 9:
                break

    asyncio.run(main())
    print(time.process_time(), flush=True)
"""


@pytest.mark.parametrize("program", [WAITER, ASYNC_WAITER])
def test_reader_in_another_process_is_woken_and_need_not_look(tmp_path: Path, program: str) -> None:
    with Blackboard(tmp_path / "board.db") as board:
        process = start(program, tmp_path / "board.db")
        assert output_of(process).readline() == "ready\n"
        delays = []
        for n in range(10):
            time.sleep(0.2)
            item = board.add("log", {"n": n})
            at, number = output_of(process).readline().split()
            assert int(number) == n
            delays.append(float(at) - item.at)
        ended(process)
        assert min(delays) < 0.1  # the others are an affair of who else uses this machine
        assert board.listeners() == 0


def test_reader_that_cannot_be_reached_looks_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Blackboard(tmp_path / "board.db") as board, Blackboard(tmp_path / "board.db") as other:
        import threading

        monkeypatch.setattr("metatree.blackboard._notify.Notifier.notify", lambda self: None)
        timer = threading.Timer(0.1, lambda: other.add("log", {}))
        timer.start()
        began = time.monotonic()
        assert board.wait(timeout_s=10) == 1
        assert time.monotonic() - began < 5
        timer.join()


def test_killed_waiter_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = start(WAITER, tmp_path / "board.db")
    assert output_of(process).readline() == "ready\n"
    with Blackboard(tmp_path / "board.db") as board:
        while board.listeners() == 0:
            time.sleep(0.01)
        process.kill()
        process.communicate()
        board.add("log", {"n": 0})  # rings at a port where nobody is
        later = time.time() + 1_000
        monkeypatch.setattr("metatree.blackboard._notify.time.time", lambda: later)
        assert board.listeners() == 0
        board.wait(timeout_s=0.01)
        assert board._share.store.rows("SELECT count(*) FROM board_waiter") == [(0,)]


def test_board_of_a_forked_process_says_what_to_do(tmp_path: Path) -> None:
    with Blackboard(tmp_path / "board.db") as board:
        board._share.rows._process += 1
        with pytest.raises(UserError, match="open it again in the child"):
            board.add("log", {})


def test_boards_of_a_file_are_apart_and_lie_beside_a_tree(tmp_path: Path) -> None:
    from metatree import Tree

    tree = Tree.create(tmp_path / "tree.db")
    main, other = Blackboard(tree), Blackboard(tree, name="other")
    main.add_requests("r")
    assert other.is_empty()
    assert main.path == tmp_path / "tree.db"
    main.close()  # the tree stays open
    assert [node.id for node in tree.children()] == []
    tree.close()
    with Blackboard(tmp_path / "tree.db") as again:
        assert again.requests.list_content == [{"request": "r"}] or again.requests.list_content == [
            {"text": "r"}
        ]


def test_closed_board_says_so(tmp_path: Path) -> None:
    board = Blackboard(tmp_path / "board.db")
    board.close()
    board.close()
    with pytest.raises(UserError, match="closed"):
        board.add("log", {})


def test_folder_without_a_tree_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="folder without a tree"):
        Blackboard(tmp_path)
    (tmp_path / ".metatree").mkdir()
    with Blackboard(tmp_path) as board:
        assert board.path == tmp_path / ".metatree" / "memory.db"


def test_fifty_identical_screenshots_take_the_room_of_one(tmp_path: Path) -> None:
    image = tmp_path / "shot.png"
    image.write_bytes(b"\x89PNG\r\n\x1a\n" + os.urandom(1_000_000))

    def size() -> int:
        return sum(f.stat().st_blocks * 512 for f in tmp_path.rglob("*") if f.is_file() and f != image)

    with Blackboard(tmp_path / "board.db") as board:
        before = size()
        for _ in range(50):
            board.add_image(image, {"reason": "the same again"})
        assert board.screenshots.length == 50
        assert size() - before < 1_100_000


ASKING = """
    import json, sys
    from metatree import Blackboard, Tree, ask_person, search
    from metatree.testing.parts import FunctionRouter, PlainComposer, ScriptedReader

    tree = Tree.open(sys.argv[1])
    result = search(
        "Where is it?", tree=tree, blackboard=Blackboard(tree), run_id="r1", fallbacks=[ask_person], wait=30.0,
        router=FunctionRouter(lambda request: None), reader=ScriptedReader({}), composer=PlainComposer(),
        evidence=False,
    )
    print(json.dumps([result.ended, result.answer]))
"""


def test_answer_from_another_process_lets_a_waiting_run_go_on(tmp_path: Path) -> None:
    from metatree.testing.parts import tree_of
    from metatree.trees.tree import Tree

    tree_of({"a": "one", "b": "two"}, Tree.create(tmp_path / "tree.db")).close()
    process = start(ASKING, tmp_path / "tree.db")
    with Blackboard(tmp_path / "tree.db") as board:
        version = 0
        while not board.open_questions():
            version = board.wait(version, timeout_s=30)
        (question,) = board.open_questions()
        assert question.run == "r1"
        board.answer(question.id, "under the stairs")
    assert json.loads(ended(process)) == ["answered", "under the stairs"]
