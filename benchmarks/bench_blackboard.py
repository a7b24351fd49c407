"""What the blackboard costs, beside plain lists of dictionaries rendered with json.dumps.

usage: python benchmarks/bench_blackboard.py [--items 100000] [--place postgresql://…]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import tracemalloc
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from metatree import Blackboard, Settings
from metatree.blackboard import estimate
from tests.unit.blackboard.scan import scan

STEP: dict[str, Any] = {
    "step": 0,
    "subtask": "Pay the open invoice of the supplier in the accounting program",
    "action_representation": "click_input(button='left', control='Approve payment') in the window 'Invoices'",
    "user_confirm": None,
}

WRITER = """
import sys, threading
from metatree import Blackboard
path, process, threads, each = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
board = Blackboard(path)
def write(thread):
    for n in range(each):
        board.add("log", {"n": n}, agent=f"{process}.{thread}")
running = [threading.Thread(target=write, args=(t,)) for t in range(threads)]
for thread in running: thread.start()
for thread in running: thread.join()
"""

WAITER = """
import sys, time
from metatree import Blackboard
board = Blackboard(sys.argv[1])
print("ready", flush=True)
for item in board.subscribe(0):
    print(time.time() - item.at, flush=True)
    if item.data["n"] == int(sys.argv[2]) - 1:
        break
print(time.process_time(), flush=True)
"""


def timed(action: Callable[[], Any], times: int) -> float:
    """Return the median time of an action in milliseconds."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        action()
        taken.append(time.perf_counter() - began)
    return 1000 * statistics.median(taken)


def row(what: str, figure: str, goal: str = "") -> None:
    """Print one line of the table."""
    print(f"{what:62} {figure:>24}   {goal}", flush=True)


def adding(folder: Path) -> None:
    """Time single calls of `add_trajectories`."""
    for what, place, goal in (
        ("add, in memory", None, "< 50 us"),
        ("add, durable", folder / "add.db", "< 300 us"),
    ):
        with Blackboard(place) as board:
            taken = []
            cpu_began = time.process_time()
            for step in range(5_000):
                began = time.perf_counter()
                board.add_trajectories({**STEP, "step": step})
                taken.append(time.perf_counter() - began)
            cpu = time.process_time() - cpu_began
        taken.sort()
        mean, median = statistics.mean(taken), taken[2_500]
        row(what, f"{1e6 * mean:.0f} us (median {1e6 * median:.0f}, CPU {1e6 * cpu / 5_000:.0f})", goal)


