"""Secrets that stood where nothing looked for them: each of these was shown once."""

from __future__ import annotations

import json
import logging
import sqlite3
import zipfile
from base64 import urlsafe_b64encode
from email.message import EmailMessage
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from metatree_agents.cli._errors import show_warnings
from metatree_agents.cli._main import run
from metatree_agents.service.web._pdf_secrets import holds_secret
from metatree_agents.tools import _code_look
from metatree_memory_tools import build_tree
from metatree_memory_tools.conversations.file_type import ConversationFile
from metatree_memory_tools.documents._document_text import shaped, tidy
from metatree_memory_tools.documents._man import extract_man
from metatree_memory_tools.mcp_server.connection import _LAST_CHARS, ServerConnection
from metatree_memory_tools.mcp_server.source import _is_public
from metatree_memory_tools.openapi import _call
from metatree_memory_tools.schema_tool import usable_schema
from metatree_memory_tools.text import lines
from metatree_memory_tools.text.descriptions import cut_masked, shorten_masked
from metatree_memory_tools.text.lines import text_of
from metatree_memory_tools.web import _page
from metatree_memory_tools.web._page import FetchedPage
from metatree_memory_tools.web.fetch import Fetched
from metatree_routers.decisions._server import JsonServer
from metatree_routers.llm.errors import without_key

from metatree import Node, Tree
from metatree._util.secret_text import masked
from metatree.errors import FetchFailed, UserError
from metatree.node import Source
from metatree.notes.archive import export_memory
from metatree.notes.archive._writer import _redacted_json
from metatree.notes.notes import remember
from metatree.storage import acceptance
from metatree.storage import store as store_module
from metatree.storage.acceptance import accept
from metatree.storage.store import Store
from metatree.trees.source_types import Outline, SourceFile
from tests.integration.trust.prepared import Clone, as_user

pytestmark = pytest.mark.integration

TOKEN = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
KEY = (
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA1c9yh3G0abcDEF12345abcDEF12345abcDEF12345abcDEF\n"
    "-----END RSA PRIVATE KEY-----"
)


def database(place: Path) -> None:
    with sqlite3.connect(place) as store:
        store.execute("CREATE TABLE account (name TEXT, password TEXT)")
        store.execute("INSERT INTO account VALUES (?, ?)", (f"ann\n{TOKEN}\n", "hunter2hunter2"))


def letter(place: Path) -> None:
    message = EmailMessage()
    message["From"], message["Subject"], message["Message-ID"] = "Ann <ann@example.org>", "Key", "<1@x>"
    message.set_content(f"Hello, the key of the harbour is {TOKEN} – é.\n", cte="quoted-printable")
    place.write_bytes(bytes(message))


def chat(place: Path) -> None:
    turns = [{"role": "user", "content": f"My key:\n{TOKEN}"}, {"role": "assistant", "content": "Yes."}]
    place.write_text(json.dumps({"messages": turns}))


@pytest.mark.parametrize(
    ("name", "write"),
    [("dev.db", database), ("a.eml", letter), ("chat.json", chat)],
    ids=["sqlite", "mail", "chat"],
)
def test_bytes_that_are_no_text_have_no_lines(clone: Clone, name: str, write: object) -> None:
    assert callable(write)
    write(clone.folder / name)
    with build_tree(clone.folder) as tree:
        assert name in tree
        assert _code_look.grep(tree, ".", "ghp_|hunter2|My key|the key of", ignore_case=True) == ([], "")
        assert "no line of 1 file(s)" in _code_look.no_lines(tree, ".", "ghp_")
        assert "1 of a database, letters or conversations have no lines" in _code_look.no_lines(
            tree, ".", "ghp_"
        )
        with pytest.raises(UserError, match="no text of lines"):
            text_of(tree, name)


