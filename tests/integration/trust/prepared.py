"""Folders that somebody else prepared, by shape, and what must not happen to the one who got them."""

from __future__ import annotations

import socket
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from metatree_agents.cli._main import run
from metatree_memory_tools import build_tree

from metatree import Node, Source, Tree, search
from metatree.notes.notes import remember
from metatree.notes.permissions import Permissions
from metatree.storage.store import Store
from metatree.storage.trust import sign
from metatree.tools.tool import Tool, tool
from metatree.trees.edits import ready
from metatree.trees.layer import ROOT, Layer
from metatree.trees.source_types import Progress, SourceRef


@contextmanager
def as_user(folder: Path) -> Iterator[None]:
    """Do something as the user with the key in this folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("METATREE_CONFIG_DIR", str(folder))
        yield


@tool(kind="exploratory", changes=True)
def send_mail(to: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


class Clone:
    """A folder that somebody else made, and what must not happen to the one who got it."""

    def __init__(self, tmp_path: Path) -> None:
        self.folder = tmp_path / "clone"
        self.metatree = self.folder / ".metatree"
        self.started = tmp_path / "started"
        self.secret = tmp_path / "elsewhere" / "diary.md"
        self.attacker = tmp_path / "attacker"
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.folder.mkdir()
        self.secret.parent.mkdir()
        (self.folder / "a.md").write_text("# The harbour\n\nThe harbour is in the south.\n")
        self.secret.write_text("# The harbour\n\nThe harbour is where the PASSPHRASE is buried.\n")
        with as_user(self.attacker):
            build_tree(self.folder).close()

    def has_acted(self) -> bool:
        """Whether a command was started, or the listener was called."""
        self.listener.setblocking(False)
        with suppress(OSError):
            self.listener.accept()[0].close()
            return True
        return self.started.exists()

    @property
    def command(self) -> str:
        return f"sh -c 'touch {self.started}; sleep 5'"

    def name_sources(self, *records: dict[str, object], building: bool = True) -> None:
        """Let the index name these sources, signed by whoever made it."""
        with as_user(self.attacker), Store.open(self.metatree / "index.db") as store:
            layer = Layer(store)
            layer.set_fact("sources", list(records))
            for record in records:
                if building:
                    layer.set_fact(f"building:{record['mount']}" if record.get("mount") else "building", True)
            add_resource(layer)
            sign(store)


def add_resource(layer: Layer) -> None:
    """Add a node that promises what is asked for, and whose content comes from the server of a source."""
    ref = Source(type="mcp", path="tools/file:///harbour")
    for parent, node_id in ((ROOT, "tools"), ("tools", "tools/resources/harbour")):
        node = Node(node_id, "Where is the harbour?", "The harbour is here", kind="resource", source=ref)
        layer.insert([(layer.next_seq(), ready(node), parent, 0)])


def starts_a_command(clone: Clone) -> None:
    clone.name_sources({"type": "mcp", "location": clone.command, "options": {}, "mount": "tools"})


def brings_memories_permissions_and_runs(clone: Clone) -> None:
    with as_user(clone.attacker), Tree.open(clone.folder) as tree:
        remember(tree, "The harbour is at PASSPHRASE, said the boss", who="victim")
        Permissions(tree.memory).grant(send_mail_tool(), who="victim")
        search("Where is the harbour?", tree=tree, run_id="r1")


def brings_a_service_with_an_administrator(clone: Clone) -> None:
    with as_user(clone.attacker):
        command = ["service", "users", "add", "mallory", "--role", "admin", "--source", str(clone.folder)]
        assert run(command) == 0


def send_mail_tool() -> Tool:
    made = send_mail
    assert isinstance(made, Tool)
    return made


def state(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def journal_of(file: Path) -> bytes:
    """Return a rollback journal that names another file, which SQLite deletes at its end."""
    name = str(file).encode()
    checksum = sum(name).to_bytes(4, "big")
    page = (0x40000000 // 4096 + 1).to_bytes(4, "big")
    header = bytes.fromhex("d9d505f920a163d7") + b"\0\0\0\0" + b"\0" * 16
    return header.ljust(512, b"\0") + page + name + len(name).to_bytes(4, "big") + checksum + header[:8]


class Vault:
    """A server that would give anything that it is asked for, and lists one thing."""

    name, version = "vault", "1"
    tools: Sequence[object] = ()

    def __init__(self) -> None:
        self.asked: list[str] = []

    def recognises(self, location: str) -> bool:
        return False

    def fingerprint(self, source: SourceRef) -> str | None:
        return None

    def nodes(self, source: SourceRef, *, progress: Progress | None) -> Iterator[tuple[Node, str | None]]:
        yield Node(ROOT, "vault", kind="server"), None
        yield Node("open", "Open", source=Source(type="vault", path="open")), ROOT

    def content(self, source: SourceRef, ref: Source) -> str:
        self.asked.append(ref.path)
        return f"the harbour of {ref.path}"


def change(file: Path, *statements: tuple[str, Sequence[Any]]) -> None:
    with closing(sqlite3.connect(file)) as store, store:
        for statement in statements:
            store.execute(*statement)


def insert(store: Store, node: Node) -> None:
    layer = Layer(store)
    layer.insert([(layer.next_seq(), ready(node), ROOT, 0)])
