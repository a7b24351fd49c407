"""Secrets that were cut, broken or taken apart before they were masked."""

from __future__ import annotations

import base64
import json
import re
import sqlite3
import zipfile
import zlib
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from pathlib import Path

import pytest
from metatree_agents.cli._main import run
from metatree_agents.service.web import _pdf_secrets
from metatree_agents.service.web._pdf_secrets import holds_secret
from metatree_memory_tools import build_tree
from metatree_memory_tools.conversations.formats import mail
from metatree_memory_tools.conversations.formats.mail import letter_of
from metatree_memory_tools.conversations.formats.message import ExportFile
from metatree_memory_tools.conversations.formats.texts import text_of_html
from metatree_memory_tools.databases._tools import query_database, save_query
from metatree_memory_tools.documents._document_text import Extracted, tidy
from metatree_memory_tools.documents._docx import extract_docx
from metatree_memory_tools.documents._html import extract_html
from metatree_memory_tools.documents._man import extract_man
from metatree_memory_tools.text.descriptions import cut_masked, shorten_masked
from metatree_memory_tools.text.markdown import plain
from metatree_memory_tools.web._links import links_of

from metatree import Tree
from metatree._util.secret_text import masked
from metatree.notes.archive import export_memory
from metatree.notes.notes import remember
from tests.documents import make_docx
from tests.integration.git_repository import Repository
from tests.integration.trust.prepared import Clone

pytestmark = pytest.mark.integration

TOKEN = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
KEY = (
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA1c9yh3G0abcDEF12345abcDEF12345abcDEF12345abcDEF\n"
    "-----END RSA PRIVATE KEY-----"
)


def test_a_log_that_looks_like_a_chat_is_not_cut_in_a_secret(clone: Clone) -> None:
    lines = (
        "starting",
        "connecting postgres://ann:s3cretpw99@db.example.org/shop",
        f"token 123456789:{'AAF3abcDE' * 4}",
    )
    log = clone.folder / "app-log.txt"
    log.write_text("".join(f"[2024-05-17 14:03:2{at}] {line}\n" for at, line in enumerate(lines)))
    assert run(["build", "app-log.txt"]) == 0
    with Tree.open(clone.folder / ".metatree") as tree:
        shown = str([(node.title, node.description, node.content) for _, node in tree.walk()])
    assert "postgres://ann:***" in shown
    assert "s3cretpw99" not in shown
    assert "AAF3abc" not in shown


NETRC = "machine m.example.org login ann password hunter71"
AWS = "AKIAQ3EGRB7TZ5KMX2WD"
POSTGRES = "postgres://ann:s3cretpw99@db.example.org/shop"


def test_no_long_line_of_a_page_is_cut_in_a_secret() -> None:
    for before in range(99_950, 100_001, 7):
        page = f"<p>{'w' * 9} {'x' * (before - 10)} {TOKEN} {POSTGRES} end</p>"
        shown = "".join(extract_html(page.encode()).without_secrets().lines)
        assert "ghp_a" not in shown
        assert "s3cret" not in shown
        assert shown.endswith(" end")


def test_what_a_document_says_of_itself_is_not_cut_in_a_secret() -> None:
    at = POSTGRES.index("@")
    begin = '<p xmlns:dc="x">'
    said = f"<dc:description>Notes{' ' * 3_000}{POSTGRES[:at]}"
    begin += f"<!--{'x' * ((1 << 16) - len(begin) - len(said) - 7)}-->{said}"
    assert len(begin) == 1 << 16  # as much as is read at once
    for blanks, shown in ((6_000, "Notes postgres://ann:**********@db.example.org/shop"), (30_000, None)):
        core = f"{begin}{POSTGRES[at:]}{' ' * blanks}</dc:description></p>"
        facts = extract_docx(make_docx("<w:p/>", docProps__core=core)).without_secrets().facts
        assert facts.get("description") == shown


def test_no_long_heading_is_cut_in_a_secret() -> None:
    for behind in range(930, 1_000, 3):
        title = plain(f"[Setup](https://x/{'x' * behind}) {TOKEN}")
        assert TOKEN in title or "ghp_" not in title


def test_no_long_subject_is_cut_between_the_words_of_a_secret() -> None:
    at = POSTGRES.index("@")
    words = [
        f"=?utf-8?q?{word.replace(' ', '_')}?=" for word in ("x" * 3_930, f" {POSTGRES[:at]}", POSTGRES[at:])
    ]
    letter = letter_of(f"Subject: {chr(10).join(f' {word}' for word in words)}\n\ntext\n".encode())
    assert "s3cret" not in f"{letter.title} {letter.text}"


