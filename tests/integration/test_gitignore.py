"""Patterns of `.gitignore` as git itself matches them, and in a time that no pattern can make long."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from metatree_memory_tools import build_tree
from metatree_memory_tools.build._scan import _Walk, scan
from metatree_memory_tools.git._gitignore import MOST_RULES, MOST_WILD, Patterns
from metatree_memory_tools.git.ignore import MOST_RULES_BYTES

from tests.profiles import examples

pytestmark = pytest.mark.integration

NAMES = ("a", "b", "ab", "aab", "abb", "a.b", "b-a", "[a]", "a b", "a ", "!a", "#a", "é", "a*b", "]", "A1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with files and folders of these names, three deep."""
    root = tmp_path_factory.mktemp("patterns")
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(["git", "init", "-q"], cwd=root, check=True, env=environment)
    for one in NAMES:
        for two in NAMES[:8]:
            (root / one / two).mkdir(parents=True)
            for three in NAMES[:5]:
                (root / one / two / three).write_text("")
        for number, two in enumerate(NAMES[8:]):
            (root / one / two).write_text("") if number % 2 else (root / one / two).mkdir()
    for one in NAMES[:6]:
        (root / f"{one}{one}.b").write_text("")
    return root


@pytest.fixture(scope="module")
def paths(folder: Path) -> list[tuple[str, bool]]:
    return [
        (path.relative_to(folder).as_posix(), path.is_dir())
        for path in sorted(folder.rglob("*"))
        if ".git" not in path.relative_to(folder).parts
    ]


