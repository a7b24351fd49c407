"""Secrets in what git tells of a repository: subjects, changes, lines, and files that are left out."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from metatree_memory_tools import build_tree
from metatree_memory_tools.git import _show
from metatree_memory_tools.git._show import blame_text, changes_of_text, commit_text
from metatree_memory_tools.git.log import read_history
from metatree_memory_tools.git.tools import find_change, show_commit

from metatree.errors import UserError
from metatree.storage.store import Store
from metatree.trees.history import commits
from tests.integration.git_repository import Repository
from tests.integration.trust.test_secrets_shown import TOKEN, key_of, letter

pytestmark = pytest.mark.integration


def test_what_git_shows_of_a_change_is_masked_behind_its_signs(tmp_path: Path) -> None:
    token = "s.a1BOz50KyC5j58LSfhL7Fc9d"
    repository = Repository(tmp_path / "shop")
    repository.commit("one", {"notes.txt": f"The token is in the next line.\n{token}\nThat is all of it.\n"})
    repository.commit("two", {"notes.txt": "The token was taken out.\n"})
    said = commit_text(repository.root, "HEAD").text + changes_of_text(repository.root, "notes.txt", token)
    assert "-The token is in the next line.\n-*****" in said
    assert token not in said


def test_git_shows_nothing_of_what_the_settings_leave_out(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "shop")
    repository.commit("one", {"a.md": "Ants.\n", "private/diary.md": "Ants at home.\n"})
    repository.commit("two", {"a.md": "Ants!\n", "private/diary.md": "Ants at sea.\n"})
    assert "at sea" in commit_text(repository.root, "HEAD").text
    (repository.root / "metatree.toml").write_text('ignore = ["private/"]\n')
    for secrets in (False, True):
        said = commit_text(repository.root, "HEAD", secrets=secrets).text
        assert "+Ants!" in said and "changes of private/diary.md are left out by the settings" in said
        said += changes_of_text(repository.root, ".", "Ants", secrets=secrets)
        assert "a.md: +Ants." in said and "at sea" not in said and "at home" not in said


@pytest.mark.parametrize(
    "message",
    [
        f"Use this key:\n{key_of('RSA PRIVATE KEY', 'Proc-Type: 4,ENCRYPTED')}",
        key_of("PGP PRIVATE KEY BLOCK"),
    ],
    ids=["encrypted", "pgp"],
)
def test_a_key_whose_head_is_the_subject_of_a_commit_is_masked(tmp_path: Path, message: str) -> None:
    repository = Repository(tmp_path / "shop")
    repository.commit(message, {"a.md": "The shop.\n"})
    with Store.open(":memory:") as store:
        assert read_history(repository.root, store) == ""
        (commit,) = commits(store)
    assert "****" in commit.body
    assert "ErTyUiOpAsDf" not in f"{commit}{commit_text(repository.root, 'HEAD').text}"


@pytest.mark.parametrize(
    "form", ["{}", "    {}", '  "{}\\n",', "# {}"], ids=["plain", "YAML", "JSON", "a comment"]
)
def test_git_shows_no_line_of_a_key_whose_first_line_is_far_from_a_change(tmp_path: Path, form: str) -> None:
    body = [("MIIEow" + f"A{number}b+" * 20)[:64] for number in range(10, 40)]
    repository = Repository(tmp_path / "keys")
    for last in ("old", "new"):
        lines = [key_of("RSA PRIVATE KEY").splitlines()[0], *body, "x", last]
        repository.commit(last, {"a.yaml": "\n".join(form.format(line) for line in lines)})
    said = commit_text(repository.root, "HEAD").text
    assert "new" in said and "MIIEow" not in said and "****" in said


def test_git_shows_no_lines_of_a_letter(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "mail")
    letter(repository.root / "a.eml")
    (repository.root / "cur").mkdir()
    letter(repository.root / "cur" / "1:2,S")
    repository.commit("letters", {"a.md": "The letters.\n"})
    said = commit_text(repository.root, "HEAD").text
    assert "+The letters." in said
    for path in ("a.eml", "cur/1:2,S"):
        assert f"the changes of {path} are not shown" in said
        with pytest.raises(UserError, match="is no text"):
            blame_text(repository.root, path)
    assert "harbour" not in said + changes_of_text(repository.root, "a.eml", "the key of the harbour")
    repository.commit("gone", {"a.eml": None, "cur/1:2,S": None})
    assert "harbour" not in changes_of_text(repository.root, ".", "the key of the harbour")


def test_git_shows_no_lines_of_a_document_that_is_text(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "prints")
    (repository.root / "a.pdf").write_text(
        f"%PDF-1.4\n1 0 obj\n<< /Title (harbour \\012{TOKEN}) >>\nendobj\n"
    )
    repository.commit("prints", {"a.md": "The prints.\n"})
    said = commit_text(repository.root, "HEAD").text
    assert "+The prints." in said and "the changes of a.pdf are not shown" in said
    with pytest.raises(UserError, match="is no text"):
        blame_text(repository.root, "a.pdf")
    assert TOKEN not in said + changes_of_text(repository.root, "a.pdf", "harbour")


def test_git_shows_no_lines_of_an_export_of_a_chat(tmp_path: Path) -> None:
    """The program takes what stands before the host in an address for that of a letter, and parts the text there."""
    repository = Repository(tmp_path / "chats")
    parts = [
        "the shop is at postgres://ann:",
        {"type": "email", "text": "kettle9blue@db.example.org"},
        "/shop",
    ]
    message = {"id": 1, "type": "message", "date": "2024-05-17T14:03:22", "from": "Ann", "text": parts}
    export = {"name": "Bob", "type": "personal_chat", "id": 5, "messages": [message]}
    repository.commit("chats", {"a.md": "The chats.\n", "result.json": json.dumps(export, indent=1)})
    said = commit_text(repository.root, "HEAD").text
    assert "+The chats." in said and "the changes of result.json are not shown" in said
    with pytest.raises(UserError, match="is no text"):
        blame_text(repository.root, "result.json")
    assert "kettle9" not in said + changes_of_text(repository.root, "result.json", "db.example")


def test_a_letter_is_known_by_its_file_where_a_change_lies_far_below(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "mail")
    head = "From: a@example.org\nSubject: keys\nMIME-Version: 1.0\nContent-Type: text/plain\n"
    head += "Content-Transfer-Encoding: quoted-printable\n\n" + "Of tea and kettles.\n" * 40
    keys = f"The token is {TOKEN[:20]}=\n{TOKEN[20:]} and no other.\n"
    mbox = f"From a@example.org Mon Jan  1 10:00:00 2024\n{head}"
    repository.commit("one", {"inbox": mbox + keys, "m.eml": head + keys})
    repository.git("mv", "m.eml", "m.txt")
    repository.commit("two", {"inbox": mbox + keys + "More.\n", "m.txt": head + keys + "More.\n"})
    said = commit_text(repository.root, "HEAD").text
    said += changes_of_text(repository.root, "inbox", TOKEN[20:])
    assert "not shown" in said
    assert TOKEN[20:] not in said


def state(value: str) -> str:
    """Return a state of Terraform, which no shape says to be one."""
    outputs = {"db": {"value": f"correct {value} battery", "type": "string", "sensitive": True}}
    data = {
        "version": 4,
        "terraform_version": "1.5.7",
        "lineage": "8b1e",
        "outputs": outputs,
        "resources": [],
    }
    return json.dumps(data, indent=1)


@pytest.mark.parametrize(
    "name",
    [b'st\xe9"ate.json', b"st\xe9ate.json", b"st\xe9\tate.json", b'st\xc3\xa9"ate.json', b"st\\ate.json"],
)
def test_git_shows_nothing_of_a_file_that_is_left_out_whatever_its_name(tmp_path: Path, name: bytes) -> None:
    repository = Repository(tmp_path / "shop")
    repository.commit("one", {"a.md": "The shop.\n", os.fsdecode(name): state("horse")})
    with build_tree(repository.root, history=True) as tree:
        assert "may hold secrets: a state of Terraform" in dict(tree.omissions()).values()
        said = show_commit(tree.get("a.md"), tree, "HEAD") + find_change(tree.get("."), tree, "horse")
    assert "The shop" in said and "battery" not in said


def test_git_shows_nothing_of_what_settings_leave_out_by_the_bytes_of_its_name(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "shop")
    odd = os.fsdecode(b"caf\xe9.md")
    repository.commit("one", {"a.md": "Ants.\n", "cafe.md": "Ants at home.\n", odd: "Ants at sea.\n"})
    repository.commit("two", {"cafe.md": None, odd: None, "metatree.toml": 'ignore = ["caf?.md"]\n'})
    said = changes_of_text(repository.root, ".", "Ants")
    said += commit_text(repository.root, "HEAD").text + commit_text(repository.root, "HEAD~1").text
    assert "a.md: +Ants." in said and "at home" not in said and "at sea" not in said


def test_git_shows_no_line_of_a_large_file_of_secrets(tmp_path: Path) -> None:
    """A build has a node of it, since it was too large to be looked at."""
    repository = Repository(tmp_path / "shop")
    repository.commit("one", {"infra.json": state("horse") + "\n" * 2_100_000, "gone.json": state("mule")})
    repository.commit("two", {"infra.json": state("donkey") + "\n" * 2_100_000, "gone.json": None})
    with build_tree(repository.root, history=True) as tree:
        assert "too large" in dict(tree.omissions())["infra.json"]
        for word in ("horse", "donkey", "mule"):
            assert "battery" not in find_change(tree.get("."), tree, word)
    with pytest.raises(UserError, match="no line of it is shown: a state of Terraform"):
        blame_text(repository.root, "infra.json", 1, 9)
    assert "battery" in blame_text(repository.root, "infra.json", 1, 9, secrets=True)
    assert "horse" in changes_of_text(repository.root, ".", "horse", secrets=True)


def test_the_tools_of_a_history_show_nothing_of_a_file_that_is_left_out_for_what_is_in_it(
    tmp_path: Path,
) -> None:
    repository = Repository(tmp_path / "shop")
    repository.commit("one", {"a.md": "The shop.\n", "kept.json": state("horse"), "gone.json": state("mule")})
    repository.commit("two", {"a.md": "The shop!\n", "kept.json": state("donkey")})
    (repository.root / "gone.json").unlink()
    repository.commit("three", {"a.md": "The shop?\n"})
    with build_tree(repository.root, history=True) as tree:
        assert "kept.json" in dict(tree.omissions())
        for revision in ("HEAD", "HEAD~1", "HEAD~2"):
            said = show_commit(tree.get("a.md"), tree, revision)
            assert "The shop" in said and "battery" not in said
        assert "battery" not in find_change(tree.get("."), tree, "donkey")


def test_git_shows_no_line_of_a_file_that_is_too_large_to_be_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository(tmp_path / "shop")
    repository.commit("one", {"a.md": "Ants in the tea.\n" * 100})
    assert "Ants" in changes_of_text(repository.root, ".", "Ants") and "Ants" in blame_text(
        repository.root, "a.md"
    )
    monkeypatch.setattr(_show, "MOST_UNREAD_BYTES", 1_000)
    assert "Ants" not in changes_of_text(repository.root, ".", "Ants")
    with pytest.raises(UserError, match="it has more than 1,000 bytes"):
        blame_text(repository.root, "a.md")
