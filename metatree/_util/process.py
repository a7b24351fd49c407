"""Programs and processes: where they are, how our own are started; which one holds something, and whether it is there.

The name has the start of its machine (the boot id), and the start of the process: two machines, or two containers, may
have one name and one number of a process, and a live run must not be taken for dead. A holder on this machine that died
is seen at once, so a resume after `kill -9` need not wait for a lease to end.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, module_from_spec
from itertools import filterfalse
from pathlib import Path
from types import ModuleType


def program(name: str) -> str:
    """Return the path of a program, from the absolute folders of PATH alone, or of one that a whole path names.

    Relative ones, such as `node_modules/.bin`, and on Windows the current folder, would be those of a folder that is
    read, which must bring no program.

    Raises:
        FileNotFoundError: there is none.
    """
    # A relative name with folders is none of PATH, and would be looked for below each of its folders.
    plain = Path(name).name
    ends = os.environ.get("PATHEXT", ".EXE;.BAT;.CMD").split(";") if os.name == "nt" else []
    for folder in filter(os.path.isabs, os.get_exec_path() if plain == name else [str(Path(name).parent)]):
        for end in ("", *ends):
            file = Path(folder, plain + end)
            if file.is_file() and os.access(file, os.X_OK):
                return str(file)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


def _starts() -> Iterator[Path]:
    """Yield the current folder, and the one that the process was started in as its shell has it: it may be left."""
    with suppress(FileNotFoundError):  # no current folder
        yield Path.cwd()
    if (start := Path(os.environ.get("PWD", ""))).is_absolute():
        yield start


def _options() -> Iterator[str]:
    """Yield the options that this Python was started with, up to what is run; `-m` is the last of them."""
    arguments = iter(sys.orig_argv[1:])
    for each in arguments:
        if not each.startswith("-"):
            return
        yield each
        if each in ("-W", "-X", "--check-hash-based-pycs"):
            next(arguments, None)


def _relative(elements: Iterable[str]) -> frozenset[str]:
    """Return what Python makes of the elements of PYTHONPATH that are relative, or empty: folders below this one."""
    relative = list(filterfalse(os.path.isabs, elements))
    return frozenset(os.path.normpath(start / each) for start in _starts() for each in relative)


_PYTHONPATH = os.environ.get("PYTHONPATH", "").split(os.pathsep) if os.environ.get("PYTHONPATH") else []
_HERE = _relative(_PYTHONPATH)
_RUNS_MODULE = not sys.flags.safe_path and any(
    re.fullmatch(r"-[bBdEhiOqsSuvVx]*m.*", each) for each in _options()
)
_LIBRARY = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
TOP_FOLDER = Path(sys.executable).anchor or None
_INSTALLED_IN = Path(__file__).parents[2]
"""The folder that this package is imported from."""


def import_path() -> list[str]:
    """Return where this process imports from, without the current folder, and what PYTHONPATH names relative to it.

    A prompt, a notebook, `python -c` and `python -m` put the current folder first, which may be somebody else's clone:
    it stays only where this package itself lies in it (`pip install --target`).
    `PYTHONPATH=$PYTHONPATH:/opt/lib` has an empty element where it was not set: nobody means a clone by that.
    """
    # What is added at the start comes before the library; `python -m pdb` and others then put a folder before that.
    library = max((at for at, path in enumerate(sys.path) if path.endswith(_LIBRARY)), default=1)
    starts = list(_starts())
    if _RUNS_MODULE:  # Python puts the folder directly before those of PYTHONPATH
        known = (at for at, path in enumerate(sys.path[:library]) if path in _PYTHONPATH)
        starts += [Path(path) for path in sys.path[:library][: next(known, library)][-1:]]
    named = (path for at, path in enumerate(sys.path) if at >= library or not _is_start(path, starts))
    return [path for path in filter(os.path.isabs, named) if path not in _HERE]


def _is_start(path: str, starts: Sequence[Path]) -> bool:
    if path in _PYTHONPATH:
        return False
    with suppress(OSError):  # a zip file that is not there
        return any(map(Path(path).samefile, starts)) and not Path(path).samefile(_INSTALLED_IN)
    return False


def installed_spec(module: str) -> ModuleSpec | None:
    """Return where a module is installed, None where it is not: one of the current folder is not."""
    paths = import_path()
    if paths == sys.path:
        return find_spec(module)
    known = sys.modules.get(module)
    return PathFinder.find_spec(module, paths) if known is None else known.__spec__


def import_installed(module: str) -> ModuleType:
    """Import a module from where it is installed, whatever the current folder has.

    Raises:
        ImportError: it is not installed, or cannot be imported.
    """
    if module not in sys.modules:
        spec = installed_spec(module)
        if spec is None or spec.loader is None:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)
        sys.modules[module] = made = module_from_spec(spec)
        try:
            spec.loader.exec_module(made)
        except BaseException:
            del sys.modules[module]
            raise
    return sys.modules[module]


def python(code: str, *arguments: str) -> list[str]:
    """Return the command of a process that runs code with this Python and what this process can import.

    `-I`: it imports nothing from where it happens to be started.
    """
    paths = import_path()
    return [sys.executable, "-I", "-c", f"import sys; sys.path[:] = {paths!r}; {code}", *arguments]


def start_python(code: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a process that runs code as `python` says, with pipes to it; what it says of itself is dropped.

    It is started in the top folder: an empty element of LD_LIBRARY_PATH is the folder that a process is started in.
    """
    pipe = subprocess.PIPE
    return subprocess.Popen(
        python(code, *arguments), stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, cwd=TOP_FOLDER
    )


