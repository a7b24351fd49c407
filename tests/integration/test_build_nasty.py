"""Sources that are not nice: each thing becomes a node that says so, or an omission with its reason."""

import os
import random
import socket
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from metatree_memory_tools import build_tree
from metatree_memory_tools.build._scan import OF_MEMORY
from metatree_memory_tools.node_ids import NOTED_CONVERSATIONS

from metatree.errors import StaleSource, UserError
from metatree.node import Node, Source
from metatree.notes import placement, wishes
from metatree.notes.notes import remember
from metatree.trees.source_files import read_inside
from metatree.trees.tree import Tree

pytestmark = pytest.mark.integration


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "ok.py").write_text("def f(): 'Do it.'\n")
    return folder


def built(source: Path, **options: Any) -> tuple[dict[str, Node], dict[str, str]]:
    with build_tree(source, **options) as tree:
        omissions = dict(tree.omissions())
        nodes = {node.id: node for _, node in tree.walk()}
        for node in nodes.values():
            if node.has_content:
                assert isinstance(tree.content(node), str)
    with build_tree(source, **options) as again:  # what was omitted is known, too
        assert not again.stale()
        assert dict(again.omissions()) == omissions
    assert "ok.py::f" not in nodes or nodes["ok.py::f"].description == "def f() — Do it."
    return nodes, omissions


