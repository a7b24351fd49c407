"""Files read in processes of our own: many on several cores, and large ones within limits of time and memory.

What reads source code and text is Python and holds one core; the first build of a large repository is most of what its
user waits for. `multiprocessing` was lost for this: `spawn` imports the user's main module again, and `fork` copies a
process with threads. Documents and databases are given back: a worker would start a reader of them of its own. That
goes by their types and not by names: half of a repository may be files whose names say nothing, such as `django.po`.

A file that takes too much ends the worker that reads it, and is left out. Smaller ones are read here where there are
few: what is quadratic in them takes a second. Files come in the order in which they are asked for.
"""

from __future__ import annotations

import contextlib
import gc
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, Final

from metatree import plugins
from metatree._util.process import cores, end_process, limit_data, start_python
from metatree.node import Node, Source
from metatree.trees.masking import is_code
from metatree.trees.source_types import Progress
from metatree_memory_tools.build._read_file import FileNodes, ReadElsewhere, read_file
from metatree_memory_tools.build._scan import ScannedFile
from metatree_memory_tools.memory_types import FileType, memory_types
from metatree_memory_tools.reading.own_process import SMALL_BYTES

MIN_FILES = 400
"""Fewer files are read by the process itself: a worker takes a third of a second to start."""

_MAX_WORKERS = 4
"""What one process can write; it is the same for any number of workers."""

_CHUNK_FILES = 40
_CHUNK_BYTES = 400_000
_AHEAD_BYTES = 1_500_000
"""Of files that are read before they are asked for: what is made of them may take a hundred times as much."""
HUGE_BYTES: Final = 10_000_000
"""Larger files are documents: the process that reads one may take much, so they come last, and workers end before."""
_LARGE_BYTES = 128_000
"""Larger files are read by a worker even where there are few: of one, a tenth of a second goes to its start."""
_MOST_CODE_BYTES = 2_000
"""The same for code that tree-sitter parses: what does not parse may take the square of its length in memory, in one
step that nothing can stop (6 kB take 1.4 GB)."""
LIMIT_S = 30.0
"""Of computing for one file, where the system can limit it."""
_MOST_TEXT_BYTES = 5_000_000
_MEMORY_BYTES = 1_000_000_000
"""The same for the memory of a worker."""
_MEMORY_OF_SHORT = 300_000_000
"""So much more may be taken for a file of up to `_LARGE_BYTES`."""
_TEXT_ENDINGS = (".md", ".rst", ".txt")
_MOST_PAGE_BYTES = SMALL_BYTES
"""The same for pages: larger ones are read one after the other, by the process that reads documents, since each takes
some twenty times its size of memory, and four hundred times where each paragraph opens elements anew."""
_OWN_PARSERS = (".py", ".pyi", ".pyw", ".html", ".htm", ".xhtml", ".css", ".svg")
"""Of names of code, those that no grammar of tree-sitter is for, or that is read elsewhere."""
_TYPES = frozenset({"code", "html", "man", "markdown", "python", "rst", "text"})
"""What workers read."""
_APART = frozenset({"conversation", "html"})
"""What they do not read of files above `_MOST_PAGE_BYTES`: a process that reads documents is started for each of them,
and 200,000 turns of a chat would be in a worker and here."""


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
        self,
        files: Sequence[tuple[ScannedFile, tuple[str, str] | None]],
        types: Sequence[FileType],
        pool: Workers,
    ) -> Iterator[FileNodes]:
        """Yield the nodes of files, each given with its digest and reader of the build before, in their order.

        Uses other processes for large files, and for all when there is enough to do for them, where what reads files
        can be imported there.
        """
        many = pool.count > 1 and sum(_is_text(file) for file, _ in files) >= MIN_FILES
        ahead: deque[tuple[_Chunk, Future[_Read] | None]] = deque()
        chunks = _chunks(files, _CHUNK_FILES if many else 1)
        waiting = 0
        while True:
            while (
                len(ahead) < 4 * max(1, pool.count)
                and waiting < _AHEAD_BYTES
                and (chunk := next(chunks, None)) is not None
            ):
                first = chunk[0][0]
                apart = many or (pool.count and first.size > _most_bytes(first))
                apart = apart and first.size <= HUGE_BYTES
                ahead.append((chunk, pool.submit(self, chunk) if apart else None))
                waiting += _bytes(chunk)
            if not ahead:
                return
            chunk, result = ahead.popleft()
            waiting -= _bytes(chunk)
            read: _Read = [None] * len(chunk)
            if result is not None:
                with contextlib.suppress(_NoWorker):
                    read = result.result()
            for (file, known), nodes in zip(chunk, read, strict=True):
                yield nodes or self._read_here(file, known, types, pool)

    def _read_here(
        self, file: ScannedFile, known: tuple[str, str] | None, types: Sequence[FileType], pool: Workers
    ) -> FileNodes:
        """Read a file in this process, unless it is longer code, which no name has said."""
        if file.size <= _MOST_CODE_BYTES:
            return self.read(file, known, types)
        if file.size > HUGE_BYTES:
            pool.end_idle()
        try:
            return self.read(file, known, types, frozenset(each.kind.name for each in types) - {"code"})
        except ReadElsewhere:
            with contextlib.suppress(_NoWorker):
                if (nodes := pool.submit(self, [(file, known)]).result()[0]) is not None:
                    return nodes
            return self.read(file, known, types)