@pytest.mark.parametrize("name", ["state.json", "a.mbox", "large.txt"])
def test_a_file_that_was_too_large_for_a_build_has_lines_only_where_a_build_would_have_read_them(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    match name:
        case "state.json":
            text = '{"version": 4, "terraform_version": "1.5.7", "lineage": "8b1e", "outputs": {"db":\n'
            text += f'{{"value": "harbour"}}}},\n"resources": [{", ".join(["1"] * 900)}]}}'
        case "a.mbox":
            text = f"From a@example.org Fri May 17 14:03:22 2024\nFrom: a@example.org\n\nThe harbour {' .' * 900}\n"
        case _:
            text = f"The harbour\n{'. ' * 900}\n"
    (clone.folder / name).write_text(text)
    monkeypatch.setattr(ConversationFile, "max_file_bytes", 0)
    with build_tree(clone.folder, max_file_bytes=1_000) as tree:
        assert "too large" in dict(tree.omissions())[name]
        if name == "large.txt":
            assert text_of(tree, name).lines[0] == "The harbour"
            monkeypatch.setattr(lines, "MOST_UNREAD_BYTES", 1_000)
        with pytest.raises(UserError, match=r"no text of lines|may hold secrets|too large"):
            text_of(tree, name)


def test_a_file_that_a_node_of_a_tree_by_hand_names_is_masked(clone: Clone) -> None:
    (clone.folder / "k.txt").write_text(f"The key is {TOKEN} here\n")
    with Tree.create(clone.folder / "t.mtree", source_root=clone.folder) as tree:
        tree.add(Node("k", "Key", "The key", source=Source(type="text", path="k.txt")))
        assert tree.content("k") == f"The key is {'*' * len(TOKEN)} here\n"


def test_a_secret_in_a_query_is_hidden_as_it_is_written_there() -> None:
    request = SimpleNamespace(secrets=[], query=[], cookies=[], headers={})
    _call._send(["apiKey", "", "query", "key"], "sk/9fQ+zz==", request)  # type: ignore[arg-type]
    assert "sk%2F9fQ%2Bzz%3D%3D" in request.secrets


def test_columns_that_hold_json_are_exported_without_what_stands_behind_their_line_breaks(
    clone: Clone,
) -> None:
    said = json.dumps({"data": json.dumps({"text": f"The key:\n{TOKEN}\nof the harbour"})})
    text, number = _redacted_json(said)
    assert (
        number == 1 and TOKEN not in text and "of the harbour" in json.loads(json.loads(text)["data"])["text"]
    )
    assert _redacted_json("{no JSON}") == ("{no JSON}", 0)
    with Tree.create(clone.folder / "t.mtree") as tree:
        remember(tree, f"The key of the harbour:\n{TOKEN}\n", who="ann")
        export_memory(tree, clone.folder / "e.metatree")
    with zipfile.ZipFile(clone.folder / "e.metatree") as archive:
        assert not any(TOKEN.encode() in archive.read(name) for name in archive.namelist())


def test_addresses_of_resources_with_a_password_are_not_public() -> None:
    assert not _is_public("postgres://ann:hunter2hunter2@db.example.org/shop")
    assert _is_public("file:///docs/{name}") and _is_public("postgres://db.example.org/shop")


def test_each_of_two_entries_of_netrc_is_masked() -> None:
    entry = "<li>machine {} login ann password {}</li>"
    text = entry.format("a.example.org", "kettle9blue") + entry.format("b.example.org", "teapot8green")
    assert "kettle9blue" not in masked(text)[0] and "teapot8green" not in masked(text)[0]


@pytest.mark.parametrize("secret", ["machine a.example.org login ann password kettle9blue", KEY])
def test_a_file_of_json_with_a_secret_in_it_can_be_read(secret: str) -> None:
    told = {
        "cells": [{"source": [f"{line}\n" for line in f"Fill the kettle\n{secret}\nand wait".split("\n")]}]
    }
    text = masked(json.dumps(told, indent=1))[0]
    source = json.loads(text)["cells"][0]["source"]
    assert source[0] == "Fill the kettle\n" and source[-1] == "and wait\n"
    assert "kettle9blue" not in text and "MIIEowIBAAKCAQEA" not in text


def test_an_address_that_a_server_led_to_is_shown_without_its_keys() -> None:
    typed, led = "https://example.org/start", f"https://example.org/page?access_token={TOKEN}"
    answer = Fetched(url=led, status=200, body=b"Kettle", headers={}, hops=(typed,))
    kind: Any = None
    page = FetchedPage(
        answer, SourceFile("page.txt", b"Kettle"), kind, Outline(description="Kettle"), (), 0.0
    )
    assert TOKEN not in f"{page.attributes()} {page.title}"
    assert page.attributes()["redirected_from"] == [typed]


def test_trust_says_which_of_ones_own_keys_a_server_gets(
    clone: Clone, capsys: pytest.CaptureFixture[str]
) -> None:
    (clone.folder / "metatree.toml").write_text(
        'router = "decisions/x@http://stranger.example"\n[ask]\nservice = "http://stranger.example"\n'
    )
    assert run(["trust", "--show"]) in (0, 2)
    shown = "".join(capsys.readouterr())
    assert "sends what OPENAI_API_KEY, SYSTEMONE_API_KEY or TYPESAFE_API_KEY holds to it" in shown
    assert "sends what METATREE_SECRET holds to it" in shown


def test_a_server_that_repeats_the_key_that_it_refuses_is_told_without_it() -> None:
    key = "sk-own-key-of-somebody"
    server = JsonServer("http://127.0.0.1:9", key, key_variable="OPENAI_API_KEY")
    error = server._error(
        401, json.dumps({"error": {"message": f"bad key {key}"}}).encode(), {}, "the server"
    )
    assert "bad key ***" in str(error) and key not in str(error)
    assert without_key("a-b", "-") == "a-b"


def key_of(kind: str, *headers: str) -> str:
    """Return a key whose lines stand behind an empty one."""
    lines = ["lQOYBGHkPzIBCADMqwErTyUiOpAsDfGhJkLzXcVbNm12QwErTyUiOpAsDfGhJkLz"] * 2
    return "\n".join([f"-----BEGIN {kind}-----", *headers, "", *lines, "=AbCd", f"-----END {kind}-----"])


def told(tree: Tree) -> str:
    """Return all that nodes of a tree say, and the bytes of its stores."""
    said = [f"{node} {tree.content(node) if node.has_content else ''}" for _, node in tree.walk()]
    assert tree.path is not None
    stores = tree.path.glob("*.db*")
    return "\n".join([*said, *(store.read_bytes().decode("latin-1") for store in stores)])


ADDRESS = "postgres://ann:hunter2hunter2@db.example.org/shop and more"


def cut_at(chars: int) -> str:
    """Return a text with an address whose `@` comes right behind so many characters."""
    before = chars - ADDRESS.index("@") - 1
    return ("words " * chars)[:before] + " " + ADDRESS


def test_a_key_that_lines_of_a_letter_break_is_masked_as_it_is_read(clone: Clone) -> None:
    for before in range(0, 40, 3):
        message = EmailMessage()
        message["From"], message["Subject"], message["Message-ID"] = "a@example.org", "Key", f"<{before}@x>"
        text = "The token of the shop, for all of you to use, is "[-before:]
        message.set_content(f"{text} {TOKEN} and goes on.\n", cte="quoted-printable")
        (clone.folder / f"{before}.eml").write_bytes(bytes(message))
    with build_tree(clone.folder) as tree:
        said = told(tree)
    assert "for all of you to use" in said
    assert TOKEN[-4:] not in said
    assert TOKEN[:8] not in said


def test_a_secret_is_masked_before_a_text_is_cut(tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(
        json.dumps(
            {
                "openapi": "3.1.0",
                "info": {
                    "title": "Shop" + " " * 2_370 + ADDRESS,
                    "version": "1",
                    "description": cut_at(20_000),
                },
                "paths": {
                    "/shop": {
                        "post": {
                            "summary": "s",
                            "parameters": [
                                {
                                    "name": "q",
                                    "in": "query",
                                    "description": cut_at(500),
                                    "schema": {"type": "string"},
                                }
                            ],
                            "requestBody": {
                                "description": cut_at(500),
                                "content": {"application/json": {"schema": {"type": "object"}}},
                            },
                            "responses": {},
                        }
                    }
                },
            }
        )
    )
    with build_tree(f"openapi:{tmp_path / 'api.json'}", out=tmp_path / "tree") as tree:
        said = told(tree)
    assert "POST /shop" in said
    assert "hunter2" not in said


@pytest.mark.parametrize("chars", [3_999, 4_000])
def test_a_word_at_the_end_of_a_cut_subject_is_left_out(tmp_path: Path, chars: int) -> None:
    (tmp_path / "mail").mkdir()
    (tmp_path / "mail" / "a.eml").write_text(
        f"From: ann@example.org\nSubject: {cut_at(chars)}\nMessage-ID: <1@x>\n\nHello there, all of you.\n"
    )
    with build_tree(f"chats:{tmp_path / 'mail'}", out=tmp_path / "tree") as tree:
        said = told(tree)
    assert "Hello there" in said
    assert "hunter2" not in said


def test_a_sign_that_a_converter_escapes_is_part_of_a_token() -> None:
    token = "3292173234940879|2tnXBEhcZtEaM3xbc4x7FUS7lFq"
    assert masked(f"The token is {token} for now.")[0] == f"The token is {'*' * 44} for now."
    escaped = token.replace("|", "\\|")
    assert masked(f"The token is {escaped} for now.")[0] == f"The token is {'*' * 45} for now."


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (key_of("PGP PRIVATE KEY BLOCK", *["Comment: User-ID:\tAnn <ann@example.org>"] * 20), "ErTyUiOpAsDf"),
        ("share = 'smb://CORP\\ann:hunter2hunter@files/office'\n", "hunter2"),
        ("share = 'smb://CORP\\\\ann:hunter2hunter@files/office'\n", "hunter2"),
        (f'{{"text": "Use this:\\n{TOKEN}\\nand no other."}}\n', TOKEN),
        (f'print("Use this:\\t{TOKEN}")\n', TOKEN),
        ('printf "machine git.example.org login bot password p@ss22kettle";cd=${WORK}\n', "ss22kettle"),
        ('N = f"machine git.example.org login bot password (ab)33kettle";X={home}\n', "33kettle"),
        ("\x1b[32mmachine a.example.org login ann password kettle77blue\x1b[0m\n", "kettle77blue"),
        ("machine a.example.org account x login ann password kettle77blue\n", "kettle77blue"),
        ("machine a.example.org password kettle77blue login ann\n", "kettle77blue"),
        ("machine a login b password\nmachine h login u password RealPass1word\n", "RealPass1word"),
        ("Use [machine git.example.org login bot password x|y44kettle](${URL}).\n", "44kettle"),
        ('{"netrc": "\\nmachine m.example.org login ann password LD1w25QOJN9y\\n"}\n', "LD1w25QOJN9y"),
    ],
    ids=[
        "long armor headers",
        "domain",
        "escaped domain",
        "behind an escape in JSON",
        "in code",
        "netrc before a variable",
        "netrc before a name",
        "netrc in colours",
        "netrc with an account first",
        "netrc with the password first",
        "netrc behind one without",
        "netrc in a link",
        "netrc in JSON",
    ],
)
@pytest.mark.parametrize("code", [False, True])
def test_a_secret_in_other_surroundings_is_masked(text: str, secret: str, code: bool) -> None:
    assert secret not in masked(text, code=code)[0]


