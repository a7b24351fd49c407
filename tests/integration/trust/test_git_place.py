"""A `.git` that leads to another repository shows nothing of it; one that git made so is followed."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from metatree_memory_tools import build_tree
from metatree_memory_tools.build._scan import scan
from metatree_memory_tools.git._command import GitFailed, repository_of
from metatree_memory_tools.git._show import blame_text, changes_of_text, commit_text
from metatree_memory_tools.git.log import read_history
from metatree_memory_tools.git.place import _settings, place_of
from metatree_memory_tools.git.state import work_tree_state

from metatree.errors import MetatreeError
from metatree.storage.store import Store
from tests.integration.git_repository import Repository

pytestmark = pytest.mark.integration

PRIVATE = "zebra takeover"


@pytest.fixture
def private(tmp_path: Path) -> Repository:
    """Another repository of the user, with a work tree beside it."""
    made = Repository(tmp_path / "private")
    made.commit(PRIVATE, {"a.py": f"x = {PRIVATE!r}\n"})
    made.git("worktree", "add", "-q", str(tmp_path / "beside"))
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that somebody else prepared."""
    made = tmp_path / "prepared"
    made.mkdir()
    (made / "a.py").write_text("x = 1\n")
    return made


def repository_in(folder: Path) -> Path:
    Repository(folder / "made").commit("1", {})
    (folder / "made" / ".git").rename(folder / ".git")
    return folder / ".git"


def a_file(folder: Path, private: Repository) -> None:
    (folder / ".git").write_text(f"gitdir: {private.root / '.git'}\n")


def a_file_with_a_relative_path(folder: Path, private: Repository) -> None:
    (folder / ".git").write_text("gitdir: ../private/.git\n")


def a_file_for_a_work_tree(folder: Path, private: Repository) -> None:
    (folder / ".git").write_text(f"gitdir: {private.root / '.git' / 'worktrees' / 'beside'}\n")


def a_link(folder: Path, private: Repository) -> None:
    (folder / ".git").symlink_to(private.root / ".git")


def a_link_to_a_file(folder: Path, private: Repository) -> None:
    (folder / ".git").symlink_to(private.root.parent / "beside" / ".git")


def a_common_folder(folder: Path, private: Repository) -> None:
    (repository_in(folder) / "commondir").write_text(f"{private.root / '.git'}\n")


def a_work_tree_of_its_own_making(folder: Path, private: Repository) -> None:
    """All that leads back lies in the prepared folder."""
    own = folder / "meta" / "worktrees" / "w"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/main\n")
    (own / "commondir").write_text(f"{private.root / '.git'}\n")
    (own / "gitdir").write_text(f"{folder / '.git'}\n")
    (folder / ".git").write_text(f"gitdir: {own}\n")


def a_bare_repository(folder: Path, private: Repository) -> None:
    for name in ("objects", "refs"):
        (folder / name).mkdir()
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "commondir").write_text(f"{private.root / '.git'}\n")


def links_in_it(*names: str) -> Callable[[Path, Repository], None]:
    def prepare(folder: Path, private: Repository) -> None:
        private.git("pack-refs", "--all")
        private.git("update-ref", "refs/heads/main", "HEAD")
        git = repository_in(folder)
        (git / "objects" / "info").mkdir(exist_ok=True)
        (git / "objects" / "info" / "alternates").write_text(f"{private.root / '.git' / 'objects'}\n")
        for name in names:
            place = git / name
            if place.is_dir():
                place.rename(git / f"{place.name}.gone")
            place.unlink(missing_ok=True)
            place.symlink_to(private.root / ".git" / name)

    prepare.__name__ = "_".join(names).replace("/", "_")
    return prepare


def a_reference_that_is_a_link(folder: Path, private: Repository) -> None:
    links_in_it("refs/heads/main")(folder, private)
    (private.root / ".git" / "refs" / "heads" / "main").write_text(private.git("rev-parse", "HEAD") + "\n")