def test_no_letter_that_cannot_be_taken_apart_is_cut_in_a_secret() -> None:
    at = POSTGRES.index("@")
    for head in ("Subject: x\n" + "\n--x" * 20_001, "".join(_nested(1_100))):
        raw = f"{head}\n\n"
        raw += "x" * (100_000 - len(raw) - at - 1) + f" {POSTGRES}\n"
        letter = letter_of(raw.encode())
        assert len(letter.text) > 99_000
        assert "s3cret" not in letter.text


def _nested(depth: int) -> Iterator[str]:
    for number in range(depth):
        yield f"Content-Type: multipart/mixed; boundary=a{number}\n\n--a{number}\n"


def test_no_long_line_of_an_export_is_cut_in_a_secret() -> None:
    for before in range((1 << 20) - 50, 1 << 20, 7):
        line = f"{'x' * (before // 2)} {'x' * (before - before // 2 - 2)} {TOKEN} end\nnext".encode()
        lines = list(ExportFile("a.txt", partial(BytesIO, line)).lines())
        assert sum(TOKEN in each for each in lines) == 1
        assert lines[-1] == "next"
    whole = b"y" * (3 << 20)
    assert "".join(ExportFile("a.txt", partial(BytesIO, whole)).lines()) == whole.decode()


def test_lines_of_a_key_that_are_headings_are_no_titles() -> None:
    first, second = (char * 70 for char in ("MIIEowAb1", "pQ5rS7tU9"))
    lines = [f"<h3>{line[:70]}</h3>" for line in (first, second)]
    page = f"<p>-----BEGIN RSA PRIVATE KEY-----</p>{''.join(lines)}<p>-----END RSA PRIVATE KEY-----</p>"
    text = extract_html(page.encode()).without_secrets()
    assert [set(each.title) for each in text.headings] == [{"*"}, {"*"}]
    assert extract_html(b"<h3>One</h3><p>two").without_secrets().headings[0].title == "One"


def test_the_tools_of_databases_mask_a_key_whose_lines_are_rows(clone: Clone) -> None:
    lines = [KEY.split("\n")[0], *("abcDEF12345" * 6 for _ in range(3)), KEY.split("\n")[-1]]
    with sqlite3.connect(clone.folder / "log.db") as store:
        store.execute("CREATE TABLE log(id INTEGER PRIMARY KEY, message TEXT)")
        store.executemany("INSERT INTO log(message) VALUES (?)", [(line,) for line in lines])
    with build_tree(clone.folder) as tree:
        node = tree.get("log.db")
        for shown in (
            query_database.function(node=node, tree=tree, sql="SELECT * FROM log"),
            save_query.function(node=node, tree=tree, sql="SELECT * FROM log").content,
        ):
            assert "PRIVATE KEY" in shown or "***" in shown
            assert "abcDEF" not in shown
    with build_tree(clone.folder, include_secrets=True) as tree:
        shown = query_database.function(node=tree.get("log.db"), tree=tree, sql="SELECT * FROM log")
        assert "abcDEF" in shown


def test_what_a_security_scheme_says_is_masked(clone: Clone) -> None:
    scheme = {"type": "http", "scheme": f"bearer {POSTGRES}", "in": TOKEN, "name": "X-Key"}
    described = {"openapi": "3.1.0", "info": {"title": "Shop"}, "paths": {}}
    described["components"] = {"securitySchemes": {"key": scheme}}
    (clone.folder / "api.json").write_text(json.dumps(described))
    with build_tree("openapi:api.json", out=clone.folder / "t") as tree:
        shown = str([node for _, node in tree.walk()])
    assert "X-Key" in shown
    assert "s3cretpw99" not in shown
    assert "ghp_" not in shown


def test_a_letter_whose_headers_end_too_early_is_not_shown_as_it_was_sent() -> None:
    body = f"The token is {TOKEN[:20]}=\n{TOKEN[20:]}, and that is all.\n"
    for head in ("X-Spam: 1\nBAYES 0.0\n", "--x\n" * 20_001):
        letter = letter_of(
            f"Subject: shop\n{head}Content-Transfer-Encoding: quoted-printable\n\n{body}".encode()
        )
        assert TOKEN in letter.text  # in one piece, so that it is masked
        assert TOKEN[:20] not in masked(letter.text)[0]


def test_no_mark_of_a_page_that_is_nested_too_deep_parts_a_key() -> None:
    deep = "<div>" * 3_000
    page = f"{deep}<p>The token is {TOKEN[:20]}<wbr>{TOKEN[20:]}</p><p>next</p>"
    assert extract_html(page.encode()).lines == [f"The token is {TOKEN}", "next"]