def by_git(folder: Path, rules: bytes, paths: list[tuple[str, bool]]) -> set[str]:
    (folder / ".git" / "info").mkdir(exist_ok=True)
    (folder / ".git" / "info" / "exclude").write_bytes(rules)
    asked = "\0".join(path for path, _ in paths).encode()
    done = subprocess.run(
        ["git", "-c", "core.excludesFile=/dev/null", "check-ignore", "--no-index", "--stdin", "-z"],
        cwd=folder,
        input=asked,
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return set(done.stdout.decode().split("\0")) - {""}


def by_us(rules: bytes, paths: list[tuple[str, bool]]) -> set[str]:
    patterns = Patterns(rules)
    ignored: set[str] = set()
    for path, is_folder in paths:
        above = path.rpartition("/")[0]
        if above in ignored or patterns.verdict(path, folder=is_folder):
            ignored.add(path)
    return ignored


PIECES = st.sampled_from(
    [
        *"ab*?/[]!-\\# .é^",
        "**",
        "/**/",
        "**/",
        "/**",
        "a*b",
        "[a",
        "[!",
        "[a-b]",
        "[[:alpha:]",
        "[[:x:]]",
        "\\/",
        "*.b",
        "\0",
    ]
)
LINES = st.lists(PIECES, max_size=9).map("".join)


@settings(max_examples=examples(400), suppress_health_check=list(HealthCheck))
@given(st.lists(LINES, max_size=4).map("\n".join))
@example("*\n!a\n!a/\n/a/b/*\n!/a/b/a")
@example("a**/b\n")
@example("**/a/**/b\n!ab\\ \n\\!a\n\\#a\n")
@example("a/**\r\n")
@example("**\\/b")
@example("*[!a-]*\n[]]\n[\\]]\n[^b]?\n")
@example("a\\")
@example("//a\n/\n!\na//\n")
@example("\ufeffa\n")
@example("a\0b\n!b \0\r\n\0\n#\0a\n")
def test_rules_mean_what_git_makes_of_them(folder: Path, paths: list[tuple[str, bool]], rules: str) -> None:
    assert by_us(rules.encode(), paths) == by_git(folder, rules.encode(), paths)


SLOW = [
    "*a" * 12 + "b",
    "*a" * 2_000 + "b",
    "*?" * 120 + "b",
    "**/a" * 200 + "/b",
    "/**/a*/" * 100 + "b",
    "**/*a*a*a*a*a*a*a*a*a*a*a*a*b",
    "**/" * 2_000 + "b",
    "[a-b]*" * 500 + "c",
    "[!c]" * 4_000 + "c",
    "*" * 1_000_000 + "b",
    "*a*a*a*a*b\n" * 10_000,
    "\n".join(f"/x{number}/**/*a*a*a*a*a*a*a*a*a*b" for number in range(10_000)),
    "!" * 100_000,
]


@pytest.mark.parametrize("rules", SLOW, ids=range(len(SLOW)))
def test_no_pattern_takes_long(rules: str) -> None:
    """Each of these took hours or for ever; now it takes what its length takes, and the suite waits for a fault."""
    patterns = Patterns(rules.encode())
    for path in ("a" * 60, "a" * 255, "/".join(["a"] * 2_000), "/".join(["a" * 60] * 60)):
        assert patterns.verdict(path, folder=False) is None


def test_rules_in_every_place_build_in_time(tmp_path: Path) -> None:
    rules = "*a*a*a*a*a*a*a*a*a*a*a*a*b\n" + "**/a/**/a/**/a/**/a/**/a/**/b\n"
    place = tmp_path.joinpath("app", *["a" * 60] * 10)
    place.mkdir(parents=True)
    (place / ("a" * 60)).write_text("text\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path / "app", check=True)
    for name in (
        ".gitignore",
        ".ignore",
        ".gitattributes",
        ".mailmap",
        ".git/info/exclude",
        ".git/info/attributes",
    ):
        (tmp_path / "app" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "app" / name).write_text(rules)
    with build_tree(tmp_path / "app", out=tmp_path / "tree", history=True) as tree:
        assert "/".join(["a" * 60] * 11) in tree


def test_rules_are_followed_under_another_name_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the disk tells no case apart: it lists `.GITIGNORE`, and opens it as `.gitignore`."""
    for name in ("kept.md", "left.log", "in/left.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("text\n")
    for folder, rules in ((tmp_path, "*.log\n"), (tmp_path / "in", "*.txt\n")):
        (folder / ".GITIGNORE").write_text(rules)
    assert {"left.log", "in/left.txt"} <= set(scan(tmp_path).files), "another file, as git has it"
    for folder in (tmp_path, tmp_path / "in"):
        os.link(folder / ".GITIGNORE", folder / ".gitignore")
    listed = _Walk.first

    def first(self: _Walk, entries: Iterable[os.DirEntry[Any]], path: str) -> list[os.DirEntry[Any]]:
        return [entry for entry in listed(self, entries, path) if os.fsdecode(entry.name) != ".gitignore"]

    monkeypatch.setattr(_Walk, "first", first)
    assert set(scan(tmp_path).files) == {".GITIGNORE", "in/.GITIGNORE", "kept.md"}


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True)


def test_below_an_endless_file_of_rules_only_what_git_tracks_is_read(tmp_path: Path) -> None:
    """What stands behind the lines that are followed may leave out what nobody is to see."""
    (tmp_path / ".gitignore").write_text("*.log\n" + "#" * (MOST_RULES_BYTES - 9) + "\n*.txt\n")
    for name in ("a.log", "b.txt", "c.py"):
        (tmp_path / name).write_text("x = 1\n")
    with build_tree(tmp_path) as tree:
        assert not list(tree.children())
        assert "more than a megabyte" in tree.get(".").description
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "add", "c.py")
    with build_tree(tmp_path) as tree:
        assert [node.id for node in tree.children()] == ["c.py"]


def test_of_many_patterns_with_wildcards_as_many_are_followed_as_scans_can_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the files above a path together, and of all files of a scan; names without wildcards cost nothing.

    Where there are more, only what git tracks is read: some folder of a stranger would else have files read which the
    user's own rules leave out.
    """
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "beside").mkdir()
    names = "".join(f"name{number}\n" for number in range(5_000))
    wild = "".join(f"{number}*x?\n" for number in range(MOST_WILD // 2))
    (tmp_path / ".gitignore").write_text(f"*.log\n{names}{wild}")
    (tmp_path / "in" / ".gitignore").write_text(f"{wild}*.md\n")
    (tmp_path / "in" / "deep" / ".gitignore").write_text("name\n")
    for name in ("a.log", "name4999", "b.md", "in/c.md", "in/deep/d.rst", "in/deep/e.rst", "beside/f.md"):
        (tmp_path / name).write_text("text\n")
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "add", "-f", "in/deep/e.rst")
    found = scan(tmp_path)
    kept = {path for path in found.files if not path.endswith(".gitignore")}
    assert kept == {"b.md", "in/deep/e.rst", "beside/f.md"}
    assert {path: "more patterns" in note for path, note in found.notes.items()} == {"in": True}
    (tmp_path / "beside" / ".gitignore").write_text("*.md\n")
    monkeypatch.setattr("metatree_memory_tools.build._scan._MOST_PATTERNS", 0)
    assert set(scan(tmp_path).files) == {"in/deep/e.rst"}


@pytest.mark.parametrize("refused", [False, True])
def test_what_the_exclude_of_a_repository_leaves_out_is_left_out(tmp_path: Path, refused: bool) -> None:
    """Also where the repository lies below, or is one that is not believed for its references."""
    (tmp_path / "mine").mkdir()
    for root in (tmp_path, tmp_path / "mine"):
        _git(root, "init", "-q")
        (root / ".git" / "info" / "exclude").write_text("diary.md\n")
        if refused:
            (root / ".git" / "refs" / "tags").mkdir(exist_ok=True)
            (root / ".git" / "refs" / "tags" / "HEAD").symlink_to("/etc/hostname")
    (tmp_path / "mine" / ".git" / "info" / "exclude").write_text("letter.md\n")
    for name in ("diary.md", "letter.md", "mine/letter.md", "mine/diary.md", "a.md"):
        (tmp_path / name).write_text("# The harbour\n")
    assert set(scan(tmp_path).files) == {"a.md", "letter.md"}
    assert set(scan(tmp_path / "mine").files) == {"diary.md"}


def test_of_many_patterns_of_any_kind_as_many_are_kept_as_memory_is_for(tmp_path: Path) -> None:
    """Of the files above a path together; a pattern that stands a thousand times is looked at once."""
    (tmp_path / "in").mkdir()
    (tmp_path / ".gitignore").write_text("a\n" * (MOST_RULES - 3) + "!a\nb/\n")
    (tmp_path / "in" / ".gitignore").write_text("c\nd\n")
    for name in ("a", "b", "in/b", "in/c", "in/d"):
        (tmp_path / name).write_text("text\n")
    found = scan(tmp_path)
    assert {path for path in found.files if not path.endswith(".gitignore")} == {"a", "b"}
    assert set(found.notes) == {"in"}
    assert len(Patterns(b"a\n" * 1_000)._literal) == 1


@pytest.mark.parametrize("where", [".gitignore", ".git/info/exclude"])
@pytest.mark.parametrize("many", ["patterns", "bytes"])
def test_below_rules_that_are_not_followed_whole_only_what_git_tracks_is_read(
    tmp_path: Path, where: str, many: str
) -> None:
    """Also of a folder in a repository, which is built alone."""
    (tmp_path / "sub").mkdir()
    _git(tmp_path, "init", "-q")
    wild = (
        "".join(f"gen{number}*\n" for number in range(MOST_WILD))
        if many == "patterns"
        else "#" * MOST_RULES_BYTES
    )
    (tmp_path / where).write_text(f"{wild}\n*.priv\n")
    for name in ("a.md", "b.md", "c.priv"):
        (tmp_path / "sub" / name).write_text("text\n")
    _git(tmp_path, "add", "sub/b.md")
    found = scan(tmp_path / "sub")
    assert set(found.files) == {"b.md"} and "that alone is read which git tracks" in found.notes["."]


def test_rules_that_leave_out_the_folder_that_is_named_take_no_other_rules_away(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    _git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text("/docs/\n")
    (tmp_path / ".git" / "info" / "exclude").write_text("*.priv\n")
    for name in ("a.md", "b.priv"):
        (tmp_path / "docs" / name).write_text("text\n")
    assert set(scan(tmp_path / "docs").files) == {"a.md"}


@pytest.mark.parametrize("beside", ["an empty folder", "a file"])
def test_what_is_no_repository_takes_no_rules_above_away(tmp_path: Path, beside: str) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("*.private\n")
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "pay.private").write_text("The salary list.\n")
    (docs / "guide.md").write_text("# Guide\n\nTea is at five.\n")
    if beside == "a file":
        (docs / ".git").write_text("x")
    else:
        (docs / ".git").mkdir()
    with build_tree(docs) as tree:
        assert "ignored" in dict(tree.omissions())["pay.private"]


@pytest.mark.parametrize("where", ["the clone's rules", "one's own rules"])
def test_a_folder_that_is_taken_back_in_keeps_all_rules(tmp_path: Path, where: str) -> None:
    """`*.private` says something of `tools/build`, although the rule beside it, which does not count, says so too."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    build = tmp_path / "tools" / "build"
    build.mkdir(parents=True)
    (build / "pay.private").write_text("The salary list.\n")
    (build / "guide.md").write_text("# Guide\n")
    if where == "one's own rules":
        (tmp_path / ".git" / "info" / "exclude").write_text("*.private\n/tools/*\n")
        (tmp_path / ".gitignore").write_text("!/tools/*/\n")
    else:
        (tmp_path / ".gitignore").write_text("build/\n*.private\n")
        (build.parent / ".gitignore").write_text("!build/\n")
    assert set(scan(build).files) == {"guide.md"}


def test_of_rules_that_leave_out_a_named_folder_the_others_count(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("build/\n/b*\n*.private\n")
    below = tmp_path / "build" / "docs"
    below.mkdir(parents=True)
    for name in ("pay.private", "guide.md"):
        (below / name).write_text("text\n")
    assert set(scan(below).files) == {"guide.md"}
    assert set(scan(below.parent).files) == {"docs/guide.md"}


def test_rules_speak_of_the_bytes_of_a_name(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    root = os.fsencode(tmp_path)
    Path(os.fsdecode(root + b"/caf\xe9")).mkdir()
    for name in (
        b"geh\xe4lter.md",
        b"l\xf6hne.md",
        b"s\xfc\xdf.md",
        b"caf\xe9/a.md",
        b"caf\xe9/b.md",
        b"gast.md",
    ):
        Path(os.fsdecode(root + b"/" + name)).write_text("text\n")
    (tmp_path / ".gitignore").write_bytes(b"geh\xe4lter.md\nl?hne.md\n/caf\xe9/a.*\n")
    (tmp_path / "metatree.toml").write_text('ignore = ["s??.md"]\n')
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    listed = ["git", "ls-files", "-z", "--others", "--exclude-standard"]
    by_git_itself = subprocess.run(
        listed, cwd=tmp_path, capture_output=True, check=True, env=environment
    ).stdout
    wanted = {*by_git_itself.split(b"\0")} - {b"", b"s\xfc\xdf.md"}
    assert {file.raw or file.path.encode() for file in scan(tmp_path).files.values()} == wanted
    assert {file.raw for file in scan(tmp_path / os.fsdecode(b"caf\xe9")).files.values()} == {None}
    assert set(scan(tmp_path / os.fsdecode(b"caf\xe9")).files) == {"b.md"}