def a_reference_to_a_link(folder: Path, private: Repository) -> None:
    a_reference_that_is_a_link(folder, private)
    (folder / ".git" / "refs" / "heads" / "main").rename(folder / ".git" / "FETCH_HEAD")
    (folder / ".git" / "refs" / "heads" / "main").write_text("ref: FETCH_HEAD\n")


def a_head_that_is_not_there_and_another_that_is_a_link(folder: Path, private: Repository) -> None:
    a_reference_that_is_a_link(folder, private)
    (folder / ".git" / "refs" / "tags").mkdir(exist_ok=True)
    (folder / ".git" / "refs" / "heads" / "main").rename(folder / ".git" / "refs" / "tags" / "HEAD")


def a_reference_that_is_a_hard_link(folder: Path, private: Repository) -> None:
    a_reference_that_is_a_link(folder, private)
    own = folder / ".git" / "refs" / "heads" / "main"
    own.unlink()
    own.hardlink_to(private.root / ".git" / "refs" / "heads" / "main")


def an_index_of_references_that_is_a_hard_link(folder: Path, private: Repository) -> None:
    links_in_it("packed-refs")(folder, private)
    git = folder / ".git"
    (git / "refs" / "heads" / "main").unlink()
    (git / "packed-refs").unlink()
    (git / "packed-refs").hardlink_to(private.root / ".git" / "packed-refs")


def a_reference_that_is_a_link_by_what_is_no_name(folder: Path, private: Repository) -> None:
    """For git no part of a name begins with a dot, so it reads the file there."""
    a_reference_that_is_a_link(folder, private)
    heads = folder / ".git" / "refs" / "heads"
    (heads / "main").unlink()
    (heads / "refs").mkdir()
    (heads / "refs" / ".x").symlink_to(private.root / ".git" / "refs" / "heads")
    (heads / "main").symlink_to("refs/.x/main")


def a_reference_whose_name_ends_in_what_git_takes_for_a_letter(folder: Path, private: Repository) -> None:
    a_reference_that_is_a_link(folder, private)
    own = folder / ".git" / "refs" / "heads" / "main"
    own.rename(own.with_name("main\u00a0"))
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\u00a0\n")


def a_reference_behind_a_megabyte_of_line_ends(folder: Path, private: Repository) -> None:
    a_reference_that_is_a_link(folder, private)
    own = folder / ".git" / "refs" / "heads" / "main"
    own.rename(own.with_name("other"))
    own.write_text("ref:" + "\n" * (1 << 20) + "refs/heads/other\n")


def objects_by_a_link(*names: str) -> Callable[[Path, Repository], None]:
    def prepare(folder: Path, private: Repository) -> None:
        a_reference_that_is_a_hard_link(folder, private)
        if "pack" in names:
            private.git("repack", "-a", "-d")
        objects = folder / ".git" / "objects"
        (objects / "info" / "alternates").unlink()
        for place in (private.root / ".git" / "objects").iterdir():
            if place.name in names or names == ("all",):
                shutil.rmtree(objects / place.name, ignore_errors=True)
                (objects / place.name).symlink_to(place)
        if names == ("objects",):
            objects.rename(folder / ".git" / "objects.gone")
            objects.symlink_to(private.root / ".git" / "objects")

    prepare.__name__ = f"objects_by_a_link_{'_'.join(names)}"
    return prepare


def an_object_that_is_a_link(folder: Path, private: Repository) -> None:
    """Of somebody who has heard what its commit is called."""
    a_reference_that_is_a_hard_link(folder, private)
    (folder / ".git" / "objects" / "info" / "alternates").unlink()
    head = private.git("rev-parse", "HEAD")
    own, other = (root / ".git" / "objects" / head[:2] / head[2:] for root in (folder, private.root))
    own.parent.mkdir(exist_ok=True)
    own.symlink_to(other)