_READY = "ready"
_Chunk = Sequence[tuple[ScannedFile, tuple[str, str] | None]]
_Read = list[FileNodes | None]
"""None for what is to be read elsewhere."""


def _chunks(files: _Chunk, most: int) -> Iterator[_Chunk]:
    """Yield so many files at a time, fewer where these are large."""
    begin = size = 0
    for at, (file, _) in enumerate(files):
        if at > begin and (at - begin >= most or size + file.size > _CHUNK_BYTES):
            yield files[begin:at]
            begin, size = at, 0
        size += file.size
    if files:
        yield files[begin:]


def _bytes(chunk: _Chunk) -> int:
    """Return the size of the files that workers may read: larger ones are documents, or left out."""
    return sum(file.size for file, _ in chunk if file.size <= _MOST_TEXT_BYTES)


class _NoWorker(Exception):
    """None can be started."""


def _most_bytes(file: ScannedFile) -> int:
    """Return how large a file may be by its name that is read in this process."""
    is_parsed = is_code(file.path) and not file.path.lower().endswith(_OWN_PARSERS)
    return _MOST_CODE_BYTES if is_parsed else _LARGE_BYTES


def _is_text(file: ScannedFile) -> bool:
    return is_code(file.path) or file.path.lower().endswith(_TEXT_ENDINGS)


