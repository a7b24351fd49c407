"""`metatree doctor`: is everything there that a search needs?"""

from __future__ import annotations

import os
import platform
import sqlite3
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from metatree.errors import MetatreeError
from metatree.storage.store_files import check_files
from metatree.version import RELEASE
from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FAILED, FOUND
from metatree_agents.cli.commands._checks import Bad, checked, disk, line, nearest_folder
from metatree_agents.cli.commands._trees import TreeOptions, has_tree

_PACKAGES = ("pydantic", "openai", "instructor", "networkx", "diskcache", "numpy", "PyStemmer", "wordllama")
_KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "METATREE_MODEL", "METATREE_ROUTER")


def doctor(
    *,
    where: TreeOptions,
    router: options.Router = None,
    json: options.Json = False,
) -> int:
    """Check the installation and the tree: versions, embedded model, SQLite, tree, disk, keys, agent hosts.

    A language model that --router or the environment names is asked one small question; the one of --router is tried
    on ten known menus and three known passages besides, which takes some 13 requests. Keys are named, their values
    never shown.

    \b
    Example: metatree doctor --source ~/src/requests
    """
    place = where.place()
    checks = [
        checked("python", _python),
        checked("packages", _packages),
        checked("files read", _file_types),
        checked("web and servers", _outside),
        checked("embedded router", _embedded),
        checked("sqlite", lambda: _sqlite(place)),
        checked("tree", lambda: _tree(place)),
        checked("disk", lambda: disk(place)),
        checked("keys", _keys),
        checked("language model", lambda: _model(router)),
        *(
            [checked("model self-test", lambda: _self_test(router))]
            if router not in (None, "embedded", "human")
            else ()
        ),
        checked("agent hosts", _hosts),
    ]
    ok = all(check.ok for check in checks)
    if json:
        output.write_json("doctor", {"ok": ok, "checks": checks})
    else:
        output.write(line(check) for check in checks)
    return FOUND if ok else FAILED


def _python() -> str:
    return f"metatree {RELEASE}, Python {platform.python_version()} on {platform.system()}"


def _packages() -> str:
    present, missing = [], []
    for name in _PACKAGES:
        try:
            present.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        raise Bad(f"not installed: {', '.join(missing)}; run `pip install --force-reinstall metatree-memory`")
    return ", ".join(present)


def _file_types() -> str:
    """Say which kinds of files become more than plain text, and which extras would add to them."""
    from metatree_memory_tools.code.languages.code import installed, missing

    languages = sorted({language.name for language in installed()})
    read = ["Python", "Markdown", "reStructuredText", "docx", *languages]
    office = {"xlsx": "openpyxl", "odt": "odfdo"} | dict.fromkeys(("pptx", "EPUB", "notebooks"), "markitdown")
    advice = ""
    for extra, documents in (("docs", {"PDF": "pypdfium2", "HTML": "selectolax"}), ("office", office)):
        lacking = [name for name, package in documents.items() if find_spec(package) is None]
        read += [name for name in documents if name not in lacking]
        if lacking:
            advice += f"; `pip install 'metatree-memory[{extra}]'` to read {' and '.join(lacking)}"
    text = f"outlines of {', '.join(read)}{advice}"
    for extra, names in missing().items():
        text += (
            f"; `pip install 'metatree-memory[{extra}]'` for outlines of {', '.join(names)}, now plain text"
        )
    return text


def _outside() -> str:
    """Say which sources besides files can be read, which extras would add to them, and what searches the web."""
    from metatree_memory_tools.web.chromium import VARIABLE, has_chromium
    from metatree_memory_tools.web.search import VARIABLE as ENGINE

    needed = {
        "web pages": ("selectolax", "web"),
        "MCP servers": ("mcp", "mcp"),
        "OpenAPI descriptions": ("jsonschema", "openapi"),
    }
    readable = [name for name, (package, _) in needed.items() if find_spec(package) is not None]
    parts = [f"reads {', '.join(readable)}" if readable else "reads none of them"]
    for name, (_, extra) in needed.items():
        if name not in readable:
            parts.append(f"`pip install 'metatree-memory[{extra}]'` for {name}")
    if not has_chromium():
        parts.append(f"no Chromium for screenshots: apt install chromium, or name one in {VARIABLE}")
    engine = os.environ.get(ENGINE)
    parts.append(
        f"searches the web with {engine}" if engine else f"does not search the web: {ENGINE} is not set"
    )
    return "; ".join(parts)


