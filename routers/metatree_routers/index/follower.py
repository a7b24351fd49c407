"""The text index of a tree made by a process of its own while the tree is built.

Reading files and indexing their words take turns at no core then: at the end of the first build of a large tree hardly
anything is left to index. A thread was lost for this: it would keep the one that writes the tree from the interpreter.
So was a follower that makes the segments itself: beside readers on all cores it had too little of one.
What a follower does not get done, because it failed or was too late, `TextIndex.refresh` does.
"""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import threading
from pathlib import Path

from metatree._util.process import cores, start_python
from metatree.trees.tree import Tree
from metatree_routers.index.index import TextIndex
from metatree_routers.index.vectors import Progress

MIN_FILES = 1_000
"""A smaller build is over before a process beside has begun."""


class IndexFollower:
    """Indexes a tree that is being built, from when `start` is called; close it at the end."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, place: Path) -> None:
        """Begin with what is in the tree at a place; nothing happens where no process can be started."""
        if self._process is None and cores() > 1:
            with contextlib.suppress(OSError):
                self._process = start_python(
                    "from metatree_routers.index.follower import main; main(sys.argv[1])",
                    str(place.absolute()),
                )

    def finish(self, progress: Progress | None = None) -> None:
        """Say that the tree is built, and wait until all of it is indexed."""
        if self._process is None:
            return
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        for line in self._process.stdout:
            if progress is not None:
                done, total = map(int, line.split())
                progress(done, total)
        self._process.wait()

    def close(self) -> None:
        """End the process."""
        if self._process is None:
            return
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        self._process.wait()
        self._process = None


def main(place: str) -> None:
    """Index the tree at a place until standard input ends and nothing is left."""

    ended = threading.Event()

    def wait() -> None:
        sys.stdin.buffer.read()
        ended.set()

    def report(done: int, total: int) -> None:
        if ended.is_set():
            print(done, total, flush=True)

    threading.Thread(target=wait, daemon=True).start()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)  # nodes and texts are many objects and no garbage
    with Tree.open(place) as tree:
        TextIndex(tree).follow(lambda: not ended.is_set(), report)
