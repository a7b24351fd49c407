"""Who follows a page of the docs: a shell in a folder of its own that keeps its variables and where it is, and one
server at a time."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

from metatree_agents.listening import listen

_OUT = "%{stderr}CAME %{http_code} %{method} %{url}\\n"
CURL = f'curl() {{ command curl --silent --show-error --write-out "{_OUT}" "$@"; }}'


def blocks_of(page: Path) -> list[str]:
    """Return the lines of each block of shell commands."""
    return re.findall(r"^```sh\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)


class Reader:
    """Runs the blocks of a page; what is at port 8080 there is at a free one here.

    Args:
        folder: where it begins; its home, too.
    """

    def __init__(self, folder: Path) -> None:
        with listen("127.0.0.1", 0) as free:
            self.port: int = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.printed = ""
        """What the last block printed."""
        self.said = folder / "said"
        """What the server says."""
        self._folder = folder
        self._server: subprocess.Popen[bytes] | None = None
        path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
        self._env = {"PATH": path, "HOME": str(folder), "METATREE_CACHE_DIR": str(folder / "cache")}

    def run(self, lines: str) -> list[tuple[int, str, str]]:
        """Run lines in a shell, each of which has to succeed; return (status, method, path) of each request."""
        lines = lines.replace("http://127.0.0.1:8080", self.url)
        state = (
            f'[ -f state ] && . ./state; cd "${{HERE:-.}}"; set -aeE\n{CURL}\n{lines}\n'
            "HERE=$PWD; set +a; unset -f curl; export -p > ~/state"
        )
        done = subprocess.run(
            ["bash", "-c", state],
            cwd=self._folder,
            env=self._env,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        came = re.findall(r"^CAME (\d+) (\w+) (\S+)$", done.stderr, re.M)
        assert done.returncode == 0, done.stderr + done.stdout
        assert len(came) == len(re.findall(r"(?:^|\()curl ", lines, re.M)), done.stderr + done.stdout
        of_curl = not re.search("metatree|^python ", lines, re.M)  # which say what they do
        assert not re.search(r"(?m)^(?!CAME )\S" if of_curl else r"(?m)^metatree:", done.stderr), done.stderr
        self.printed = done.stdout
        return [(int(status), method, urlsplit(url).path) for status, method, url in came]

    def serve(self, command: str) -> None:
        """Start a server in the place of the one that runs."""
        self.stop()
        with self.said.open("wb") as out:
            self._server = subprocess.Popen(
                [*command.split(), "--port", str(self.port)],
                cwd=self._folder,
                env=self._env,
                stdout=out,
                stderr=out,
            )
        while b"listening on" not in self.said.read_bytes():
            assert self._server.poll() is None, self.said.read_text()
            threading.Event().wait(0.1)

    def stop(self) -> None:
        """Stop the server that runs."""
        if self._server is not None:
            self._server.terminate()
            self._server.wait(60)

    def follow(self, block: str) -> list[tuple[int, str, str]]:
        """Do what a block says; return the requests that it made."""
        own = [line for line in block.splitlines(True) if not line.startswith(("metatree serve ", "pip "))]
        came = self.run("".join(own))
        for command in re.findall(r"^metatree serve .*$", block, re.M):
            self.serve(command)
        return came
