"""Many files read on several cores, in processes of our own, in the order in which they are asked for.

What reads source code and text is Python and holds one core; the first build of a large repository is most of what its
user waits for. `multiprocessing` was lost for this: `spawn` imports the user's main module again, and `fork` copies a
process with threads. Documents and databases are given back: a worker would start a reader of them of its own. That
goes by their types and not by names: half of a repository may be files whose names say nothing, such as `django.po`.
"""

from __future__ import annotations

import contextlib
import gc
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path
from typing import IO, Any

from metatree import plugins
from metatree._util.process import cores, python
from metatree.node import Node, Source
from metatree.trees.masking import is_code
from metatree_memory_tools.build._read_file import FileNodes, ReadElsewhere, read_file
from metatree_memory_tools.build._scan import ScannedFile
from metatree_memory_tools.memory_types import FileType, memory_types

MIN_FILES = 400
"""Fewer files are read by the process itself: a worker takes a third of a second to start."""

_MAX_WORKERS = 4
"""What one process can write; it is the same for any number of workers."""

_CHUNK_FILES = 40
_TEXT_ENDINGS = (".md", ".rst", ".txt")
_TYPES = frozenset({"code", "html", "man", "markdown", "python", "rst", "text"})
"""What workers read."""


@dataclass(frozen=True, slots=True)
class FileReader:
    """How the files of one source are read."""

    root: Path
    max_file_bytes: int
    secrets: bool
    left_out: frozenset[str] = frozenset()
    """The identities of parts of files that are passed over."""

    def read(
        self,
        file: ScannedFile,
        known: tuple[str, str] | None,
        types: Sequence[FileType],
        here: frozenset[str] | None = None,
    ) -> FileNodes:
        """Read one file; see `read_file`."""
        return read_file(
            self.root,
            file,
            self.max_file_bytes,
            known,
            types,
            secrets=self.secrets,
            left_out=self.left_out,
            here=here,
        )

    def read_all(
        self, files: Sequence[tuple[ScannedFile, tuple[str, str] | None]], types: Sequence[FileType]
    ) -> Generator[FileNodes, None, None]:
        """Yield the nodes of files, each given with its digest and reader of the build before, in their order.

        Uses other processes when there is enough to do for them, and what reads files can be imported there.
        """
        workers = min(cores(), _MAX_WORKERS)
        many = sum(_is_text(file) for file, _ in files) >= MIN_FILES
        if not many or workers < 2 or plugins.has_registered(plugins.MEMORY_TYPES):
            yield from (self.read(file, known, types) for file, known in files)
            return
        with _Workers(workers) as pool:
            ahead: deque[tuple[_Chunk, Future[_Read]]] = deque()
            chunks = (files[at : at + _CHUNK_FILES] for at in range(0, len(files), _CHUNK_FILES))
            while True:
                while len(ahead) < 4 * workers and (chunk := next(chunks, None)) is not None:
                    ahead.append((chunk, pool.submit(self, chunk)))
                if not ahead:
                    return
                chunk, result = ahead.popleft()
                try:
                    read = result.result()
                except (OSError, EOFError, pickle.PickleError):  # the worker ended, or could not be started
                    read = [None] * len(chunk)
                for (file, known), nodes in zip(chunk, read, strict=True):
                    yield nodes or self.read(file, known, types)


_Chunk = Sequence[tuple[ScannedFile, tuple[str, str] | None]]
_Read = list[FileNodes | None]
"""None for what is to be read elsewhere."""


def _is_text(file: ScannedFile) -> bool:
    return is_code(file.path) or file.path.lower().endswith(_TEXT_ENDINGS)


class _Workers:
    """Processes that read files, as many as there are threads to ask them; they end with the block."""

    def __init__(self, count: int) -> None:
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="metatree-build")
        self._idle: deque[subprocess.Popen[bytes]] = deque()
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *exc: object) -> None:
        for process in self._processes:
            process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in self._processes:
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    if pipe is not None:
                        pipe.close()
            process.wait()

    def submit(self, reader: FileReader, chunk: _Chunk) -> Future[_Read]:
        return self._threads.submit(self._ask, reader, chunk)

    def _ask(self, reader: FileReader, chunk: _Chunk) -> _Read:
        """Have a chunk read by a process that has nothing to do.

        Raises:
            OSError, EOFError, pickle.PickleError: it cannot be started, or it ended.
        """
        try:
            process = self._idle.pop()
        except IndexError:
            process = _start()
            self._processes.append(process)
        assert process.stdin is not None and process.stdout is not None
        pickle.dump((reader, chunk), process.stdin, pickle.HIGHEST_PROTOCOL)
        process.stdin.flush()
        nodes: _Read = pickle.load(process.stdout)
        self._idle.append(process)
        return nodes


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        python("from metatree_memory_tools.build._pool import main; main()"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def main() -> None:
    """Read the files that the parent names, until it closes the pipe."""
    source, target = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # what a memory type prints is no answer
    types = memory_types()
    gc.freeze()
    gc.set_threshold(
        100_000, 20, 20
    )  # syntax trees are many objects and no garbage: it was a tenth of the time
    while (request := _next(source)) is not None:
        reader, chunk = request
        nodes = [_read(reader, file, known, types) for file, known in chunk]
        _pickler(target).dump(nodes)
        target.flush()


_NODE, _SOURCE = ([each.name for each in fields(kind)] for kind in (Node, Source))
_values_of_node, _values_of_source = attrgetter(*_NODE), attrgetter(*_SOURCE)


def _source(*values: Any) -> Source:
    return Source(**dict(zip(_SOURCE, values, strict=True)))


def _pickler(target: IO[bytes]) -> pickle.Pickler:
    """Return one that takes nodes apart in C: what dataclasses bring for it is Python, three times as slow."""
    pickler = pickle.Pickler(target, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = {
        Node: lambda node: (Node, _values_of_node(node)),
        Source: lambda source: (_source, _values_of_source(source)),
    }
    return pickler


def _read(
    reader: FileReader, file: ScannedFile, known: tuple[str, str] | None, types: Sequence[FileType]
) -> FileNodes | None:
    try:
        return reader.read(file, known, types, here=None if _is_text(file) else _TYPES)
    except ReadElsewhere:
        return None


def _next(source: IO[bytes]) -> Any:
    try:
        return pickle.load(source)
    except (EOFError, KeyboardInterrupt):
        return None