@pytest.mark.parametrize("picture", ["ICAg" * 16, "A" * 64, "/" * 64])
@pytest.mark.parametrize("before", ["", "> ", "# "])
def test_a_key_with_a_picture_in_it_is_masked_to_its_end(picture: str, before: str) -> None:
    """A photo that a program wrote has thousands of blanks or zeros in a row."""
    first, *rest = key_of("PGP PRIVATE KEY BLOCK").split("\n")
    lines = [first, rest[0], *[rest[1]] * 300, *[picture] * 60, "kettle" + rest[1][6:], *rest[2:], "Harbour"]
    hidden = masked("\n".join(before + line for line in lines))[0]
    assert "kettle" not in hidden and hidden.endswith("Harbour")


def test_an_address_of_a_letter_in_a_page_is_no_link_of_it(tmp_path: Path) -> None:
    """It may be the password of another address, which is masked where it is read."""
    (tmp_path / "a.html").write_text(
        '<p>At postgres://ann:<a href="mailto:kettle9@db.example.org">kettle9@db.example.org</a>/shop, see <a'
        ' href="https://example.org/guide">there</a>.</p>'
    )
    with build_tree(tmp_path) as tree:
        said = json.dumps([[dict(node.attributes), tree.links(node)] for _, node in tree.walk()], default=str)
    assert "example.org/guide" in said and "kettle9" not in said