@pytest.mark.parametrize("title", ["Kafka notes", "Kafka streams", ">>\nstream\n"])
def test_a_pdf_is_looked_at_behind_any_word(title: str) -> None:
    packed = zlib.compress(b"BT (tea) Tj ET")
    stream = b"3 0 obj <<>> stream\n" + packed + b"\nendstream endobj\n"
    note = (
        f"1 0 obj <</Title({title})>> endobj\n2 0 obj <</Type /Annot /Contents({TOKEN})>> endobj\n".encode()
    )
    for before in (b"", stream):
        assert holds_secret(before + note + stream)
        assert holds_secret(before + b"%" + b"tea " * 400_000 + note + b" " * 1_500_000 + stream)
    assert not holds_secret(stream)


@pytest.mark.parametrize("key", [TOKEN, POSTGRES])
def test_a_key_in_the_name_of_a_sender_is_in_one_piece(key: str) -> None:
    for cut in range(5, len(key) - 5, 7):
        texts = (f"Ann {key[:cut]}", key[cut:])
        words = [f"=?utf-8?b?{b64encode(text.encode()).decode()}?=" for text in texts]
        letter = letter_of(f"From: {' '.join(words)} <ann@example.org>\nSubject: x\n\ntext\n".encode())
        assert letter.author == f"Ann {key}"


def test_a_key_whose_first_line_a_reader_has_filled_is_masked() -> None:
    for blank in (" ", "\n", "\n  "):
        text = KEY.replace("BEGIN RSA PRIVATE KEY", f"BEGIN{blank}RSA{blank}PRIVATE{blank}KEY")
        assert "abcDEF" not in masked(f"It begins:\n{text}\nand ends.")[0]


def test_no_token_is_cut_that_goes_on_for_long(tmp_path: Path) -> None:
    claims = {"name": "Ann", "groups": ["kettles"] * 4_000}
    parts = (json.dumps(part).encode() for part in ({"alg": "HS256", "typ": "JWT"}, claims))
    token = ".".join(
        [
            *(urlsafe_b64encode(part).decode().rstrip("=") for part in parts),
            "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5",
        ]
    )
    assert len(token) > 40_000
    for cut in (shorten_masked, cut_masked):
        assert token[:10] not in cut(f"It is {token} today", 300)
    repository = Repository(tmp_path / "r")
    repository.commit(f"Add tea\n\nIt is {token} today", {"a.md": "tea"})
    with build_tree(tmp_path / "r", history=True) as tree:
        assert token[:10] not in str(tree.index.rows("SELECT subject, body FROM history_commit"))


@pytest.mark.parametrize(
    "text",
    [
        TOKEN.replace("_", "\\_**") + "**",
        f"{TOKEN[:9]}**{TOKEN[9:20]}**{TOKEN[20:]}",
        f"{TOKEN[:9]}`{TOKEN[9:]}`",
    ],
)
def test_a_key_of_which_a_part_is_bold_or_code_is_masked(text: str) -> None:
    hidden = masked(f"The **bold** token is {text} and `code`")[0]
    assert not re.search(r"\w{5}", hidden.removeprefix("The **bold** token is "))
    assert hidden.startswith("The **bold** token is *")
    assert hidden.endswith(" and `code`")
    for behind in ("`.", "`", "**.", "`, and"):  # a mark behind a key is none of it
        assert masked(f"It is {behind[0]}{TOKEN}{behind}") == (
            f"It is {behind[0]}{'*' * len(TOKEN)}{behind}",
            1,
        )


@pytest.mark.parametrize(
    "page",
    [
        "<span>{}</span><button>Copy</button>",
        "<span>Access key</span><span>{}</span>",
        "<label>Token</label><code>{}</code>",
        "<code>{}</code><a href='/copy'>copy</a>",
        "<code>{}</code>_copy",
    ],
)
def test_a_key_in_an_element_of_its_own_is_masked_beside_another_element(tmp_path: Path, page: str) -> None:
    text = page.format(TOKEN)
    (tmp_path / "a.html").write_text(f"<html><body><p>The tea is hot.</p><div>{text}</div></body></html>")
    (tmp_path / "a.eml").write_text(
        f"From: a@example.org\nSubject: x\nContent-Type: text/html\n\n<p>The tea is hot.</p><p>{text}</p>\n"
    )
    with build_tree(tmp_path) as tree:
        said = [tree.content("a.html"), tree.content("a.eml#1")]
    assert all("tea is hot" in each and "***" in each and TOKEN[8:] not in each for each in said)


@pytest.mark.parametrize(
    "inside", ["<code>{}</code><button>Copy</button>", "<span>Key</span><code>{}</code>"]
)
def test_a_key_in_the_text_of_a_link_is_masked_beside_another_element(inside: str) -> None:
    key = "AKIAQ3EGRB7TZ5KMX2WD"
    page = (
        f'<a href="/edit">{inside.format(key)}</a><a href="/tea">The t<b>e</b>a<!-- x --> is <i>hot</i></a>'
    )
    keys, tea = links_of(page, "http://a.example/")
    assert "***" in masked(keys.text)[0] and key not in masked(keys.text)[0]
    assert tea.text == "The tea is hot"


