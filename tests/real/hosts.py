"""Machines of one's own: processes with folders of their own, in network namespaces where the system allows it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Host:
    """One machine: a home, a cache and what it is asked to run; `die` is its power cut."""

    def __init__(self, name: str, address: str, folder: Path, before: list[str]) -> None:
        self.name, self.address, self.folder = name, address, folder
        self._before = before
        self._running: list[subprocess.Popen[bytes]] = []
        (folder / "home").mkdir(parents=True)

    def run(self, *command: str | Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start a program there, its output in `NUMBER.log` in the folder."""
        own = {"HOME": str(self.folder / "home"), "METATREE_CACHE_DIR": str(self.folder / "home" / "cache")}
        with (self.folder / f"{len(self._running)}.log").open("wb") as log:
            process = subprocess.Popen(
                [*self._before, *map(str, command)],
                env={**os.environ, **own, **(env or {})},
                cwd=self.folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._running.append(process)
        return process

    def metatree(
        self, *arguments: str | Path, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start the command line there."""
        return self.run(Path(sys.executable).with_name("metatree"), *arguments, env=env)

    def said(self) -> str:
        """Return what all programs there have printed."""
        return "\n".join(log.read_text(errors="replace") for log in sorted(self.folder.glob("*.log")))

    def die(self) -> None:
        """Kill all that runs there."""
        for process in self._running:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class Network:
    """Hosts that reach each other; `here` is this process's own address among them."""

    def __init__(self, folder: Path, *, here: str, number: int | None) -> None:
        self.folder, self.here = folder, here
        self._number = number
        self._hosts: list[Host] = []

    def host(self, name: str) -> Host:
        """Make a host."""
        if self._number is None:
            made = Host(name, "127.0.0.1", self.folder / name, [])
        else:
            address = f"198.18.{self._number}.{len(self._hosts) + 2}"
            space, link = f"mt{self._number}{name}", f"mt{self._number}{name}"
            _ip("netns", "add", space)
            _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", space)
            _ip("link", "set", link, "master", f"mtbr{self._number}", "up")
            _ip("-n", space, "addr", "add", f"{address}/24", "dev", "eth0")
            _ip("-n", space, "link", "set", "eth0", "up")
            _ip("-n", space, "link", "set", "lo", "up")
            # A process table and a name of its own, so that nobody elsewhere can see which of its processes are dead.
            apart = ["unshare", "--pid", "--uts", "--mount", "--fork", "--kill-child", "--mount-proc"]
            named = ["sh", "-c", f'hostname {name}; exec "$@"', "sh"]
            made = Host(name, address, self.folder / name, ["ip", "netns", "exec", space, *apart, *named])
        self._hosts.append(made)
        return made

    def port(self) -> int:
        """Return a port that nobody listens on: any on a host of its own."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            return int(free.getsockname()[1])

    def close(self) -> None:
        """Kill what is left, and take the network down."""
        for host in self._hosts:
            host.die()
            if self._number is not None:
                _ip("netns", "del", f"mt{self._number}{host.name}")


@contextmanager
def folders(folder: Path) -> Iterator[Network]:
    """Give hosts that are folders of this machine."""
    network = Network(folder, here="127.0.0.1", number=None)
    try:
        yield network
    finally:
        network.close()


def why_no_namespaces() -> str:
    """Return why network namespaces cannot be used here; empty when they can."""
    if sys.platform != "linux" or os.getuid() != 0:
        return "network namespaces need Linux and root"
    if not all(map(shutil.which, ("ip", "unshare", "hostname"))):
        return "network namespaces need `ip` (iproute2), `unshare` and `hostname`"
    name = f"mttry{os.getpid()}"[:15]
    tries = (["ip", "link", "add", name, "type", "bridge"], ["ip", "link", "del", name])
    for command in (*tries, ["unshare", "--net", "--pid", "--uts", "--mount", "--fork", "true"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"this system allows no network namespaces: {done.stderr.strip()}"
    return ""


@contextmanager
def namespaces(folder: Path) -> Iterator[Network]:
    """Give hosts that are network namespaces of this machine, joined by a bridge."""
    number = os.getpid() % 250
    for _ in range(250):
        bridge = f"mtbr{number}"
        with suppress(subprocess.CalledProcessError):  # another process has this one
            _ip("link", "add", bridge, "type", "bridge")
            break
        number = (number + 1) % 250
    else:
        raise RuntimeError(
            "no bridge can be made: take those of tests that were killed down (`ip link del mtbr…`)"
        )
    network = Network(folder, here=f"198.18.{number}.1", number=number)
    try:
        _ip("addr", "add", f"{network.here}/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        yield network
    finally:
        network.close()
        _ip("link", "del", bridge)


def _ip(*arguments: Any) -> None:
    subprocess.run(["ip", *map(str, arguments)], check=True, capture_output=True)