def a_list_of_packs_that_names_one_elsewhere(folder: Path, private: Repository) -> None:
    """Of somebody who has heard what its pack and its commit are called."""
    private.git("gc", "-q")
    objects = repository_in(folder) / "objects"
    (pack,) = (private.root / ".git" / "objects" / "pack").glob("*.pack")
    (objects / "pack").mkdir(exist_ok=True)
    for end in (".pack", ".idx"):
        shutil.copy(pack.with_suffix(end), objects / "pack")
    _at(folder).git("multi-pack-index", "write")
    for each in (objects / "pack").glob("pack-*"):
        each.unlink()
    place = objects / "pack" / "multi-pack-index"
    place.chmod(0o644)
    place.write_bytes(
        with_names(place.read_bytes(), f"../../../../private/.git/objects/pack/{pack.stem}.idx")
    )
    (folder / ".git" / "refs" / "heads" / "main").write_text(private.git("rev-parse", "HEAD") + "\n")


def a_reference_that_is_a_link_without_objects_of_others(folder: Path, private: Repository) -> None:
    a_reference_that_is_a_link(folder, private)
    (folder / ".git" / "objects" / "info" / "alternates").unlink()


def with_names(data: bytes, name: str) -> bytes:
    """Return a list of packs with another name in it; see gitformat-pack(5), multi-pack-index."""
    table = [
        (data[at : at + 4], int.from_bytes(data[at + 4 : at + 12], "big"))
        for at in range(12, 24 + 12 * data[6], 12)
    ]
    chunks = [(kind, data[begin:end]) for (kind, begin), (_, end) in pairwise(table)]
    names = name.encode() + b"\0" * (4 - len(name) % 4)
    chunks = [(kind, names if kind == b"PNAM" else chunk) for kind, chunk in chunks]
    made, at = data[:12], 12 + 12 * len(table)
    for kind, chunk in [*chunks, (b"\0" * 4, b"")]:
        made += kind + at.to_bytes(8, "big")
        at += len(chunk)
    made += b"".join(chunk for _, chunk in chunks)
    return made + hashlib.sha1(made).digest()


SHAPES = [
    a_file,
    a_file_with_a_relative_path,
    a_file_for_a_work_tree,
    a_link,
    a_link_to_a_file,
    a_common_folder,
    a_work_tree_of_its_own_making,
    a_bare_repository,
    links_in_it("refs"),
    links_in_it("refs/heads"),
    a_reference_that_is_a_link,
    a_reference_to_a_link,
    a_head_that_is_not_there_and_another_that_is_a_link,
    a_reference_that_is_a_hard_link,
    a_reference_that_is_a_link_by_what_is_no_name,
    an_index_of_references_that_is_a_hard_link,
    a_reference_whose_name_ends_in_what_git_takes_for_a_letter,
    a_reference_behind_a_megabyte_of_line_ends,
    objects_by_a_link("objects"),
    objects_by_a_link("pack"),
    objects_by_a_link("all"),
    an_object_that_is_a_link,
    a_list_of_packs_that_names_one_elsewhere,
    a_reference_that_is_a_link_without_objects_of_others,
]


@pytest.mark.parametrize("prepare", SHAPES)
def test_nothing_is_shown_of_a_repository_that_does_not_lead_back(
    folder: Path, private: Repository, prepare: Callable[[Path, Repository], None]
) -> None:
    head = private.git("rev-parse", "HEAD")
    prepare(folder, private)
    store = Store.open(":memory:")
    assert work_tree_state(folder) == (None, None)
    told: list[object] = [read_history(folder, store), *store.rows("SELECT * FROM history_commit")]
    for ask in (
        lambda: commit_text(folder, "HEAD"),
        lambda: blame_text(folder, "a.py"),
        lambda: changes_of_text(folder, ".", "zebra"),
    ):
        with pytest.raises(MetatreeError) as caught:
            ask()
        told.append(caught.value)
    assert not [said for said in map(str, told) if head in said or PRIVATE in said]