def test_links_that_loop_lead_out_or_lead_nowhere(source: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("private")
    (source / "deep").mkdir()
    (source / "deep" / "loop").symlink_to(source)
    (source / "self").symlink_to("self")
    (source / "out").symlink_to(tmp_path / "outside.txt")
    (source / "up").symlink_to(tmp_path)
    (source / "broken").symlink_to("nothing")
    (source / "same.py").symlink_to("ok.py")
    nodes, omissions = built(source)
    assert set(nodes) == {".", "ok.py"} or set(nodes) == {".", "ok.py", "ok.py::f"}
    assert "out of the source" in omissions["out"] and "out of the source" in omissions["up"]
    assert "nowhere" in omissions["broken"] and "symbolic link" in omissions["self"]
    assert omissions["same.py"] == "a symbolic link to ok.py"
    assert omissions["deep/loop"].startswith("a symbolic link")
    assert omissions["deep"] == "nothing in it can be read"


def test_pipes_and_sockets(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(source / "pipe.py")
    monkeypatch.chdir(source)  # the path of a socket has to be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock.py")
        _, omissions = built(source)
    assert omissions == {"pipe.py": "a pipe, not a file", "sock.py": "a socket, not a file"}


def test_binary_files_and_pictures_are_left_out(source: Path) -> None:
    (source / "a.bin").write_bytes(b"\x7fELF\0\0\0")
    (source / "fake.py").write_bytes(b"x = 1\0\0")
    (source / "i.svg").write_text("<svg></svg>")
    (source / "img").mkdir()
    (source / "img" / "x.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    nodes, omissions = built(source)
    assert omissions == {
        "a.bin": "a binary file", "fake.py": "a binary file", "i.svg": "a picture",
        "img": "nothing in it can be read", "img/x.png": "a binary file",
    }  # fmt: skip
    assert "img" not in nodes and "img" not in nodes["."].description


def test_a_huge_chat_says_what_reads_it(source: Path) -> None:
    """Of plain text a type reads no more than is looked through for keys in little memory."""
    line = "02/05/2024, 10:31 - Ann: The harbour is closed \U0001f600\n"
    (source / "WhatsApp Chat with Bob.txt").write_text(line * 400_000)
    nodes, omissions = built(source)
    note = omissions["WhatsApp Chat with Bob.txt"]
    assert "the limit is 20.0 MB" in note and "`metatree build chats:FILE` reads it piece by piece" in note
    assert note in nodes["WhatsApp Chat with Bob.txt"].description


def test_huge_files_are_nodes_that_say_so(source: Path) -> None:
    (source / "data.txt").write_text("x" * 5000)
    (source / "data.bin").write_bytes(b"\0" * 5000)
    nodes, omissions = built(source, max_file_bytes=1000)
    assert not nodes["data.txt"].has_content and "too large" in nodes["data.txt"].description
    assert "too large" in omissions["data.txt"] and omissions["data.bin"] == "a binary file"
    nodes, omissions = built(source, max_file_bytes=10_000)
    assert nodes["data.txt"].has_content and "data.txt" not in omissions
    nodes, omissions = built(source, max_file_bytes=1000)
    assert not nodes["data.txt"].has_content and "data.txt" in omissions


def test_secrets_are_left_out_unless_asked_for(source: Path) -> None:
    for name in (".env", "server.pem", "id_rsa", ".env.example"):
        (source / name).write_text("TOKEN=abc\n")
    nodes, omissions = built(source)
    assert {".env", "server.pem", "id_rsa"} == omissions.keys() and ".env.example" in nodes
    nodes, omissions = built(source, include_secrets=True)
    assert ".env" in nodes and omissions == {}
    nodes, omissions = built(source)
    assert ".env" not in nodes


def test_what_git_ignores_is_left_out(source: Path) -> None:
    (source / ".gitignore").write_text("*.log\nbuild/\n!keep.log\n")
    (source / "pkg" / "build").mkdir(parents=True)
    (source / "pkg" / "build" / "x.py").write_text("x = 1")
    (source / "pkg" / ".gitignore").write_text("!a.log\nlocal.py\n")
    for name in ("a.log", "keep.log", "pkg/a.log", "pkg/b.log", "pkg/local.py", "pkg/x.py"):
        (source / name).write_text("hello = 1\n")
    nodes, omissions = built(source)
    assert {"keep.log", "pkg/a.log", "pkg/x.py"} <= nodes.keys()
    assert omissions == dict.fromkeys(
        ("a.log", "pkg/b.log", "pkg/local.py", "pkg/build"), "ignored by .gitignore"
    )
    (source / ".gitignore").write_text("")
    nodes, omissions = built(source)
    assert "pkg/build/x.py" in nodes and omissions == {"pkg/local.py": "ignored by .gitignore"}


def test_rules_of_the_repository_around_the_source_count(source: Path) -> None:
    top = source.parent
    (top / ".git" / "info").mkdir(parents=True)
    (top / ".git" / "info" / "exclude").write_text("mine.py\n")
    (top / ".gitignore").write_text("/app/gen/\n*.tmp\n")
    (source / "gen").mkdir()
    for name in ("gen/x.py", "a.tmp", "mine.py"):
        (source / name).write_text("x = 1\n")
    _, omissions = built(source)
    assert omissions.keys() == {"gen", "a.tmp", "mine.py"}
    (top / ".gitignore").write_text("/app/\n")
    nodes, _ = built(source)
    assert "ok.py" in nodes


def test_a_work_tree_of_git_is_like_any_other(source: Path) -> None:
    real = source.parent / "real.git"
    (real / "worktrees" / "app").mkdir(parents=True)
    (real / "info").mkdir()
    (real / "info" / "exclude").write_text("mine.py\n")
    (real / "worktrees" / "app" / "commondir").write_text("../..\n")
    (real / "worktrees" / "app" / "gitdir").write_text(f"{source}/.git\n")
    (source / ".git").write_text(f"gitdir: {real}/worktrees/app\n")
    (source / "mine.py").write_text("x = 1\n")
    nodes, omissions = built(source)
    assert ".git" not in nodes and ".git" not in omissions
    assert omissions == {"mine.py": "ignored by .gitignore"}
    (real / "worktrees" / "app" / "gitdir").write_text("/elsewhere/.git\n")  # the work tree of somebody else
    (source / ".metatree" / "index.db").unlink()
    assert built(source)[1] == {}


def test_folders_that_tools_make_and_empty_ones(source: Path) -> None:
    (source / "__pycache__").mkdir()
    (source / "env" / "lib").mkdir(parents=True)
    (source / "env" / "pyvenv.cfg").write_text("")
    (source / "empty" / "inner").mkdir(parents=True)
    nodes, omissions = built(source)
    assert omissions == {
        "__pycache__": "made by tools", "env": "a virtual environment", "empty/inner": "an empty folder",
        "empty": "nothing in it can be read",
    }  # fmt: skip
    assert "empty" not in nodes


def test_names_that_are_not_utf8(source: Path) -> None:
    raw = os.fsencode(source) + b"/caf\xe9"
    os.mkdir(raw)
    with open(raw + b"/m\xff.py", "wb") as stream:
        stream.write(b"def g(): 'Go.'\n")
    with open(os.fsencode(source) + b"/t\xff.txt", "wb") as stream:
        stream.write(b"hello")
    (source / "t\\xff.txt").write_text("another file whose name looks the same")
    nodes, omissions = built(source)
    assert nodes["caf\\xe9/m\\xff.py::g"].description == "def g() — Go."
    assert "t\\xff.txt" in nodes and list(omissions) == ["t\\xff.txt (2)"]
    with Tree.open(source) as tree:
        assert tree.content("caf\\xe9/m\\xff.py::g") == "def g(): 'Go.'"


def test_names_with_odd_characters(source: Path) -> None:
    names = [
        "a b.py",
        "new\nline.py",
        "-rf.py",
        "quote'\".py",
        "ünï.py",
        "a#b.md",
        "x::y.py",
        "%s.py",
        "tab\t.txt",
        "\x1b[31m.txt",
    ]
    for name in names:
        (source / name).write_text(
            "def g(): 'Go.'\n" if name.endswith(".py") else "# A\n\n## B\nx\n\n## C\ny\n"
        )
    nodes, _ = built(source)
    assert set(names) <= nodes.keys()
    assert all(node.title.isprintable() for node in nodes.values())


def test_a_file_that_is_named_like_a_part_of_another(source: Path) -> None:
    (source / "a.md").write_text("# A\n\n## b\nx\n\n## c\ny\n")
    (source / "a.md#b").write_text("a file\n")
    nodes, _ = built(source)
    ids = {node_id for node_id in nodes if node_id.startswith("a.md")}
    assert ids == {"a.md", "a.md#b", "a.md#b~", "a.md#c"}
    with Tree.open(source) as tree:
        assert tree.content("a.md#b") == "a file\n" and tree.content("a.md#b~") == "## b\nx\n"
    (source / "a.md#b").unlink()
    nodes, _ = built(source)
    assert {node_id for node_id in nodes if node_id.startswith("a.md")} == {"a.md", "a.md#b", "a.md#c"}
    (source / "a.md#b").write_text("a file\n")
    nodes, _ = built(source)
    assert {node_id for node_id in nodes if node_id.startswith("a.md")} == ids


@pytest.mark.parametrize(
    ("files", "ids"),
    [
        ({"a.md": "# A\n\na\n\n## b\nx\n", "a.md#b": "f", "a.md#b~": "g"}, {"a.md#b", "a.md#b~", "a.md#b~~"}),
        ({"a.md": "# A\n\na\n\n## b\nx\n", "a.md#b/c.txt": "f"}, {"a.md#b", "a.md#b/c.txt", "a.md#b~"}),
        ({"p.py": "class f:\n    x = 1\n", "p.py::f/c.txt": "f"}, {"p.py::f", "p.py::f/c.txt", "p.py::f~"}),
        (
            {"t.csv": "b,b~\n1,2\n", "t.csv#table/b": "f"},
            {"t.csv#table", "t.csv#table/b", "t.csv#table/b~", "t.csv#table/b~~"},
        ),
    ],
)
def test_whatever_is_named_like_a_part_has_its_name(
    files: dict[str, str], ids: set[str], source: Path
) -> None:
    """A few files of a few bytes ended each command, since two nodes had one id."""
    for name, text in files.items():
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_text(text)
    nodes, _ = built(source)
    assert ids <= nodes.keys()
    assert nodes == built(source)[0]
    for name in files:
        (source / name).write_text(files[name] + "\n")
    assert ids <= built(source)[0].keys()


def test_a_path_of_thousands_of_characters_is_left_out(source: Path) -> None:
    """It is in the id of each node: 12,000 files of 7 bytes below such folders took gigabytes."""
    deep = source / "/".join(["d" * 200] * 4)
    deep.mkdir(parents=True)
    (deep / ("e" * 100 + ".md")).write_text("# A\n")
    (deep / ("f" * 250 + ".md")).write_text("# B\n")
    nodes, omissions = built(source)
    assert any("e" * 100 in node_id for node_id in nodes) and not any("f" * 100 in one for one in nodes)
    assert set(omissions.values()) == {"a path of more than 1,000 characters"}


def test_a_folder_is_not_the_branch_of_memories(source: Path) -> None:
    """It would be the parent of what is remembered, and be described by whoever made it."""
    assert {placement.BRANCH, wishes.BRANCH, NOTED_CONVERSATIONS} < {*OF_MEMORY}
    with Tree.create(":memory:") as tree:
        assert remember(tree, "The key is under the pot.").node.id.startswith(OF_MEMORY)
    for name in OF_MEMORY:
        (source / name).mkdir()
        (source / name / "a.md").write_text("# A\n")
        (source / f"{name}b.md").write_text("# B\n")
    nodes, omissions = built(source)
    assert not any(node_id.startswith(OF_MEMORY) for node_id in nodes)
    assert omissions.keys() == {*OF_MEMORY, *(f"{name}b.md" for name in OF_MEMORY)}


def test_python_that_does_not_parse_says_so(source: Path) -> None:
    (source / "bad.py").write_text("def f(:\n    pass\n")
    (source / "deep.py").write_text("x = " + "(" * 500 + ")" * 500)
    (source / "nul.py").write_bytes(b"x" * 9000 + b"\0\0\n")
    nodes, omissions = built(source)
    assert nodes["bad.py"].has_content and "not valid Python" in nodes["bad.py"].attributes["note"]
    assert {"bad.py", "deep.py", "nul.py"} == omissions.keys()
    (source / "bad.py").write_text("def f():\n    pass\n")
    nodes, omissions = built(source)
    assert "bad.py" not in omissions and "note" not in nodes["bad.py"].attributes


def test_encodings(source: Path) -> None:
    for name, data in {
        "latin.txt": "Müller".encode("latin-1"),
        "utf16.txt": "Müller".encode("utf-16"),
        "bom.md": "\ufeff# Müller\n".encode(),
        "cookie.py": "# coding: cp1252\ndef f(): 'Müller.'\n".encode("cp1252"),
    }.items():
        (source / name).write_bytes(data)
    nodes, _ = built(source)
    with Tree.open(source) as tree:
        for name in ("latin.txt", "utf16.txt", "bom.md", "cookie.py::f"):
            assert "Müller" in tree.content(name), name
            assert "Müller" in nodes[name].description


def test_random_bytes_never_break_a_build(source: Path) -> None:
    rng = random.Random(7)
    for number in range(60):
        data = rng.randbytes(rng.randrange(400))
        if number % 2:
            data = data.replace(b"\0", b"x")
        for end in ("py", "md", "txt"):
            (source / f"r{number}.{end}").write_bytes(data)
    with build_tree(source) as tree:
        known = set(tree.ids(["file"])) | {path for path, _ in tree.omissions()}
        assert {f"r{number}.{end}" for number in range(60) for end in ("py", "md", "txt")} <= known


def test_very_deep_folders(source: Path) -> None:
    place = os.fsencode(source)
    os.chdir(place)
    try:
        for _ in range(300):
            os.mkdir("d")
            os.chdir("d")
        with open("x.py", "w") as stream:
            stream.write("x = 1\n")
    finally:
        os.chdir("/")
    _, omissions = built(source)
    assert any("deep" in reason for reason in omissions.values())


def test_a_very_wide_folder(source: Path) -> None:
    for number in range(2000):
        (source / f"f{number}.txt").write_text(f"file {number}")
    nodes, _ = built(source)
    assert len(nodes) >= 2001 and len(nodes["."].description) <= 300


def run_as_nobody(source: Path, code: str) -> str:
    """Run code as a user who may read less than root; return its output."""
    for folder in (source, *source.parents):
        folder.chmod(folder.stat().st_mode | stat.S_IXOTH | stat.S_IROTH)
        if folder.name.startswith("pytest-of"):
            break
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgid(65534)
            os.setuid(65534)
            os.write(write, str(eval(code)).encode())
            os._exit(0)
        except BaseException as exc:
            os.write(write, f"{type(exc).__name__}: {exc}".encode())
        os._exit(1)
    os.close(write)
    with open(read, "rb") as stream:
        said = stream.read().decode()
    os.waitpid(child, 0)
    return said


@pytest.mark.skipif(sys.platform == "win32" or os.getuid() != 0, reason="needs root to become somebody else")
def test_what_may_not_be_read_is_told(source: Path, tmp_path: Path) -> None:
    (source / "shut").mkdir()
    (source / "shut" / "x.py").write_text("x = 1\n")
    (source / "shut").chmod(0)
    (source / "secret.py").write_text("x = 1\n")
    (source / "secret.py").chmod(0)
    out = tmp_path / "out"
    out.mkdir()
    out.chmod(0o777)
    said = run_as_nobody(
        source,
        f"__import__('metatree_memory_tools').build_tree({str(source)!r}, out={str(out)!r}).omissions()",
    )
    assert "('secret.py', 'cannot be read: Permission denied')" in said
    assert "('shut', 'cannot be read: Permission denied')" in said
    with Tree.open(out, trust=True) as tree:
        assert tree.find("ok.py") is not None
    said = run_as_nobody(source, f"__import__('metatree_memory_tools').build_tree({str(source)!r})")
    assert said.startswith("UserError: cannot make the folder") and "out" in said


@pytest.mark.skipif(sys.platform == "win32" or os.getuid() != 0, reason="needs root to become somebody else")
@pytest.mark.parametrize("added", [True, False])
def test_a_tree_that_cannot_be_written_can_be_read(source: Path, added: bool) -> None:
    with build_tree(source) as tree:
        if added:
            tree.add(Node(id="note", title="note"))
            tree.add(Node(id="gone", title="gone"))
            tree.delete("gone")
    if not added:
        (source / ".metatree" / "memory.db").unlink()
    (source / ".metatree").chmod(0o755)
    for file in (source / ".metatree").iterdir():
        file.chmod(0o644)
    before = {path.name: path.read_bytes() for path in (source / ".metatree").iterdir()}
    opened = f"__import__('metatree').Tree.open({str(source)!r})"
    said = run_as_nobody(source, f"(lambda t: ([n.id for _, n in t.walk()], t.stale(), t.close()))({opened})")
    notes = ", 'note'" if added else ""
    assert said == f"(['.', 'ok.py', 'ok.py::f'{notes}], False, None)"
    said = run_as_nobody(source, f"{opened}.add(__import__('metatree').Node(id='x', title='x'))")
    assert said.startswith("UserError") and "can only be read" in said and "--tree" in said
    (source / "more.py").write_text("x = 1\n")
    for code in (f"{opened}.refresh()", f"__import__('metatree_memory_tools').build_tree({str(source)!r})"):
        said = run_as_nobody(source, code)
        assert (
            said.startswith("UserError")
            and "can only be read, since its folder cannot be written" in said
            and "--tree" in said
        )
    assert {path.name: path.read_bytes() for path in (source / ".metatree").iterdir()} == before


def test_a_folder_that_cannot_be_read_while_it_is_walked(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "pkg").mkdir()
    (source / "pkg" / "x.py").write_text("x = 1\n")
    real = os.scandir

    def scandir(path: Any) -> Any:
        if not isinstance(path, int) and os.fsdecode(path).endswith("pkg"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    nodes, omissions = built(source)
    assert omissions == {"pkg": "cannot be read: Permission denied"} and "pkg" not in nodes


def test_nothing_outside_of_the_source_is_ever_read(source: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("private")
    (source / "link.txt").symlink_to(tmp_path / "outside.txt")
    os.mkfifo(source / "pipe")
    with build_tree(source) as tree:
        for number, path in enumerate(
            [
                "../outside.txt",
                str(tmp_path / "outside.txt"),
                "x/../../outside.txt",
                "link.txt",
                "pipe",
                ".",
                "/etc/passwd",
            ]
        ):
            tree.add(Node(f"n{number}", "x", source=Source(path=path)))
            with pytest.raises((UserError, StaleSource)):
                tree.content(f"n{number}")


def test_links_of_folders_are_followed_inside_and_never_out(tmp_path: Path) -> None:
    for folder in ("root/docs", "away"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.md").write_text(folder)
    (tmp_path / "root/inside").symlink_to(tmp_path / "root/docs")
    (tmp_path / "root/out").symlink_to(tmp_path / "away")
    (tmp_path / "link").symlink_to(tmp_path / "root")
    root = tmp_path / "root"
    assert read_inside(root, "docs/a.md")[0] == read_inside(root, "inside/a.md")[0] == b"root/docs"
    for path in ("out/a.md", "docs/../../away/a.md", "../away/a.md", str(tmp_path / "away/a.md"), ""):
        with pytest.raises(UserError, match="lies outside"):
            read_inside(root, path)
    if hasattr(os, "O_PATH"):  # the folder itself is named without links: one came later
        with pytest.raises(UserError, match="lies outside"):
            read_inside(tmp_path / "link", "docs/a.md")


def test_a_file_that_became_a_link_is_not_followed_out(source: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text("def f(): 'Do it.'\n")
    with build_tree(source) as tree:
        (source / "ok.py").unlink()
        (source / "ok.py").symlink_to(tmp_path / "outside.py")
        with pytest.raises(UserError, match="outside"):
            tree.content(next(node.id for _, node in tree.walk() if node.has_content))


def test_sources_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "file.py").write_text("x = 1")
    places: list[tuple[str | Path, str]] = [
        (tmp_path / "nothing", "does not exist"),
        ("ftp://example.org/x", "is an address"),
    ]
    for source, words in places:
        with pytest.raises(UserError, match=words):
            build_tree(source)
    (tmp_path / "src").mkdir()
    with pytest.raises(UserError, match="cannot make"):
        build_tree(tmp_path / "src", out=tmp_path / "file.py")
    with build_tree(tmp_path / "src") as tree:
        assert len(tree) == 1 and tree.children() == []


def test_what_is_no_path_and_no_node_is_told(source: Path) -> None:
    nothing: Any = None
    with pytest.raises(UserError, match="takes the path of a tree"):
        Tree.open(nothing)
    with pytest.raises(UserError, match="takes paths, addresses and sources"):
        build_tree(nothing)
    fields: Any = {"id": "x"}
    with build_tree(source) as tree, pytest.raises(UserError, match="a tree holds nodes, not dict"):
        tree.add(fields)


def test_a_tree_kept_elsewhere_in_the_source_is_not_part_of_itself(source: Path) -> None:
    with build_tree(source, out=source / "cache") as tree:
        assert not any("cache" in node.id for _, node in tree.walk())
        tree.refresh()
        assert not any("cache" in node.id for _, node in tree.walk())


def test_a_tree_kept_in_its_very_source_reads_none_of_its_own_files(source: Path) -> None:
    (source / "a.md").write_text("# A\n\nAnts.\n")
    build_tree(source, out=source).close()
    with build_tree(source, out=source) as tree:
        assert [found.type for found in tree.sources()] == ["folder"]
        tree.add(Node("note", "A note"))
        tree.refresh()
        assert "a.md" in tree and not any(".db" in node.id or "lock" in node.id for _, node in tree.walk())
        assert not any(".db" in path or "lock" in path for path, _ in tree.omissions())