def test_a_key_that_a_page_has_in_pieces_is_masked_as_it_is_read(tmp_path: Path) -> None:
    key = f"sk-ant-api03-{'JBk6JPEA2jlfBpCnO7FJwsZwKaxgEJO26wd6Ogt89vXl6LqlGihf' * 2}"
    (tmp_path / "a.html").write_text(
        f"<html><h1>Keys</h1><p>The kettle is blue. The key is {key[:40]}<b>{key[40:80]}</b>{key[80:]}.</p>"
    )
    with build_tree(tmp_path) as tree:
        said = told(tree)
    assert "The kettle is blue" in said
    assert not any(key[at : at + 12] in said for at in (0, 40, 60, 80))


def test_a_mounted_tree_with_secrets_shows_none_in_attributes(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a.py").write_text(f"def f(a='{TOKEN}'):\n    return a\n")
    build_tree(tmp_path / "own", include_secrets=True).close()
    with build_tree(f"tree:{tmp_path / 'own'}", out=tmp_path / "tree") as tree:
        said = told(tree)
    assert "def f(a=" in said
    assert TOKEN not in said


def test_trust_shows_no_password_in_the_address_of_a_router(
    clone: Clone, capfd: pytest.CaptureFixture[str]
) -> None:
    (clone.folder / "metatree.toml").write_text(
        'router = "openai/x@https://ann:hunter2hunter2@x.example/v1"\n'
    )
    run(["trust", "--show", str(clone.folder)])
    said = capfd.readouterr().out
    assert 'sets router to "openai/x@https://ann:***@x.example/v1"' in said


def test_trust_shows_no_password_in_an_address_of_ones_own(
    clone: Clone, capfd: pytest.CaptureFixture[str]
) -> None:
    run(["build", "--tree", "own", "web:http://ann:hunter2hunter2@127.0.0.1:9/x?token=kkkk1234kkkk", "a.md"])
    capfd.readouterr()
    assert run(["trust", "--show", "own"]) == 0
    said = "".join(capfd.readouterr())
    assert "127.0.0.1:9/x" in said and "hunter2hunter2" not in said and "kkkk1234" not in said


@pytest.mark.parametrize(
    "setting",
    [
        'router = "logits/m@https://api.openai.com/v1?token=x@http://127.0.0.1:9/v1"',
        'router = "openai/m@https://ann:hunter2hunter2@http://127.0.0.1:9/v1"',
        'source = "x@docs://?token=/../../../private"',
        'source = "mcp:a@bb://c?token=x/tools/run.sh"',
        'tree = "x@docs://ann:/../../private@x/.metatree"',
    ],
)
def test_trust_hides_nothing_of_a_setting_that_may_be_read_in_two_ways(
    clone: Clone, capfd: pytest.CaptureFixture[str], setting: str
) -> None:
    (clone.folder / "metatree.toml").write_text(setting + "\n")
    run(["trust", "--show", str(clone.folder)])
    assert setting.split('"')[1] in capfd.readouterr().out


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (
            'source = ["postgresql://ann@db.example.org/shop", "."]',
            "gives the database the password in PGPASSWORD",
        ),
        (
            'source = ["database:postgres://db.example.org/shop"]',
            "gives the database the password in PGPASSWORD",
        ),
        (
            'source = ["post\\tgresql://db.example.org/shop"]',
            "gives the database the password in PGPASSWORD",
        ),
        (
            'router = " Systemone/x@http:\\t//x.example/v1"',
            "sends what OPENAI_API_KEY, SYSTEMONE_API_KEY or TYPESAFE_API_KEY holds",
        ),
        ('service = "127.0.0.1:8000"', "sends what METATREE_SECRET holds"),
        ('source = ["openapi:api.json"]', "with what METATREE_AUTH_ and the name of its host holds"),
    ],
)
def test_trust_says_which_password_or_key_goes_where_settings_lead(
    clone: Clone, capfd: pytest.CaptureFixture[str], setting: str, said: str
) -> None:
    (clone.folder / "metatree.toml").write_text(setting + "\n")
    run(["trust", "--show", str(clone.folder)])
    assert said in capfd.readouterr().out