class Workers:
    """Processes that read files, as many as there are threads to ask them; they end with the block."""

    def __init__(self) -> None:
        # What is registered in this process no other one has.
        self.count = 0 if plugins.has_registered(plugins.MEMORY_TYPES) else min(cores(), _MAX_WORKERS)
        """How many there may be; 0 where none can read the files of this build."""
        self._threads = ThreadPoolExecutor(self.count or 1, thread_name_prefix="metatree-build")
        self._idle: deque[subprocess.Popen[bytes]] = deque()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._is_over = self._is_warm = False

    def __enter__(self) -> Workers:
        return self

    def started_by(self, progress: Progress | None) -> Progress:
        """Return a function that reports as another one does, and starts all of them when it is called first.

        A walk over a large folder takes as long as they take to start.
        """

        def report(*said: Any) -> None:
            if self.count > 1 and not (self._processes or self._is_warm):
                self._is_warm = True
                for _ in range(self.count):
                    self._threads.submit(self._warm)
            if progress is not None:
                progress(*said)

        return report

    def _warm(self) -> None:
        with contextlib.suppress(_NoWorker):
            self._idle.append(self._started())

    def __exit__(self, *exc: object) -> None:
        self._is_over = True
        for process in self._processes:
            process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in self._processes:
            end_process(process)

    def end_idle(self) -> None:
        """End the processes that have nothing to do, with the memory that they took; others start when needed."""
        while self._idle:
            with contextlib.suppress(IndexError):
                process = self._idle.pop()
                self._processes.remove(process)
                end_process(process)

    def submit(self, reader: FileReader, chunk: _Chunk) -> Future[_Read]:
        return self._threads.submit(self._ask, reader, chunk)

    def _ask(self, reader: FileReader, chunk: _Chunk) -> _Read:
        """Have a chunk read by a process that has nothing to do; a file that ends its process is left out.

        Raises:
            _NoWorker: none can be started.
        """
        try:
            process = self._idle.pop()
        except IndexError:
            process = self._started()
        assert process.stdin is not None and process.stdout is not None
        try:
            pickle.dump((reader, chunk), process.stdin, pickle.HIGHEST_PROTOCOL)
            process.stdin.flush()
            nodes: _Read = pickle.load(process.stdout)
        except (OSError, EOFError, pickle.PickleError):
            process.kill()
            ended = process.wait()
            if self._is_over:  # it was ended, and nobody waits
                raise _NoWorker from None
            if len(chunk) > 1:
                return [nodes for each in chunk for nodes in self._ask(reader, [each])]
            return [_left_out(chunk[0][0], late=ended == -_LATE)]
        self._idle.append(process)
        return nodes

    def _started(self) -> subprocess.Popen[bytes]:
        try:
            if self._is_over:
                raise _NoWorker
            process = _start()
            self._processes.append(process)
            assert process.stdout is not None
            if pickle.load(process.stdout) != _READY:
                raise _NoWorker
        except (OSError, EOFError, ValueError, pickle.PickleError) as exc:
            raise _NoWorker from exc
        return process


def _left_out(file: ScannedFile, *, late: bool) -> FileNodes:
    much = f"it takes more than {LIMIT_S:g} s" if late else "it ended the process that read it"
    return FileNodes(file.id, file.size, file.mtime_ns, file.ctime_ns, "", problem=f"not read: {much}")


def _start() -> subprocess.Popen[bytes]:
    return start_python("from metatree_memory_tools.build._pool import main; main()")


def main() -> None:
    """Read the files that the parent names, until it closes the pipe."""
    source, target = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # what a memory type prints is no answer
    types = memory_types()
    _limit_memory()
    pickle.dump(_READY, target)
    target.flush()
    gc.freeze()
    gc.set_threshold(
        100_000, 20, 20
    )  # syntax trees are many objects and no garbage: it was a tenth of the time
    while (request := _next(source)) is not None:
        reader, chunk = request
        nodes = []
        for file, known in chunk:
            # A short file needs little beside what there is.
            limit_data(
                0 if file.size <= _LARGE_BYTES and sys.platform == "linux" else _MEMORY_BYTES,
                _MEMORY_OF_SHORT,
            )
            nodes.append(_read(reader, file, known, types))
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
    here = None if _is_text(file) else _TYPES
    if file.size > _MOST_PAGE_BYTES:
        here = (here or frozenset(each.kind.name for each in types)) - _APART
    try:
        with _limited_time():
            return reader.read(file, known, types, here=here)
    except ReadElsewhere:
        return None


_LATE = 0 if sys.platform == "win32" else int(signal.SIGPROF)
"""What ends a worker whose file takes too long. No code of ours runs then: native code lets none in."""


@contextlib.contextmanager
def _limited_time() -> Iterator[None]:
    if sys.platform == "win32":
        yield
        return
    signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES, _MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _next(source: IO[bytes]) -> Any:
    try:
        return pickle.load(source)
    except (EOFError, KeyboardInterrupt):
        return None