def end_process(process: subprocess.Popen[bytes]) -> None:
    """End a process of `start_python`, if it has not ended, and close the pipes to it."""
    process.kill()
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):
            if pipe is not None:
                pipe.close()
    process.wait()


def cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # Linux has it
        return os.cpu_count() or 1


def limit_data(most: int, room: int) -> None:
    """Bound the memory of this process from here on, where the system can: never above what it was started with.

    Args:
        most: bytes that it may have.
        room: bytes that it may take beside what it has now, if that is more.
    """
    with suppress(ImportError, OSError, ValueError):
        import resource

        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        pages = int(Path("/proc/self/statm").read_text().split()[5]) if sys.platform == "linux" else 0
        least = pages * resource.getpagesize() + room
        resource.setrlimit(resource.RLIMIT_DATA, (min(hard, max(most, least)), hard))


_FOLDERS_OF_LIBRARIES = (
    *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH"),
    "GCONV_PATH",  # of encodings, such as a commit may name
)


def absolute_libraries() -> dict[str, str]:
    """Return the variables that say which libraries programs load, and from where, without what is relative or empty.

    A program that is started in a folder, as git is, would load what lies there.
    """
    found = {}
    for name in _FOLDERS_OF_LIBRARIES:
        if name in os.environ:
            found[name] = ":".join(filter(os.path.isabs, re.split("[:;]", os.environ[name])))
    for name in ("LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES"):
        if name in os.environ:  # a name without a folder is one of those that the system knows
            each = re.split("[: ]" if name == "LD_PRELOAD" else ":", os.environ[name])
            found[name] = ":".join(part for part in each if "/" not in part or part.startswith("/"))
    return found


def absolute_path() -> str:
    """Return PATH without relative folders, for programs that look for others in it; see `program`."""
    # An empty PATH would be the current folder.
    return os.pathsep.join(filter(os.path.isabs, os.get_exec_path())) or str(Path(sys.executable).parent)


def environment_for_git() -> dict[str, str]:
    """Return the variables of this process that git is given: none of its own, and no relative folder of settings.

    What settings below the folder that is read name could be run or written.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_")
        and not (name in ("HOME", "XDG_CONFIG_HOME") and not Path(value).is_absolute())
    }


def this_process() -> str:
    """Return a name for this process that no other has: host, its start, pid and when it started."""
    return f"{_host()} {_boot_id()}/{os.getpid()}/{_started(os.getpid())}"


def is_dead(owner: str, *, shared: bool = False) -> bool:
    """Say whether the holder was a process of this machine that is gone; False when that cannot be known.

    Args:
        owner: as `this_process` named it.
        shared: whether processes of other machines hold such things too. Otherwise one of the same host that was
            started before a reboot is dead.
    """
    host, pid_text, started = owner.rsplit("/", 2) if owner.count("/") >= 2 else ("", "", "")
    host, _, boot = host.rpartition(" ")
    if host != _host() or not pid_text.isdecimal() or len(pid_text) > 9:
        return False
    if boot != _boot_id():
        return not shared
    pid = int(pid_text)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return _started(pid) != started


def _host() -> str:
    """Return where pids mean the same: the host, and its pid namespace where there are such (containers)."""
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    return f"{socket.gethostname()} {namespace}".rstrip()


def _boot_id() -> str:
    """Return what tells this start of this machine from all others: two machines may have one name."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "-"


def _started(pid: int) -> str:
    """Return when a process started, in clock ticks since boot, so that a reused pid is not taken for it.

    `dead` for one that has died and was not yet waited for; '' where the system does not say.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "dead" if fields[0] in "ZX" else fields[19]
    except (OSError, IndexError):
        return ""


def resident_bytes() -> int:
    """Return how much memory this process has; where the system does not say, the most that it has had, or 0."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * resource.getpagesize()
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


@contextmanager
def memory_bound(more_bytes: int) -> Iterator[None]:
    """Have the system refuse this process more than so many bytes beside those that it has: a MemoryError.

    Where the system knows no such bound (Windows, macOS), nothing is refused.
    """
    try:
        import resource

        has = re.search(r"^VmData:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
        before, hard = resource.getrlimit(resource.RLIMIT_DATA)
    except (ImportError, OSError):
        has = None
    if has is None:
        yield
        return
    bounds = [bound for bound in (before, int(has[1]) * 1024 + more_bytes) if bound != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(bounds), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, hard))