def test_a_page_that_is_saved_as_one_file_is_read_as_a_letter(tmp_path: Path) -> None:
    text = "From: <Saved>\nSubject: Keys\nMIME-Version: 1.0\nContent-Type: text/html\n"
    text += f"Content-Transfer-Encoding: quoted-printable\n\n<p>The tea is hot: {TOKEN[:20]}=\n{TOKEN[20:]} .</p>\n"
    (tmp_path / "a.mhtml").write_text(text)
    with build_tree(tmp_path) as tree:
        said = tree.content("a.mhtml#1")
    assert "tea is hot: ***" in said and TOKEN[20:] not in said


def test_numbers_of_lines_are_kept_apart_from_code_on_a_page(tmp_path: Path) -> None:
    """They are a column of their own where they are seen."""
    lines = ["machine api.example.org login ann password kettle7Zq9harbour", TOKEN]
    rows = "\n".join(f'<span class="linenos">{n}</span>{line}' for n, line in enumerate(lines, start=1))
    (tmp_path / "a.html").write_text(
        f"<html><body><h1>Tea</h1><pre>{rows}</pre><p>H<sub>2</sub>O</p></body></html>"
    )
    with build_tree(tmp_path) as tree:
        said = "\n".join(tree.content(node) for _, node in tree.walk() if node.path == "a.html")
    assert "1 machine api.example.org login ann password ***" in said and "H2O" in said
    assert "kettle7" not in said and TOKEN not in said


def test_a_pdf_of_which_nobody_can_say_what_is_in_it_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    assert holds_secret(b"%PDF-1.7\n1 0 obj\n<<>>\nendobj\ntrailer <</Encrypt 2 0 R>>\n")
    packed = zlib.compress(b"tea " * 20_000)
    stream = b"3 0 obj <<%s>> stream\n" + packed + b"\nendstream endobj\n"
    assert not holds_secret(stream % b"")
    monkeypatch.setattr(_pdf_secrets, "_MOST_UNPACKED", 1_000)
    assert holds_secret(stream % b"") and not holds_secret(stream % b"/Subtype /Image")


_NOTE = f"<< /Type /Annot /Contents (The key is {AWS}) >>".encode()
_DEFLATED = zlib.compress(_NOTE)
_PICTURE = b"<< /Subtype /Image /Width 1 /Length 1"


@pytest.mark.parametrize(
    "pdf",
    [
        b"6 0 obj\n" + _PICTURE + b" /Alt (stream) >>\nendobj\n7 0 obj\n" + _NOTE + b"\nendobj\n",
        b"6 0 obj (x endobj 6 0 obj " + _PICTURE + b">> stream\n)\nendobj\n7 0 obj\n" + _NOTE + b"\nendobj\n",
        b"% " + _PICTURE + b">>\nstream\n\n7 0 obj << /Contents " + AWS.encode("utf-16-be") + b">> endobj\n",
        b"6 0 obj (stream) endobj 7 0 obj << /Type /ObjStm >> stream\n" + _DEFLATED + b"\nendstream endobj\n",
        b"7 0 obj " + _PICTURE + b" /Type /ObjStm >> stream\n" + _DEFLATED + b"\nendstream endobj\n",
        b"7 0 obj " + _PICTURE + b" /Type /Obj#53tm >> stream\n" + _DEFLATED + b"\nendstream endobj\n",
        b"7 0 obj << /N 1 %" + _PICTURE + b"\n>> stream\n" + _DEFLATED + b"\nendstream endobj\n",
        b"7 0 obj << /Type /ObjStm >> % as a list\nstream\n" + _DEFLATED + b"\nendstream endobj\n",
        b"7 0 obj << /Type /ObjStm >> stream\n" + _DEFLATED[:-6] + b"\xff" * 9 + b"\nendstream endobj\n",
        b"7 0 obj << /Type /ObjStm >> stream\n"
        + b"\x78\x01\0\x09\0\xf6\xffendstream"
        + _DEFLATED[2:]
        + b"\nendstream endobj\n",
    ],
)
def test_nothing_in_a_pdf_passes_for_a_picture_that_is_none(pdf: bytes) -> None:
    assert holds_secret(b"%PDF-1.7\n" + pdf)
    for said in (AWS.encode(), AWS.encode("utf-16-be"), _DEFLATED[2:-6]):
        pdf = pdf.replace(said, b"tea")
    assert not holds_secret(pdf)


_TEXT = b"BT /F1 14 Tf (%s) Tj ET"
_FORM = b"7 0 obj << /Subtype /Form /BBox [0 0 9 9] %s>> stream\n"
_ENDS = b"\nendstream endobj\n"