def _embedded() -> str:
    from metatree import Node, Tree
    from metatree.parts import find_evidence

    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, Tree.create(Path(folder) / "doctor.db") as tree:
        tree.add(Node(id="login", title="login", description="Check a password", content="def login(): ..."))
        tree.add(Node(id="draw", title="draw", description="Draw a circle", content="def draw(): ..."))
        evidence = find_evidence(tree, required=True)
        best = evidence.score(["Where is the password checked?"], k=1) if evidence else []
    if not best or best[0].node_id != "login":
        raise Bad(
            "loads, but ranks a trivial example wrong; run `pip install --force-reinstall metatree-memory wordllama`"
        )
    return f"loads and ranks in {time.monotonic() - began:.1f} s"


def _sqlite(place: Path) -> str:
    """Write-ahead logging needs shared memory, which some network file systems lack: try it where the tree lives."""
    check_files(place / "index.db" if place.is_dir() else place)
    folder = nearest_folder(place)
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".metatree-doctor-") as inside:
            connection = sqlite3.connect(Path(inside) / "try.db")
            try:
                mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
                connection.execute("CREATE VIRTUAL TABLE t USING fts5(x)")
            finally:
                connection.close()
    except OSError as error:
        raise Bad(
            f"nothing can be written in {str(folder)!r} ({error.strerror or error}): make it writable, or keep the"
            " tree elsewhere with --tree"
        ) from error
    if mode != "wal":
        raise Bad(
            f"no write-ahead log in {str(folder)!r} (a network disk?): keep the tree elsewhere with --tree"
        )
    return f"SQLite {sqlite3.sqlite_version} with write-ahead log"


def _tree(place: Path) -> str:
    if not has_tree(place):
        return f"none at {str(place)!r} yet; the first search builds it"
    from metatree import Tree

    with Tree.open(place) as tree:
        state = "stale: the next search refreshes it" if tree.stale() else "up to date"
        info = tree.info()
        size_mb = (info["index_bytes"] + info["memory_bytes"]) / 1e6
        return f"{output.counted(info['nodes'], 'node')}, {info['omissions']:,} left out, {size_mb:.1f} MB, {state}"


def _keys() -> str:
    present = [name for name in _KEYS if os.environ.get(name)]
    return f"set: {', '.join(present)}" if present else "none set; the embedded router needs none"


def _model(router: str | None) -> str:
    """Ask the model one small question, as a search would."""
    from metatree_agents.cli.commands._search import router_of_environment

    named, _, model = (router or router_of_environment() or "").partition("/")
    if router is not None and named not in ("openai", "embedded", "human"):
        return "asked in the self-test"
    if named != "openai":
        return "none named: use --router openai/MODEL, or METATREE_MODEL; OPENAI_BASE_URL for your own server"
    from metatree_routers.llm.check import check_model

    try:
        return check_model(model or None)
    except MetatreeError as error:
        raise Bad(str(error)) from error


def _self_test(router: str) -> str:
    """Ask the model about ten known menus and three known passages."""
    from metatree_routers.self_test import self_test

    from metatree.parts import suite_named

    try:
        return self_test(suite_named(router)).line()
    except MetatreeError as error:
        raise Bad(str(error)) from error


def _hosts() -> str:
    """Say which hosts start the server for all projects or for the current folder, and which could."""
    from metatree_agents.hosts.install import detected, state
    from metatree_agents.hosts.table import HOSTS

    try:
        Path.home()
    except RuntimeError as error:
        raise Bad("this user has no home, where hosts keep their settings: set HOME") from error
    rows, without = [], []
    for name, host in HOSTS.items():
        try:
            levels = state(host, Path.cwd())
        except ValueError as unreadable:
            rows.append(f"{name} ({unreadable})")
            continue
        if levels:
            said = [
                level if ours else f"{level}: not as `install` writes it" for level, ours in levels.items()
            ]
            rows.append(f"{name} ({', '.join(said)})")
        elif name in detected():
            without.append(name)
    text = f"set up: {', '.join(rows)}" if rows else "none set up"
    return f"{text}; `metatree install {' '.join(without)}` adds it there" if without else text