def test_what_another_repository_tracks_says_nothing_of_a_folder(folder: Path, private: Repository) -> None:
    """Its index would bring files in that rules of the folder leave out, its `info/exclude` leave others out."""
    (private.root / ".git" / "info" / "exclude").write_text("b.py\n")
    a_file(folder, private)
    (folder / "b.py").write_text("y = 1\n")
    (folder / ".gitignore").write_text("a.py\n")
    with build_tree(folder) as tree:
        assert "b.py" in tree and "a.py" not in tree


def test_a_refusal_says_what_to_do(folder: Path, private: Repository) -> None:
    a_file(folder, private)
    with pytest.raises(GitFailed, match=r"if it is yours, say `git config core\.worktree"):
        repository_of(folder)


@pytest.mark.parametrize("shape", ["plain", "work tree", "submodule", "separate", "bare work tree", "nested"])
def test_what_git_itself_made_is_followed(tmp_path: Path, private: Repository, shape: str) -> None:
    place = {
        "plain": private.root,
        "work tree": tmp_path / "beside",
        "submodule": tmp_path / "outer" / "in" / "sub",
        "separate": tmp_path / "separate",
        "bare work tree": tmp_path / "of-bare",
        "nested": tmp_path / "outer-work" / "in" / "sub",
    }[shape]
    match shape:
        case "submodule" | "nested":
            outer = Repository(tmp_path / "outer")
            add = ("-c", "protocol.file.allow=always", "submodule", "--quiet")
            outer.git(*add, "add", str(private.root), "in/sub")
            outer.commit("1", {})
            outer.git("worktree", "add", "-q", str(tmp_path / "outer-work"))
            Repository.git(_at(tmp_path / "outer-work"), *add, "update", "--init")
        case "separate":
            private.git("clone", "-q", "--separate-git-dir", str(tmp_path / "meta"), ".", str(place))
            with pytest.raises(GitFailed, match=r"core\.worktree"):
                repository_of(place)
            Repository.git(_at(place), "config", "core.worktree", str(place))
        case "bare work tree":
            private.git("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
            Repository.git(_at(tmp_path / "bare.git"), "worktree", "add", "-q", str(place))
    head = private.git("rev-parse", "HEAD")
    assert (place / "a.py").is_file()
    assert work_tree_state(place) == (head, False)
    assert commit_text(place, "HEAD").subject == PRIVATE
    assert read_history(place, Store.open(":memory:")) == ""
    assert place_of(place).top == place


def _at(root: Path) -> Repository:
    repository = Repository.__new__(Repository)
    repository.root, repository.minute = root, 0
    return repository


@pytest.mark.parametrize("name", [b"line\nbreak", b"latin-\xe9", b"deadbeef" * 5 + b"\nHEAD"])
def test_any_name_of_a_folder_is_one(tmp_path: Path, name: bytes) -> None:
    repository = Repository(Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)))
    head = repository.commit("1", {"in/a.py": "x = 1\n"})
    inner = Path(os.fsdecode(os.fsencode(repository.root / "in") + b"/" + name))
    inner.mkdir()
    (inner / "b.py").write_text("x = 1\n")
    again = repository.commit("2", {})
    assert again != head
    assert work_tree_state(inner) == (again, False)
    assert commit_text(inner, "HEAD").files == ("b.py",)


@pytest.mark.parametrize(
    "name", ["../../private/.git/HEAD", "refs/../../../private/.git/HEAD", "--help", "a b"]
)
def test_a_head_that_names_no_reference_is_none(folder: Path, private: Repository, name: str) -> None:
    (repository_in(folder) / "HEAD").write_text(f"ref: {name}\n")
    assert work_tree_state(folder) == (None, None)