@pytest.mark.parametrize(
    "said", [b"/Filter [/ASCII85Decode /FlateDecode]", b"/Filter/A#53CII85Decode/Length 9"]
)
def test_a_key_that_a_form_of_a_pdf_draws_from_ascii85_is_seen(said: bytes) -> None:
    """As reportlab writes them."""
    for text, expected in ((AWS.encode(), True), (b"tea", False)):
        drawn = _TEXT % text
        packed = base64.a85encode(zlib.compress(drawn) if b"Flate" in said else drawn, wrapcol=60)
        assert holds_secret(b"%PDF-1.7\n" + _FORM % said + packed + b"~>" + _ENDS) is expected


@pytest.mark.parametrize(
    ("said", "packed"),
    [
        (b"/Filter /ASCIIHexDecode ", (_TEXT % AWS.encode()).hex().encode() + b">"),
        (b"/Filter /ASCII85Decode ", b"vvvvvvv~>"),
        (b"/Filter [/FlateDecode /LZWDecode] ", zlib.compress(b"tea")),
        (b"/Filter 9 0 R ", zlib.compress(b"tea")),
        (b"/F#69lter /LZWDecode ", b"tea"),
        (b"/Filter /FlateDecode /DecodeParms << /Predictor 12 >> ", zlib.compress(b"tea")),
        (b"/Type /XRef /Filter /FlateDecode /DecodeParms << /Predictor 12 >> ", zlib.compress(b"tea")),
        (b"/Subtype /Image /Filter /FlateDecode ", zlib.compress(_TEXT % AWS.encode())),
    ],
)
def test_a_form_of_a_pdf_that_is_packed_in_another_way_is_not_given(said: bytes, packed: bytes) -> None:
    assert holds_secret(b"%PDF-1.7\n5 0 obj 5 endobj\n" + _FORM % said + packed + _ENDS)


@pytest.mark.parametrize(
    "text",
    [
        b"(The key is " + AWS[:9].encode() + b"\\" + AWS[9:].encode() + b")",
        b"<" + b"g".join(b"%02x" % sign for sign in b"The key is " + AWS.encode()) + b">",
        b"(\xfe\xff" + f"The key is {AWS[:4]}\x1ben\x1b{AWS[4:]}".encode("utf-16-be") + b")",
    ],
)
def test_a_key_in_a_text_of_a_pdf_is_seen_as_a_viewer_reads_it(text: bytes) -> None:
    assert holds_secret(b"%PDF-1.7\n1 0 obj\n<< /Type /Annot /Contents " + text + b" >>\nendobj\n")


def test_an_object_with_much_before_it_is_no_picture() -> None:
    said = b"<< /Type /ObjStm " + b"/Pad /Tea " * 200 + b"/Subtype /Image >> stream\n"
    assert holds_secret(b"5 0 obj tea endobj 7 0 obj " + said + _DEFLATED + _ENDS)


def test_tables_and_pictures_of_a_pdf_may_be_packed_in_any_way() -> None:
    places = (
        b"7 0 obj << /Type /XRef /W [1 2 1] /Filter /FlateDecode /DecodeParms << /Predictor 12 >> >> stream\n"
    )
    picture = b"8 0 obj << /Subtype /Image /Width 9 /Filter [/ASCII85Decode /DCTDecode] >> stream\nvvv~>"
    signature = b"9 0 obj << /Type /Sig /Filter /Adobe.PPKLite >> endobj\n"
    assert not holds_secret(places + zlib.compress(b"\2tea") + _ENDS + picture + _ENDS + signature)