def picture(number: int, side: int = 256) -> bytes:
    """Return a PNG image of its own."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\x00" + os.urandom(side) for _ in range(side))
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows, 1))
        + chunk(b"IEND", b"")
    )


def rendering(folder: Path) -> None:
    """Time a prompt of 8,000 tokens out of 10,000 items and 100 images."""
    with Blackboard(folder / "render.db", settings=Settings()) as board:
        for name, count in (("questions", 500), ("requests", 500), ("trajectories", 9_000)):
            board.add_many(name, [{**STEP, "step": n} for n in range(count)])
        for number in range(100):
            board.add_image(metadata={"reason": f"picture {number}"}, content=picture(number))
        shown = board.render(8_000)
        row(
            "render 10,000 items and 100 images to 8,000 tokens",
            f"{timed(lambda: board.render(8_000), 31):.1f} ms ({shown.tokens:,} tokens)",
            "< 20 ms",
        )


def finding(place: str | Path, count: int = 20_000) -> None:
    """Time `find` beside looking at every item, in turns; both find the same."""
    rng = random.Random(26)
    names = [f"{verb}{number}" for verb in ("pay", "open", "read", "sort") for number in range(1_000)]
    with Blackboard(place, name=f"find-{rng.random()}", settings=Settings()) as board:
        board.add_many(
            "trajectories", [{**STEP, "step": n, "named": rng.choices(names, k=8)} for n in range(count)]
        )
        first = timed(lambda: board.find("pay17"), 1)
        for what, text in (
            ("a rare word", "pay17"),
            ("two rare words", "pay17 open23"),
            ("words of every item, as they stand there", "approve payment"),
            ("words of every item, in another order", "payment approve"),
        ):
            ours, theirs = [], []
            for _ in range(3):
                ours.append(timed(partial(board.find, text), 1))
                theirs.append(timed(partial(scan, board, text), 1))
            assert board.find(text) == scan(board, text)
            ratio = statistics.median(theirs) / statistics.median(ours)
            row(
                f"find in {count:,} items: {what}",
                f"{statistics.median(ours):.1f} ms (first {first:.0f})",
                f"{ratio:.1f} x the speed of looking at every item",
            )
        board.clear()


def screenshots(folder: Path) -> None:
    """Measure what 50 identical images of 1 MB add."""
    image = folder / "shot.png"
    image.write_bytes(b"\x89PNG\r\n\x1a\n" + os.urandom(1_000_000))
    place = folder / "shots"
    place.mkdir()

    def disk() -> int:
        return sum(file.stat().st_blocks * 512 for file in place.rglob("*") if file.is_file())

    with Blackboard(place / "board.db") as board:
        before, high = disk(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        tracemalloc.start()
        for number in range(50):
            board.add_image(image, {"reason": "unchanged", "number": number})
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - high
        row("50 identical screenshots of 1 MB, on disk", f"{(disk() - before) / 1e6:.3f} MB", "< 1.1 MB")
        row(
            "  in memory (peak of Python; growth of the process)",
            f"{peak / 1e6:.2f} MB; {grown / 1e3:.2f} MB",
            "< 5 MB",
        )


def waking(folder: Path) -> None:
    """Measure how fast a waiting reader in another process learns of an item."""
    count = 40
    with Blackboard(folder / "wake.db") as board:
        process = subprocess.Popen(
            [sys.executable, "-c", WAITER, str(folder / "wake.db"), str(count)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        process.stdout.readline()
        delays = []
        for n in range(count):
            time.sleep(0.05)
            board.add("log", {"n": n})
            delays.append(float(process.stdout.readline()))
        process.wait()
    delays.sort()
    row(
        "wake a reader in another process",
        f"{1e3 * delays[count // 2]:.1f} ms (worst {1e3 * delays[-1]:.1f})",
        "< 100 ms",
    )


def writers(folder: Path, total: int) -> None:
    """Let 8 processes with 4 threads each write, and count what is there."""
    each = total // 32
    path = folder / "many.db"
    Blackboard(path).close()
    began = time.perf_counter()
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(p), "4", str(each)]) for p in range(8)
    ]
    codes = [process.wait() for process in processes]
    seconds = time.perf_counter() - began
    with Blackboard(path) as board:
        items = board.items("log")
        orders: dict[str, list[int]] = {}
        for item in items:
            orders.setdefault(item.agent, []).append(item.data["n"])
    wanted = each * 32
    lost = wanted - len({item.id for item in items})
    twice = len(items) - len({item.id for item in items})
    in_order = sum(order == list(range(each)) for order in orders.values())
    row(
        f"8 processes x 4 threads write {wanted:,} items",
        f"{seconds:.1f} s ({1e6 * seconds / wanted:.0f} us each)",
        f"lost {lost}, twice {twice}, in order {in_order} of 32, failed {sum(map(bool, codes))}",
    )


def beside_plain_lists() -> None:
    """Compare prompts with those of plain lists of dictionaries and json.dumps, after some steps."""
    print()
    columns = ("plain: tokens", "ms", "board, all: tokens", "ms", "board, 8,000: tokens", "ms")
    print(
        f"{'after':>12} " + " ".join(f"{c:>{w}}" for c, w in zip(columns, (16, 8, 20, 8, 22, 8), strict=True))
    )
    for count in (50, 500, 5_000):
        steps = [{**STEP, "step": n} for n in range(count)]

        def plain(steps: list[dict[str, Any]] = steps) -> str:
            return f"[Step Trajectories Completed Previously:]\n {json.dumps(steps)}"

        with Blackboard(settings=Settings()) as board:
            board.add_many("trajectories", steps)
            whole = sum(estimate(part["text"]) for part in board.blackboard_to_prompt())
            limited = board.render(8_000).tokens
            print(
                f"{count:6,} steps {estimate(plain()):16,} {timed(plain, 15):8.2f}"
                f" {whole:20,} {timed(board.blackboard_to_prompt, 15):8.2f}"
                f" {limited:22,} {timed(partial(board.render, 8_000), 15):8.2f}"
            )
    print(
        "tokens by `metatree.blackboard.estimate`; the plain prompt and that of the whole board are the same text"
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100_000, help="how many items the 32 writers write")
    parser.add_argument("--place", help="where `find` is measured, postgresql://…; a file by default")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        adding(folder)
        rendering(folder)
        finding(arguments.place or folder / "find.db")
        screenshots(folder)
        waking(folder)
        writers(folder, arguments.items)
    beside_plain_lists()


if __name__ == "__main__":
    main()