def test_a_history_with_objects_elsewhere_is_shown_where_one_trusts_the_folder(
    tmp_path: Path, private: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    private.git("clone", "-q", "--shared", ".", str(shared))
    with pytest.raises(GitFailed, match=r"elsewhere \(objects/info/alternates\): say `git repack -a -d`"):
        repository_of(shared)
    assert work_tree_state(shared) == (None, None)
    monkeypatch.setenv("METATREE_TRUST", str(shared))
    assert commit_text(shared, "HEAD").subject == PRIVATE
    monkeypatch.delenv("METATREE_TRUST")
    _at(shared).git("repack", "-q", "-a", "-d")
    (shared / ".git" / "objects" / "info" / "alternates").unlink()
    assert commit_text(shared, "HEAD").subject == PRIVATE


@pytest.mark.parametrize("begin", ["a = b", "[", "[a", '[a "', '[a "\\\\', "a", "", "[a]", '[a "b"]'])
def test_settings_are_read_in_a_time_that_grows_with_their_length(begin: str) -> None:
    """Of 200,000 blanks, quadratic is a minute: this does not end, rather than fail."""
    for many in (" ", "a", "[", "[a]", "]", '"', "\\"):
        line = f"{begin}{many * 200_000}c"
        text = f"[core]\nworktree = here\n[x]\n{line}\n[extensions]\nrefStorage = files\n"
        found = dict(_settings(text))
        assert (found["core.worktree"], found["extensions.refstorage"]) == ("here", "files")


def test_settings_of_a_section_with_a_second_name_are_of_another() -> None:
    text = '[x "] [core] worktree = there"] [Core]\n\tWorkTree = "my \\"app"\n[core "b"]\nworktree = no\n'
    assert list(_settings(text)) == [("core.worktree", 'my "app')]


def test_references_in_a_circle_end(folder: Path) -> None:
    git = repository_in(folder)
    for here, there in (("a", "b"), ("b", "a")):
        (git / "refs" / "heads" / here).write_text(f"ref: refs/heads/{there}\n")
    (git / "HEAD").write_text("ref: refs/heads/a\n")
    (git / "refs" / "heads" / "c").symlink_to("c")
    place_of(folder)
    assert work_tree_state(folder) == (None, None)


@pytest.mark.parametrize("said", ["b.py\n", "c.py\n"])
@pytest.mark.parametrize("rules", [".git/info/exclude", ".gitignore"])
def test_rules_of_a_file_elsewhere_are_none(folder: Path, tmp_path: Path, rules: str, said: str) -> None:
    """Whether something is left out would tell what the file says, and one of the system may never end."""
    repository_in(folder)
    (folder / "below").mkdir()
    (folder / "below" / "b.py").write_text("x = 1\n")
    (tmp_path / "secret").write_text(said)
    (folder / rules).unlink(missing_ok=True)
    (folder / rules).symlink_to(tmp_path / "secret")
    for root in (folder, folder / "below"):
        with build_tree(root, out=tmp_path / root.name) as tree:
            name = "b.py" if root.name == "below" else "below/b.py"
            # Git follows one of the two: nothing comes in then that git may leave out, whatever the link leads to.
            assert (name in tree) == (rules == ".gitignore")
            assert ("exclude is a link" in str(scan(root).notes)) == (rules != ".gitignore")


@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() != 0, reason="only root may read the file that never ends"
)
@pytest.mark.parametrize(
    "link", [".git/info/exclude", ".gitignore", ".git/config", ".git/index", ".git/commondir"]
)
def test_a_link_to_what_never_ends_is_not_waited_for(folder: Path, tmp_path: Path, link: str) -> None:
    repository_in(folder)
    (folder / "below").mkdir()
    (folder / "below" / "b.py").write_text("x = 1\n")
    (folder / link).unlink(missing_ok=True)
    (folder / link).symlink_to("/proc/kmsg")
    with build_tree(folder / "below", out=tmp_path / "tree") as tree:
        assert ("b.py" in tree) == (link != ".git/info/exclude")
