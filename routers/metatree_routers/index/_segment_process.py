"""Texts turned into posting lists in a process of our own, while the caller reads the texts of the next nodes.

The first index of a large tree is most of what is left of a build once files are read on all cores, and half of it is
cutting texts into terms: Python, which holds one core. Texts go over and one segment comes back, the same that
`SegmentBuilder` gives here.
"""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterable
from queue import SimpleQueue
from typing import IO, Any

from metatree._util.process import end_process, start_python
from metatree_routers.index.postings import TOKEN_CHARS, Segment, SegmentBuilder, fields_of
from metatree_routers.index.vocabulary import MOST_WORDS, Vocabulary, spaced_texts, words_in

MIN_NODES = 10_000
"""Fewer changed nodes are indexed by the process itself: another one takes a third of a second to start."""

_PIECE_CHARS = 1 << 18
_Exact = list[tuple[int, tuple[str, ...]]]
_Piece = tuple[_Exact, bytes]
_END: _Piece = ([], b"")


class ProcessLost(Exception):
    """The process ended, or could not be started; what it was given is to be done here."""


class SegmentProcess:
    """A `SegmentBuilder` in another process; not shared between threads. Close it at the end."""

    def __init__(self) -> None:
        self._exact: _Exact = []
        self._texts: list[str] = []
        self._chars = self._waiting = self._nodes = 0
        self._hashes: set[int] = set()
        self._words = 0
        self._outgoing: SimpleQueue[_Piece | None] = SimpleQueue()
        self._segments: SimpleQueue[Segment | Exception] = SimpleQueue()
        try:
            self._process = _start()
        except OSError as error:
            raise ProcessLost from error
        # Threads of their own write and read: a pipe is full most of the time.
        self._threads = [
            threading.Thread(target=work, name="metatree-index", daemon=True)
            for work in (self._write, self._read)
        ]
        for thread in self._threads:
            thread.start()

    def __len__(self) -> int:
        return self._nodes

    @property
    def raw_tokens(self) -> int:
        """About how many raw tokens were added, as `SegmentBuilder.raw_tokens`."""
        return self._chars // TOKEN_CHARS + 3 * self._nodes

    @property
    def new_words(self) -> int:
        """About how many different words were sent, by the hashes of chunks; see `SegmentBuilder.new_words`."""
        return self._words

    def add(self, node: int, *, title: str, about: str, content: str, exact: Iterable[str] = ()) -> None:
        """Add the text of one node; see `SegmentBuilder.add`."""
        self._exact.append((node, tuple(exact)))
        self._texts += fields_of(title, about, content)
        self._nodes += 1
        size = len(title) + len(about) + len(content)
        self._chars += size
        self._waiting += size
        if self._waiting > _PIECE_CHARS:
            self._send()

    def end(self) -> None:
        """Have the segment made of all that was added, and begin the next one."""
        self._send()
        self._outgoing.put(_END)
        self._chars = self._nodes = 0
        self._hashes.clear()
        self._words = 0

    def segment(self) -> Segment:
        """Give the segment that was ended first of those that were not given yet, when it is made.

        Raises:
            ProcessLost: there is none.
        """
        segment = self._segments.get()
        if isinstance(segment, Exception):
            raise ProcessLost from segment
        return segment

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._outgoing.put(None)
        for thread in self._threads:
            thread.join()
        end_process(self._process)

    def _send(self) -> None:
        if self._texts:
            # Cut as far as bytes are cut: the process beside has more to do than this one, which only reads.
            spaced = spaced_texts(self._texts)
            fresh = [word for word in {*spaced.split()} if hash(word) not in self._hashes]
            self._words += words_in(fresh)
            self._hashes.update(map(hash, fresh))
            self._outgoing.put((self._exact, spaced))
            self._exact, self._texts, self._waiting = [], [], 0

    def _write(self) -> None:
        assert self._process.stdin is not None
        while (piece := self._outgoing.get()) is not None:
            try:
                pickle.dump(piece, self._process.stdin, pickle.HIGHEST_PROTOCOL)
                if piece is _END:
                    self._process.stdin.flush()
            except (OSError, ValueError):  # it ended: who waits for the segment sees that
                return

    def _read(self) -> None:
        assert self._process.stdout is not None
        while True:
            try:
                self._segments.put(pickle.load(self._process.stdout))
            except (OSError, EOFError, ValueError, pickle.PickleError) as error:
                self._segments.put(error)
                return


def _start() -> subprocess.Popen[bytes]:
    return start_python("from metatree_routers.index._segment_process import main; main()")


def main() -> None:
    """Give a segment of the texts that the parent sends, each time it sends none, until it closes the pipe."""
    source, target = sys.stdin.buffer, sys.stdout.buffer
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    words = Vocabulary()
    builder = SegmentBuilder(words)
    while (piece := _next(source)) is not None:
        exact, spaced = piece
        if spaced:
            builder.add_spaced(exact, spaced)
            words.expand_all()  # now, while the parent reads: at the end it would wait for it
            continue
        pickle.dump(builder.build(), target, pickle.HIGHEST_PROTOCOL)
        target.flush()
        if len(words) > MOST_WORDS:
            words = Vocabulary()
        builder = SegmentBuilder(words)


def _next(source: IO[bytes]) -> Any:
    try:
        return pickle.load(source)
    except (EOFError, KeyboardInterrupt):
        return None
