"""Which process holds something, and whether it is still there."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def this_process() -> str:
    """Return a name for this process that no other has: host, its start, pid and when it started."""
    return f"{_host()} {_boot()}/{os.getpid()}/{_started(os.getpid())}"


def is_dead(owner: str, *, shared: bool = False) -> bool:
    """Say whether the holder was a process of this machine that is gone; False when that cannot be known.

    Args:
        owner: as `this_process` named it.
        shared: whether processes of other machines hold such things too. Otherwise one of the same host that was
            started before a reboot is dead.
    """
    host, pid_text, started = owner.rsplit("/", 2) if owner.count("/") >= 2 else ("", "", "")
    host, _, boot = host.rpartition(" ")
    if host != _host() or not pid_text.isdigit():
        return False
    if boot != _boot():
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


def _boot() -> str:
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