def test_trust_says_which_credentials_an_accepted_description_is_given(
    clone: Clone, capfd: pytest.CaptureFixture[str]
) -> None:
    api = {"openapi": "3.1.0", "info": {"title": "Shop", "version": "1"}, "paths": {}}
    (clone.folder / "api.json").write_text(json.dumps(api))
    tree = clone.folder / "theirs"
    with as_user(clone.attacker):
        build_tree("openapi:api.json", "a.md", out=tree).close()
    run(["trust", "--show", str(tree)])
    assert "with what METATREE_AUTH_ and the name of its host holds" in capfd.readouterr().out


def page_of(
    monkeypatch: pytest.MonkeyPatch, body: str, kind: str, *, name: str = "hours", **options: Any
) -> FetchedPage:
    """Return what is read of a page that a server gives."""
    url = f"https://example.org/{name}?token={TOKEN}"
    answer = Fetched(url=url, status=200, body=body.encode(), headers={"content-type": kind})
    monkeypatch.setattr(_page, "fetch", lambda *_, **__: answer)
    return _page.read_page(url, {}, **options)


@pytest.mark.parametrize("kind", ["text/markdown", "text/plain", "text/html", "text/x-python"])
def test_a_page_of_any_kind_is_masked_as_it_is_read(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    body = f"# Key {TOKEN}\n\nThe till has {TOKEN} today.\n\n## More\n\nThe shop opens at nine.\n"
    page = page_of(monkeypatch, body, kind, named=False)
    said = f"{page.node()} {list(page.nodes())}"
    assert "The shop opens at nine." in said
    assert TOKEN not in said


def test_a_page_of_json_that_looks_like_a_chat_and_is_none_is_masked_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = json.dumps({"author": "ann", "body": "none", "note": "The shop opens at nine.", "key": TOKEN})
    page = page_of(monkeypatch, body, "application/json", name="hours.json", named=False)
    said = f"{page.node()} {list(page.nodes())} {page.file.text}"
    assert "The shop opens at nine." in said
    assert TOKEN not in said


def test_an_address_that_nobody_named_is_shown_without_its_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    assert TOKEN in page_of(monkeypatch, "Kettle", "text/plain").address
    assert TOKEN not in page_of(monkeypatch, "Kettle", "text/plain", named=False).address
    with pytest.raises(FetchFailed) as refused:
        page_of(monkeypatch, "\0Kettle", "application/octet-stream", named=False)
    assert TOKEN not in f"{refused.value} {refused.value.url}"


def test_a_token_of_thousands_of_letters_is_known_where_a_text_is_cut() -> None:
    def coded(value: object) -> str:
        return urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    groups = [f"{number:032x}" for number in range(80)]
    token = (
        f"{coded({'alg': 'RS256', 'typ': 'JWT'})}.{coded({'name': 'Ann', 'groups': groups})}.{'aB3-' * 80}"
    )
    for cut in (shorten_masked, cut_masked):
        assert token[:30] not in cut(f"log in with {token} today", 200)


def test_the_last_words_of_a_server_are_masked_before_they_are_cut() -> None:
    connection = ServerConnection.__new__(ServerConnection)
    words = "Tea. " * 10 + ADDRESS[: ADDRESS.index("@")] + "@db.example.org is not there."
    words += " tea" * ((_LAST_CHARS - 40) // 4)
    connection._process = cast(Any, SimpleNamespace(last_words=words, garbage=0))
    connection._name, connection._address = "shop", cast(Any, SimpleNamespace(url=""))
    said = str(connection._failed("it ended"))
    assert "is not there." in said
    assert "hunter2" not in said


def test_a_page_of_too_many_headings_is_a_text_without_secrets(clone: Clone) -> None:
    (clone.folder / "p.html").write_text(f"<p>The key is {TOKEN}.</p>" + "<h2>a</h2>" * 20_000)
    with build_tree(clone.folder) as tree:
        assert "its first 10,000 headings" in str(tree.get("p.html").attributes["note"])
        assert "The key is ****" in tree.content("p.html#<intro>")
        assert "The harbour is in the south." in tree.content("a.md")


def test_a_token_in_a_long_heading_of_a_manual_page_is_masked() -> None:
    groups = urlsafe_b64encode(json.dumps({"name": "Ann", "groups": ["kettles"] * 12}).encode()).decode()
    token = f"eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.{groups.rstrip('=')}.{'aB3-' * 80}"
    page = extract_man(f".TH tea 1\n.SH \\fBLog in\\fR with {token}\nGreen tea.\n")
    assert "Green tea." in "\n".join(page.lines)
    assert token[:30] not in "\n".join([*page.lines, *(heading.title for heading in page.headings)])


def test_keywords_that_no_schema_has_are_masked() -> None:
    more = {"x-note": f"the key is {TOKEN}", "x-more": [{"dsn": ADDRESS}]}
    said = str(usable_schema({"type": "object", "properties": {"q": {"type": "string", **more}}, **more}))
    assert "x-note" in said
    assert TOKEN not in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    "form",
    [
        '{"db": "https:\\/\\/bob:%s@db.example.com\\/x"}',
        "db.url=jdbc\\:postgresql\\://bob\\:%s@db.example.com/x",
        '[{"name": "DB_PASSWORD", "value": "%s"}]',
        "env:\n  - name: DB_PASSWORD\n    value: %s\n",
    ],
)
def test_passwords_apart_from_their_names_are_masked(form: str) -> None:
    secret = "Xk29fjQmZp77LwQnn"
    for code in (False, True):
        assert secret not in masked(form % secret, code=code)[0]
    assert masked(form % "${PASSWORD}")[1] == 0


def test_a_key_is_masked_whatever_an_accepted_index_says_of_its_file(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    (clone.folder / "till.md").write_text(
        f"# Till\n\nThe token of the till is {token}, says Ann, who keeps the till, its book and the kettle.\n"
    )
    with as_user(clone.attacker):
        build_tree(clone.folder).close()
        with Store.open(clone.metatree / "index.db") as store:
            store.execute("UPDATE file SET facts = json_remove(facts, '$.masked')")
    monkeypatch.setattr(store_module, "writable", lambda file: False)
    monkeypatch.setattr(acceptance, "writable", lambda file: False)
    for file in ("index.db", "memory.db"):
        accept(clone.metatree / file)
    with Tree.open(clone.folder) as tree:
        assert tree.index.accepted
        assert "The token of the till is ****" in tree.content("till.md")


def test_no_blank_or_end_of_a_line_beside_a_key_is_lost_in_a_document() -> None:
    for sign in "\u00a0\u2009\u3000\v\u2028\x85":
        for said in (
            shaped(f"Access key{sign}{TOKEN}{sign}Region"),
            tidy(f"Access key{sign}{TOKEN}{sign}Region"),
        ):
            assert masked(said)[0] == f"Access key {'*' * len(TOKEN)} Region", (sign, said)


def test_a_key_at_the_end_of_a_summary_is_masked_before_a_sign_is_put_behind_it(tmp_path: Path) -> None:
    key = "s.gqN4n2aqO76uU2uo4nqP8dk5"
    operation = {"tags": ["kettle"], "summary": f"Read the kettle with {key}", "responses": {}}
    api = {
        "openapi": "3.1.0",
        "info": {"title": "Tea", "version": "1"},
        "paths": {"/kettle": {"get": operation}},
    }
    (tmp_path / "api.json").write_text(json.dumps(api))
    with build_tree(f"openapi:{tmp_path / 'api.json'}", out=tmp_path / "tree") as tree:
        said = str([node for _, node in tree.walk()])
    assert "Read the kettle" in said and key not in said


@pytest.mark.parametrize("colour", ["\x1b[1;36m", "\\x1b[36m", "\\u001b[36m", "\\033[36m", "\\e[36m"])
def test_a_key_in_colours_is_masked(colour: str) -> None:
    end = colour.partition("[")[0] + "[0m"
    assert (
        masked(f"the key {colour}{TOKEN}{end} of it")[0] == f"the key {colour}{'*' * len(TOKEN)}{end} of it"
    )


@pytest.mark.parametrize(
    ("before", "key"),
    [
        ("\\e[", "key-9f86d081884c7d659a2feaa0c55ad015"),
        ("\x1b[;", "m1pL5NlryIrYI2.atlasv1." + "B5jYO1FayVU3aiF8vUefF4Ix" * 3),
        ("C:\\", "npm_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"),
        ("a\\", "rk_" + "live_4eC39HqLyjWDarjtT1zdp7dc"),
    ],
)
def test_a_key_that_begins_as_a_colour_or_an_escape_ends_is_masked(before: str, key: str) -> None:
    assert masked(f"the {before}{key} of it")[0] == f"the {before}{'*' * len(key)} of it"


@pytest.mark.parametrize("form", ["hexadecimal", "octal"])
def test_a_key_in_a_note_of_a_pdf_is_seen_in_whatever_form_a_program_writes_it(form: str) -> None:
    data = b"\xfe\xff" + f"use {TOKEN} here".encode("utf-16-be")
    said = (
        b"<" + data.hex().upper().encode() + b">"
        if form == "hexadecimal"
        else b"(" + b"".join(b"\\%03o" % each for each in data) + b")"
    )
    assert holds_secret(b"1 0 obj\n<</Type/Annot/Contents" + said + b">>\nendobj\n")
    assert not holds_secret(b"1 0 obj\n<</ID[<" + b"AB12" * 8 + b">]/Contents(tea)>>\nendobj\n")


@pytest.mark.parametrize("debug", [True, False])
def test_no_password_of_an_address_stands_in_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], debug: bool
) -> None:
    """A key where a name should be, a text where a list should be."""
    monkeypatch.chdir(tmp_path)
    address = "postgres://ann:Zx9kQ2pl@db.example.org/shop"
    (tmp_path / "servers.json").write_text(
        json.dumps({"mcpServers": {"shop": {"command": "npx", "args": f"-y server {address}"}}})
    )
    (tmp_path / "metatree.toml").write_text(f'"{address}" = 1\n')
    for command in (["gateway", "--servers", "servers.json", "--list"], ["find", "harbour"]):
        assert run([*command, *["--debug"] * debug]) != 0
        said = "".join(capfd.readouterr())
        assert "db.example.org" in said and "Zx9kQ2pl" not in said


def test_no_key_stands_in_a_warning(capfd: pytest.CaptureFixture[str]) -> None:
    key = "ghp_" + "a1B2" * 9
    with show_warnings(traceback=True):
        try:
            raise ValueError(f"{key} is no name\n{key_of('RSA PRIVATE KEY')}")
        except ValueError:
            logging.getLogger("metatree").warning("postgres://ann:Zx9kQ2pl@db failed", exc_info=True)
    said = "".join(capfd.readouterr())
    assert "ann:********@db failed" in said and "is no name" in said
    assert key not in said and "ErTyUiOpAsDf" not in said