def test_a_pdf_that_unpacks_for_long_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its streams has all those behind it in itself."""
    begins = b"stream\n\x78\x9c"
    data = begins + (b"\0\x09\0\xf6\xff" + begins) * 1_000
    assert not holds_secret(data)
    with monkeypatch.context() as patch:
        patch.setattr(_pdf_secrets, "_MOST_READ", 1_000_000)
        assert holds_secret(data)
    monkeypatch.setattr(_pdf_secrets, "_MOST_STREAMS", 1_000)
    assert holds_secret(data) and not holds_secret(data[: -len(begins)])


def test_a_key_of_a_book_is_kept_apart_from_the_elements_beside_it(tmp_path: Path) -> None:
    chapter = (
        f"<html><body><h1>Tea</h1><header>Access key</header><aside>{TOKEN}</aside><footer>Keep it</footer>"
        f"<p>The tea <b>i</b>s hot.</p><p><span>Token</span><code>{TOKEN}</code><sup>1</sup></p>"
        f'<p><a href="https://a.example.org/token={TOKEN}/(a,b)">here</a></p><div>the key<p/>{TOKEN}</div>'
        f"<div>Login<p/>{NETRC}</div><div>Login<section></section>{NETRC}</div><label>a</label><textarea>{NETRC}</textarea>"
        f'<div>the key<!-- <b>old</b> -->{TOKEN} is</div><p><img src="a.png" alt="icon"/>{TOKEN}</p></body></html>'
    )
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata></metadata><manifest><item id="a" href="a.xhtml"/>'
        '</manifest><spine><itemref idref="a"/></spine></package>'
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="c.opf"/></rootfiles></container>'
    )
    with zipfile.ZipFile(tmp_path / "a.epub", "w") as archive:
        for name, text in (("META-INF/container.xml", container), ("c.opf", package), ("a.xhtml", chapter)):
            archive.writestr(name, text)
    with build_tree(tmp_path) as tree:
        said = "\n".join(tree.content(node) for _, node in tree.walk() if node.path == "a.epub")
    assert "Access key" in said and "***" in said and TOKEN[8:] not in said and "hunter71" not in said
    assert "The tea **i**s hot." in said and "[here](https://a.example.org/token=***" in said


def test_a_key_of_a_notebook_is_kept_apart_from_the_name_of_an_image(tmp_path: Path) -> None:
    source = f"# Tea\n![icon](a.png){TOKEN} is![x](b.png)![](c.png){TOKEN}\nThe ![tea](d.png) is hot.\n"
    source += f"![icon](e.png){NETRC}\nLogin![](f.png){NETRC}\n"
    cell = {"cell_type": "markdown", "metadata": {}, "source": source}
    (tmp_path / "a.ipynb").write_text(
        json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]})
    )
    with build_tree(tmp_path) as tree:
        said = "\n".join(tree.content(node) for _, node in tree.walk() if node.path == "a.ipynb")
    assert said.count("***") >= 2 and TOKEN[8:] not in said and "hunter71" not in said
    assert "The tea is hot." in said


def test_a_key_of_a_page_that_is_too_deep_is_known_by_the_marks_beside_it(tmp_path: Path) -> None:
    deep = "<div>" * 2_100 + "x" + "</div>" * 2_100
    page = f"<p>Key <b>ID</b><code>{TOKEN}</code><button>Copy</button></p><p>Key<img>{TOKEN}<sup>1</sup></p>"
    (tmp_path / "a.html").write_text(f"<html><body><h1>Tea</h1>{page}{deep}</body></html>")
    with build_tree(tmp_path) as tree:
        said = tree.content("a.html")
    assert TOKEN[8:] not in said and "Copy" in said


def test_a_line_of_a_key_is_no_title_of_a_document() -> None:
    lines = [f"{number}{'aB3dE5fG7hJ9kL1m' * 4}"[:64] for number in range(4)]
    key = ["-----BEGIN RSA PRIVATE KEY-----", *lines, "-----END RSA PRIVATE KEY-----"]
    hidden = Extracted(["Tea", *key], title=lines[1], facts={"author": f"by{lines[2]}"}).without_secrets()
    assert not [line for line in lines if line in str(hidden.as_json())]


@pytest.mark.parametrize("tag", ["button", "textarea", "menu", "dir", "hgroup", "search", "optgroup"])
@pytest.mark.parametrize("read", [lambda page: "\n".join(extract_html(page.encode()).lines), text_of_html])
def test_boxes_of_a_page_stand_apart_from_the_words_beside_them(tag: str, read: Callable[[str], str]) -> None:
    key = f"<code>{AWS[:9]}<wbr>{AWS[9:]}</code>"
    for inside, beside in ((NETRC, "<b>Copy</b>"), ("Copy", NETRC), ("Copy", key)):
        page = f"<div><label>Key</label><{tag}>{inside}</{tag}>{beside}</div><p>The kettle is blue.</p>"
        said = masked(read(page))[0]
        assert "hunter71" not in said and AWS[9:] not in said, said
        assert "Copy" in said or "optgroup" in page


@pytest.mark.parametrize(
    "picture", ["<svg><path/></svg>", "<canvas></canvas>", "<img>", "<input>", "<video></video>"]
)
def test_pictures_of_a_page_part_the_words_beside_them(picture: str) -> None:
    said = masked("\n".join(extract_html(f"<p>Key{picture}{NETRC}</p>".encode()).lines))[0]
    assert said == f"Key {NETRC.replace('hunter71', '********')}"


@pytest.mark.parametrize(
    "apart",
    [
        '<w:r><w:sym w:char="F0E0"/></w:r>',
        "<w:r><w:t>&#13;</w:t></w:r>",
        "<w:r><w:drawing><w:docPr/></w:drawing></w:r>",
        "<w:r><w:pict/></w:r>",
    ],
)
def test_signs_and_pictures_of_a_letter_part_the_words_beside_them(apart: str) -> None:
    for text in (NETRC, f"{AWS[:9]}</w:t></w:r><w:r><w:t>{AWS[9:]}"):
        data = make_docx(f"<w:p><w:r><w:t>Key</w:t></w:r>{apart}<w:r><w:t>{text}</w:t></w:r></w:p>")
        said = "\n".join(extract_docx(data).without_secrets().lines)
        assert "hunter71" not in said and AWS[9:] not in said and "Key" in said


@pytest.mark.parametrize("apart", ["\\h'3n'\\fB", "\\l'10n'\\fB", "\u00a0\\fB", "\\[u00A0]\\fB"])
@pytest.mark.parametrize("fill", ["", ".nf\n"])
def test_a_motion_in_a_manual_page_parts_the_words_beside_it(apart: str, fill: str) -> None:
    for text in (NETRC, f"{AWS}\\fR is"):
        page = f".TH TEA 1\n.SH DESCRIPTION\nThe kettle.\n.PP\n{fill}Key{apart}{text} old.\n"
        said = "\n".join(extract_man(page).without_secrets().lines)
        assert "hunter71" not in said and AWS[4:] not in said and "Key " in said


def test_a_hyphen_at_the_end_of_a_line_joins_no_word_to_a_line_of_netrc() -> None:
    assert tidy(f"to log\ufffe{NETRC}") == f"to log- {NETRC}"


@pytest.mark.parametrize(
    "string",
    [
        b"(the key " + AWS[:9].encode() + b"\\\n" + AWS[9:].encode() + b" is)",
        b"("
        + b"".join(
            (b"\\000%c" if chr(sign).isdigit() else b"\\0%c") % sign for sign in f"see {AWS} now".encode()
        )
        + b")",
        b"<FEFF" + ("kettle " * 1500 + AWS).encode("utf-16-be").hex().encode() + b">",
    ],
)
def test_a_note_of_a_pdf_is_looked_at_in_whatever_form_its_string_is(string: bytes) -> None:
    assert holds_secret(b"%PDF-1.7\n1 0 obj\n<< /Type /Annot /Contents " + string + b" >>\nendobj\n")


def test_an_end_of_a_line_in_what_a_document_says_of_itself_parts_words() -> None:
    assert tidy(f"Server\r{AWS}\x1fin\x03it") == f"Server {AWS} in it"


@pytest.mark.parametrize("kind", ["pre", "blockquote"])
def test_blocks_of_a_message_stand_on_lines_of_their_own(tmp_path: Path, kind: str) -> None:
    text = ["Login", {"type": kind, "text": NETRC}, "is old, and so is the kettle"]
    message = {"id": 1, "type": "message", "date": "2024-05-17T10:00:00", "from": "Ann", "text": text}
    chat = {"name": "Ann", "type": "personal_chat", "id": 1, "messages": [message]}
    (tmp_path / "result.json").write_text(json.dumps(chat))
    with build_tree(tmp_path) as tree:
        said = "\n".join(tree.content(node) for _, node in tree.walk() if node.has_content)
    assert "Login\nmachine" in said and "hunter71" not in said


def test_two_keys_in_elements_beside_each_other_are_two() -> None:
    google = "AIza" + "Sy1B2c3D4e5F6g7H8i9J0kLmNoPqRsTuVw2"
    page = f"<p>See <code>{google}</code><code>{AWS}</code> here, <b>{TOKEN[:12]}</b>{TOKEN[12:]} there.</p>"
    said = masked("\n".join(extract_html(page.encode()).lines))[0]
    assert (
        AWS[4:] not in said and google[8:] not in said and TOKEN[8:12] not in said and TOKEN[12:] not in said
    )


def test_a_letter_that_no_parser_takes_is_cut_in_no_line() -> None:
    head = "From: ann@example.org\nSubject: Tea\n\n" + "--x\n" * 20_001 + "=\n" * 55_000
    pad = 200_000 - len(head) - len("postgres://ann:s3cretpw99")
    text = letter_of(f"{head}{'w' * (pad - 1)} {POSTGRES} is it\n".encode()).text
    assert "s3cretpw99" not in masked(text)[0]


def test_a_letter_that_is_too_large_ends_with_a_whole_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mail, "_MOST_BYTES", 400)
    head = (
        "From: ann@example.org\nSubject: Tea\nDate: Mon, 02 Mar 2026 10:00:00 +0000\n\nThe kettle is blue.\n"
    )
    for name, before in (("a.eml", ""), ("b.mbox", "From ann Mon Mar  2 10:00:00 2026\n")):
        pad = "x" * (370 - len(head)) + "\n"
        (tmp_path / name).write_text(f"{before}{head}{pad}It is at {POSTGRES} for now.\n")
        with build_tree(f"chats:{tmp_path / name}", out=tmp_path / f"{name}.tree") as tree:
            said = "\n".join(tree.content(node) for _, node in tree.walk() if node.has_content)
        assert "The kettle is blue." in said
        assert "It is at" not in said or "postgres://" not in said or "***" in said


def test_no_soft_break_of_a_letter_puts_a_word_before_a_key() -> None:
    letter = (
        f"From: ann@example.org\nSubject: Tea\nno header\n\nThe access key id=\n{TOKEN}\nThe har=\nbour.\n"
    )
    said = letter_of(letter.encode()).text
    assert TOKEN[8:] not in said and "The harbour." in said


def _chats(folder: Path, kind: str) -> None:
    """Write exports with a key beside a mark, which stands for another element."""
    if kind == "Slack":
        texts = [
            f"<@U2>{TOKEN} is new",
            f"{TOKEN}<https://a.example.org> there",
            f"(<#C1|tea>{TOKEN})",
            "<@U2>s <!here|h>a",
        ]
        day = [{"ts": f"1715939{n}00.000100", "user": "U1", "text": text} for n, text in enumerate(texts)]
        (folder / "tea").mkdir()
        (folder / "tea" / "2024-05-17.json").write_text(json.dumps(day))
    elif kind == "Telegram":
        text = ["The id", {"type": "code", "text": TOKEN}, "is new", {"type": "bold", "text": "e"}, "r"]
        message = {"id": 1, "type": "message", "date": "2024-05-17T10:00:00", "from": "Ann", "text": text}
        chat = {"name": "Ann", "type": "personal_chat", "id": 1, "messages": [message]}
        (folder / "result.json").write_text(json.dumps(chat))
    else:
        cue = f"00:01.000 --> 00:02.000\nThe id<b>{TOKEN}</b>is<00:00:01.500><c>{TOKEN}</c> n<b>e</b>w\n"
        other = "00:03.000 --> 00:04.000\nThe kettle of the harbour is blue, and stands beside the large window\n\n"
        (folder / "a.vtt").write_text("WEBVTT\n\n" + other * 9 + cue)


@pytest.mark.parametrize("kind", ["Slack", "Telegram", "WebVTT"])
@pytest.mark.parametrize("source", ["", "chats:"])
def test_a_key_of_a_chat_is_kept_apart_from_the_marks_beside_it(
    tmp_path: Path, source: str, kind: str
) -> None:
    (tmp_path / "export").mkdir()
    _chats(tmp_path / "export", kind)
    with build_tree(f"{source}{tmp_path / 'export'}", out=tmp_path / "tree") as tree:
        said = "\n".join(tree.content(node) for _, node in tree.walk() if node.has_content)
    assert "***" in said and TOKEN[8:] not in said
    assert {"Slack": "@U2s @ha", "Telegram": " newer", "WebVTT": " new"}[kind] in said


@pytest.mark.parametrize("before", ["", "salt &amp; pepper\n", "a \\n `b`\n"])
@pytest.mark.parametrize("key", [KEY, KEY.replace("-----", "---- ").replace("RSA", "SSH2"), f"x = {TOKEN}"])
def test_a_text_may_end_anywhere_in_a_key(before: str, key: str) -> None:
    for end in range(len(key) + 1):
        text = before + key[:end]
        assert len(masked(text)[0]) == len(text)


@pytest.mark.parametrize(
    "said", ["postgres://ann:{}@db.example.org/shop", "machine nas.example.org login ann password {}"]
)
def test_what_is_made_of_a_memory_has_no_part_of_a_secret(tmp_path: Path, said: str) -> None:
    """Its title, and the branch of two on one subject: an export leaves out what it knows as a secret."""
    (tmp_path / "a.md").write_text("# Tea\n")
    password = "Zq9Xw7Kv3LmN5tRt8Yb2Hd6Jf4"
    secret = said.format(password)
    with build_tree(tmp_path) as tree:
        for text in (
            "{} is the copy of the shop",
            "{} is slow",
            "The copy of the harbour shop of tea is reached at {} and slow",
        ):
            remember(tree, text.format(secret))
        nodes = [node for _, node in tree.walk() if node.id.startswith("memor")]
        texts = [tree.content(node) for node in nodes if node.has_content]
        export_memory(tree, tmp_path / "out.metatree")
    assert len(nodes) >= 4 and sum(password in text for text in texts) == 3
    assert not [
        each
        for node in nodes
        for each in (node.id, node.title, node.description)
        if "zq9xw7" in each.casefold()
    ]
    with zipfile.ZipFile(tmp_path / "out.metatree") as archive:
        assert b"zq9xw7" not in b"".join(archive.read(name) for name in archive.namelist()).lower()
