"""Secrets are known by what they look like, wherever a text comes from: none is kept, found or shown."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from metatree_agents.tools.toolkit import Toolkit
from metatree_memory_tools import build_tree
from metatree_memory_tools.documents._document_text import Extracted
from metatree_memory_tools.git.tools import blame, find_change, show_commit
from metatree_memory_tools.text.lines import text_of, texts_of
from metatree_routers import text_evidence

from metatree import Tree, search
from metatree._util import _secret_shapes
from metatree._util.secret_columns import masked_columns
from metatree._util.secret_text import masked, redacted
from metatree.errors import StaleSource, UserError
from metatree.trees.masking import masked_data
from tests.integration.git_repository import Repository

pytestmark = pytest.mark.integration

AWS = "AKIA" + "IOSFODNN7EXAMPLE"
TOKEN = "ghp_" + "a1B2" * 9
PEM = (
    "-----BEGIN RSA "
    + "PRIVATE KEY-----\n"
    + ("MIIEow" + "A1b2" * 14 + "\n") * 12
    + "-----END RSA "
    + "PRIVATE KEY-----\n"
)
PASSWORD = "hunter2" + "hunter2"
SECRETS = (AWS, TOKEN, "MIIEow", PASSWORD)
STAY = {
    "settings.py": f'"""Settings."""\n\nKEY = "{AWS}"\n\n\ndef connect():\n'
    f'    return open("x", password="{PASSWORD}")\n',
    "app.ts": f"const key = '{TOKEN}';\nexport function f() {{ return key }}\n",
    "deploy.yaml": f"name: shop\nreplicas: 3\nimage: shop/web\ndb:\n  user: ann\n  password: {PASSWORD}\n  host: db\n",
    "docs/use.md": f"# Use\n\nLog in to the shop with the token `{TOKEN}` of the office.\n",
    "docs/use.rst": f"Use\n===\n\nConnect to https://ann:{PASSWORD}@shop.example.org/ from the office, and wait.\n",
    "notes.txt": "Where the key of the server is, and why it is there:\n" * 40 + PEM + "So it goes.\n",
    "chat.json": json.dumps(
        {"messages": [{"role": "user", "content": f"Why is {AWS} refused by the shop?"},
        {"role": "assistant", "content": "It is old."}]}
    ),
    "page.html": f"<html><body><h1>Shop</h1><p>Call it with {TOKEN} or wait for a long while.</p></body></html>",
}  # fmt: skip
GO = {
    "key.txt": PEM,
    "terraform.tfstate": '{"version": 4}',
    "state.json": '{"version": 4, "terraform_version": "1.5.7", "serial": 3, "lineage": "x", "outputs": {}}',
    "service-account.json": json.dumps(
        {"type": "service_account", "project_id": "x", "private_key": PEM, "client_id": "1"}
    ),
    "firebase.json": json.dumps({"type": "service_account", "private_key_id": "1", "private_key": "short"}),
    ".envrc": "export A=b\n",
    "aws.ini": f"[default]\naws_access_key_id = {AWS}\n"
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n",
    "putty.txt": "PuTTY-User-Key-File-3: ssh-rsa\n",
}  # fmt: skip


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    for name, text in {**STAY, **GO}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def told(tree: Tree) -> str:
    """All that a tree keeps and shows, as text and as the bytes of its files."""
    said = [str((node, tree.content(node) if node.has_content else "")) for _, node in tree.walk()]
    said += [text for _, _, text in tree.texts([node.id for _, node in tree.walk()])]
    assert tree.path is not None
    for end in ("index.db", "memory.db", "index.db-wal", "memory.db-wal"):
        if (tree.path / end).exists():
            said.append((tree.path / end).read_bytes().decode("latin-1"))
    return "\n".join(said)


def test_secrets_are_masked_where_there_is_more_and_files_of_nothing_else_are_left_out(source: Path) -> None:
    with build_tree(source, out=source.parent / "tree") as tree:
        files = {node.id for _, node in tree.walk() if node.kind == "file" or node.id in STAY}
        assert files == STAY.keys()
        omitted = dict(tree.omissions())
        assert omitted.keys() == GO.keys()
        assert all("may hold secrets" in reason for reason in omitted.values())
        found = search(["Why is the key of the shop refused?"], tree=tree)
        said = told(tree) + str(found) + "".join(str(each) for each in texts_of(tree, sorted(files)))
        assert [secret for secret in SECRETS if secret in said] == []
        assert tree.get("settings.py").attributes["masked"] == "2 keys or passwords in it masked"
        assert not tree.stale()


_LIKE_A_CHAT = {"author": "ops@example.org", "body": "none"}


def test_json_that_looks_like_a_chat_and_is_none_is_read_as_other_files_are(tmp_path: Path) -> None:
    """What is no chat was cut into pieces before it was masked, and was not looked at for what it is."""
    state = {**_LIKE_A_CHAT, "terraform_version": "1.5.7", "lineage": "x", "outputs": {"a": "kettle"}}
    key = {**_LIKE_A_CHAT, "rows": ["x"] * 390, "key": PEM.split("\n"), "more": ["y"] * 300}
    for name, value in (("state.json", state), ("web.json", key)):
        (tmp_path / name).write_text(json.dumps(value, indent=1))
    with build_tree(tmp_path) as tree:
        assert "a state of Terraform" in dict(tree.omissions())["state.json"]
        lines = text_of(tree, "web.json").lines
        shown = "".join(node.description + str(node.content) for _, node in tree.walk())
    assert "MIIEow" not in shown + "".join(lines) and any("****" in line for line in lines)


@pytest.mark.parametrize(
    ("name", "text"),
    [("log.md", "\\_" * 300_000), ("users.csv", 'user,password\n"kettle ' + "x" * 600_000)],
    ids=["escapes", "an open quotation mark"],
)
def test_a_text_is_masked_within_a_few_times_its_size(name: str, text: str) -> None:
    data = text.encode()
    tracemalloc.start()
    try:
        masked_data(name, data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40 * len(data)


def test_lines_and_columns_stay(source: Path) -> None:
    with build_tree(source, out=source.parent / "tree") as tree:
        for path in ("settings.py", "app.ts", "notes.txt", "deploy.yaml"):
            now, then = text_of(tree, path).lines, STAY[path].splitlines()
            assert [len(line) for line in now] == [len(line) for line in then]
        assert (
            tree.content("settings.py::connect")
            == f'def connect():\n    return open("x", password="{"*" * 14}")'
        )
        assert "replicas: 3" in tree.content("deploy.yaml") and "host: db" in tree.content("deploy.yaml")


def test_whoever_asks_for_secrets_has_them_and_the_other_way_round(source: Path) -> None:
    place = source.parent / "tree"
    with build_tree(source, out=place, include_secrets=True) as tree:
        assert PASSWORD in tree.content("settings.py::connect") and AWS in str(text_of(tree, "settings.py"))
        assert "key.txt" in tree and not tree.stale()
    with build_tree(source, out=place) as tree:
        assert [secret for secret in SECRETS if secret in told(tree).replace("\0", "")] == []
        assert "key.txt" not in tree


@pytest.mark.parametrize("name", ["a.md", "a.docx"])
def test_what_is_masked_from_now_on_leaves_the_index_of_words(
    tmp_path: Path, docx: Callable[..., bytes], name: str
) -> None:
    """It was built with secrets, or by a version that knew fewer; the file is the same."""
    said = f"The harbour lies south. The token is {TOKEN}, and there is more to say. " * 3
    data = docx(f"<w:p><w:r><w:t>{said}</w:t></w:r></w:p>") if name == "a.docx" else said.encode()
    (tmp_path / name).write_bytes(data)
    for secrets in (True, False):
        with build_tree(tmp_path, include_secrets=secrets) as tree:
            evidence = text_evidence(tree)
            assert bool(evidence.score([TOKEN])) == secrets
            evidence.refresh()
        kept = b"".join(file.read_bytes() for file in (tmp_path / ".metatree").glob("index.db*"))
        assert (TOKEN.lower().encode() in kept) == secrets
        assert b"harbour" in kept


def test_documents_and_databases(source: Path, pdf: Callable[..., bytes], docx: Callable[..., bytes]) -> None:
    for name in (*STAY, *GO):
        (source / name).unlink()
    (source / "a.pdf").write_bytes(pdf([[(10, f"The key is {AWS} for now.")]]))
    (source / "a.docx").write_bytes(docx(f"<w:p><w:r><w:t>The token is {TOKEN}, for now.</w:t></w:r></w:p>"))
    with sqlite3.connect(source / "shop.db") as connection:
        connection.execute("CREATE TABLE note (text TEXT)")
        connection.execute("INSERT INTO note VALUES (?)", (f"say {AWS}",))
    with build_tree(source, out=source.parent / "tree") as tree:
        assert {node.id for node in tree.children()} >= {"a.pdf", "a.docx", "shop.db"}
        texts = "".join(tree.content(node) for _, node in tree.walk() if node.has_content)
        assert "The key is ****" in texts and "The token is ****" in texts
        said = told(tree) + str(text_of(tree, "a.pdf"))
        assert [secret for secret in SECRETS if secret in said] == []
    with build_tree(source / "shop.db", out=source.parent / "other") as tree:
        assert [secret for secret in SECRETS if secret in told(tree)] == []


@pytest.mark.parametrize(
    "document", [Extracted(lines=[f"See {TOKEN}."]), Extracted(links=[f"https://x.example/{TOKEN}"])]
)
def test_a_secret_of_a_document_is_masked_wherever_it_lies(document: Extracted) -> None:
    assert TOKEN in json.dumps(document.as_json())
    assert TOKEN not in json.dumps(document.without_secrets().as_json())


def long_title(chars: int) -> str:
    """A title of which a cut behind so many characters leaves the first of a token, too few to know it by."""
    return ("https://shop.example.org/" + "log/in/" * 50)[: chars - 12] + "/" + TOKEN


@pytest.mark.parametrize("chars", [100, 120, 150, 200, 220, 300])
def test_no_beginning_of_a_secret_stays_where_a_title_is_cut(
    chars: int, tmp_path: Path, docx: Callable[..., bytes], pdf: Callable[..., bytes]
) -> None:
    title = long_title(chars)
    source = tmp_path / "shop"
    source.mkdir()
    heading = f'<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>{title}</w:t></w:r></w:p>'
    (source / "a.docx").write_bytes(docx(f"{heading}<w:p><w:r><w:t>Then wait.</w:t></w:r></w:p>"))
    (source / "a.pdf").write_bytes(pdf([[(24, title), (10, "Then wait.")]]))
    page = f"<title>{title}</title><meta name='description' content='{title}'>"
    (source / "a.html").write_text(
        f"<html><head>{page}</head><body><h1>{title}</h1><p>Wait.</p></body></html>"
    )
    (source / "a.md").write_text(f"# {title}\n\n{title}\n")
    (source / "a.rst").write_text(f"{title}\n{'=' * len(title)}\n\n{title}\n")
    (source / "a.txt").write_text(f"{title}\n" * 5)
    (source / "a.py").write_text(f'"""{title}"""\n\n\ndef login(where="{title}"):\n    """{title}"""\n')
    (source / "chat.json").write_text(
        json.dumps(
            {
                "title": title,
                "messages": [{"role": title, "content": title}, {"role": "b", "content": "Yes."}],
            }
        )
    )
    with build_tree(source, out=tmp_path / "tree") as tree:
        assert {node.id for _, node in tree.walk()} >= {path.name for path in source.iterdir()}
        assert TOKEN[:8] not in told(tree)
    operation = {"summary": title, "description": title, "tags": [title], "responses": {}}
    described = {"title": title, "version": "1", "description": title}
    interface = {"openapi": "3.1.0", "info": described, "paths": {"/shop": {"get": operation}}}
    (tmp_path / "api.json").write_text(json.dumps(interface))
    with build_tree(f"openapi:{tmp_path / 'api.json'}", out=tmp_path / "api") as tree:
        assert TOKEN[:8] not in told(tree)


def test_a_secret_in_the_name_of_a_part_is_in_no_id(source: Path) -> None:
    for name in (*STAY, *GO):
        (source / name).unlink()
    with sqlite3.connect(source / "shop.db") as connection:
        connection.execute(f'CREATE TABLE "{TOKEN}" (text TEXT)')
        connection.execute('CREATE TABLE "customer" (text TEXT)')
    heading = "dop_v1_" + "0123456789abcdef" * 4
    (source / "a.md").write_text(
        f"# A\n\n## [{heading[:7]}](x){heading[7:]}\n\n{'Text. ' * 60}\n\n## Other\n\nMore.\n"
    )
    with build_tree(source, out=source.parent / "tree") as tree:
        ids = [node.id for _, node in tree.walk()]
        assert "shop.db#customer" in ids and "a.md#other" in ids
        assert {"shop.db", "a.md"} == {each.partition("#masked-")[0] for each in ids if "#masked-" in each}
        kept = told(tree)
        assert [secret for secret in (TOKEN, heading) if secret in kept] == []


@pytest.mark.parametrize("repeated", [True, False])
def test_a_key_whose_lines_are_headings_of_a_document_is_in_no_table(
    tmp_path: Path, docx: Callable[..., bytes], repeated: bool
) -> None:
    lines = PEM.splitlines()
    if not repeated:
        lines[1:-1] = [
            f"{number:02}{line[:40]}{number:02}{line[40:]}" for number, line in enumerate(lines[1:-1])
        ]
    heading = '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>{}</w:t></w:r></w:p>'
    body = (
        "".join(map(heading.format, lines)) + "<w:p><w:r><w:t>" + "The harbour. " * 400 + "</w:t></w:r></w:p>"
    )
    style = '<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style>'
    (tmp_path / "a.docx").write_bytes(docx(body, styles=style))
    with build_tree(tmp_path) as tree:
        kept = told(tree).lower()
        assert "harbour" in kept and len(tree) > len(lines)
        assert [line for line in lines[1:-1] if line[:24].lower() in kept] == []


def test_a_key_that_python_reads_as_a_name_is_in_no_table(tmp_path: Path) -> None:
    """Python takes letters of full width in names for those of ASCII."""
    (tmp_path / "a.py").write_text("import \uff21KIAQQ901ZZZZYYYWWWW\nimport json\n")
    with build_tree(tmp_path) as tree:
        kept = told(tree)
        assert "AKIAQQ901ZZZZYYYWWWW" not in kept and "json" in kept


def test_a_key_in_why_something_cannot_be_read_is_in_no_table(tmp_path: Path) -> None:
    (tmp_path / "api.yaml").write_text('openapi: "AKIAQQ951ZZZZYYYWWWW"\ninfo: {title: x}\n')
    (tmp_path / "a.md").write_text("# A\n\nText.\n")
    with sqlite3.connect(tmp_path / "b.db") as connection:
        connection.execute("CREATE TABLE t(a)")
        connection.execute("PRAGMA writable_schema = 1")
        connection.execute("UPDATE sqlite_master SET sql = 'CREATE TABLE t(a) \"AKIAQQ964ZZZZYYYWWWW\"'")
    with build_tree(tmp_path, f"openapi:{tmp_path / 'api.yaml'}", out=tmp_path / "tree") as tree:
        reasons = dict(tree.omissions())
        assert any("b.db" in path and "malformed database schema" in why for path, why in reasons.items()), (
            reasons
        )
        assert any("no OpenAPI description" in why for why in reasons.values()), reasons
        with pytest.raises(UserError, match="malformed database schema") as raised:
            tree.content(next(node for _, node in tree.walk() if node.title == "b.db"))
        assert tree.path is not None
        kept = b"".join(file.read_bytes() for file in tree.path.glob("index.db*"))
        assert (
            b"malformed database schema" in kept
            and b"AKIAQQ9" not in kept
            and "AKIAQQ9" not in str(raised.value)
        )


def test_histories(tmp_path: Path) -> None:
    made = Repository(tmp_path / "shop")
    made.commit(f"Use {TOKEN}", {"a.py": f'KEY = "{AWS}"\n\n\ndef f():\n    return 1\n'})
    made.commit("Take the key out", {"a.py": "KEY = None\n\n\ndef f():\n    return 1\n"})
    with build_tree(made.root, history=True) as tree:
        node = tree.get("a.py")
        said = told(tree) + blame.function(node=node, tree=tree)
        said += show_commit.function(node=node, tree=tree, commit="HEAD")
        said += show_commit.function(node=node, tree=tree, commit="HEAD~1")
        said += find_change.function(node=node, tree=tree, term="KEY")
        assert [secret for secret in SECRETS if secret in said] == []


def test_a_password_where_a_history_is_cut_is_masked(tmp_path: Path) -> None:
    made = Repository(tmp_path / "shop")
    address = "postgres://ann:teapotlidkettle@db.example.org/shop"
    body = "w" * 19_972 + f" {address}"  # to where a message is cut
    made.commit(f"Use a database\n\n{body}", {"a.txt": "The shop.\n"})
    hidden = "w" * 59_780 + "\n"  # of a file that is not shown: to where changes are cut
    made.commit("Write of it", {".env": hidden, "a.txt": f"The db is at {address} {'w' * 60_000}\n"})
    with build_tree(made.root, history=True) as tree:
        said = told(tree) + show_commit.function(node=tree.get("a.txt"), tree=tree, commit="HEAD")
    assert "postgres://ann:****" in said and "teapotlid" not in said


@pytest.mark.parametrize(
    "text",
    [
        "commit 3f786850e387550fdab836ed7e6dc881de23001b of 2024",
        "id = '550e8400-e29b-41d4-a716-446655440000'",
        "integrity: sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
        "src='data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ'",
        "token: Token2Type = make_token_v2(secret_name1)",
        "password = os.environ['DB_PASSWORD_1']",
        "def check(password: str, api_key_v2: Key2 | None) -> token_v2_result:",
        "tokens = tokenizer.encode(text2, max_tokens=512)",
        "api_key = '${API_KEY_1}'; url = f'https://{user}:{password1}@{host}'",
        "url = 'https://user:password@example.org'",
        '.sk-circle-fade-dot:before { animation: sk-chase-animation-delay }',
        "HTTPAuthorizationCredentials bearer HTTPAuthorizationCredentialsModel",
        "-----BEGIN PRIVATE KEY----- is how such a file begins.",
        'if "PRIVATE KEY" not in text: return',
    ],
)  # fmt: skip
def test_ordinary_code_stays_as_it_is(text: str) -> None:
    assert masked(text, code=True) == (text, 0)


def test_a_tool_that_reads_a_whole_file_shows_no_secret_and_follows_no_link(tmp_path: Path) -> None:
    """Of a file in parts; then git puts a link to a file that was left out in its place."""
    (tmp_path / ".env").write_text(f"TOKEN={TOKEN}\n")
    guide = tmp_path / "use.md"
    guide.write_text(f"# Use\n\nTake the token `{TOKEN}`.\n\n## Then\n\nLog in.\n\n## At last\n\nGo.\n")
    with build_tree(tmp_path) as tree:
        kit = Toolkit(tree, refresh=False)
        said = asyncio.run(kit.read("use.md")).text
        assert said == guide.read_text().replace(TOKEN, "*" * len(TOKEN)).rstrip("\n")
        guide.unlink()
        guide.symlink_to(".env")
        with pytest.raises(StaleSource):
            asyncio.run(kit.read("use.md"))


LONG = "".join(f"{number:x}Zq" for number in range(1_000, 1_200))
JWT = "eyJhbGciOiJSUzI1NiJ9" + ".eyJ" + LONG + "." + LONG[::-1]
PEM_IN_BASE64 = "LS0tLS1CRUdJTi" + "BSU0EgUFJJVkFURS" + LONG


@pytest.mark.parametrize("secret", [LONG, JWT, PEM_IN_BASE64, "v1" + PEM.strip()])
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SSH_PRIVATE_KEY={}", False),
        ("refresh_token: {}", False),
        ("- name: API_KEY\n  value: {}", False),
        ("go --token {} --blue", False),
        ("go --token {} --blue", True),
        ("api_key = '{}'", True),
        ('define("api_key", "{}")', True),
        ('open("host=db;token={};x=1")', True),
        ("ALTER USER ann PASSWORD '{}'", True),
        ("<token>{}</token>", True),
        ("https://ann:{}@shop.example.org/", False),
    ],
)
def test_a_long_secret_is_masked_to_its_end_whatever_stands_before_it(
    text: str, code: bool, secret: str
) -> None:
    whole = f"the kettle\n{text.format(secret)}\nis blue"
    pieces = [secret[at : at + 12] for at in range(2, len(secret) - 12) if " " not in secret[at : at + 12]]
    if " " in secret and "//" in text:  # no address
        return
    for shown, number in [masked(whole, code=code)] + [redacted(whole)] * (not code):
        assert number == 1
        assert [piece for piece in pieces if piece in shown and piece.strip("-")] == []
        assert shown.startswith("the kettle\n") and shown.endswith("\nis blue")


def test_a_long_cell_of_a_column_of_secrets_is_masked_to_its_end() -> None:
    shown, number = masked_columns(f"user,token,colour\nann,{LONG},blue\n")
    assert (shown, number) == (f"user,token,colour\nann,{'*' * len(LONG)},blue\n", 1)


@pytest.mark.parametrize("name", ["a.md", "a.rst", "a.txt"])
def test_a_key_is_masked_where_its_signs_are_escaped(name: str, tmp_path: Path) -> None:
    keys = [
        "ghp\\_" + LONG[:36],
        "ghp&#95;" + LONG[:36],
        "sk\\_live\\_" + LONG[:24],
        "SG\\." + LONG[:22] + "&period;" + LONG[:43],
    ]
    keys += [
        "".join(f"&#{ord(letter)};" for letter in TOKEN),
        "".join(f"&#x{ord(letter):x};" for letter in AWS),
    ]
    text = "# Kettle\n\n" + "".join(f"The kettle \\[{key}\\] is blue &amp; good.\n\n" for key in keys)
    (tmp_path / name).write_text(text + "The kettle is good and old.\n" * 60)
    shown, number = masked(text + "The API\\_KEY: 7Rk2mZpX\\_4vB9n is old.")
    assert number == len(keys) + 1
    assert shown.count("] is blue &amp; good.") == len(keys) and shown.endswith(" is old.")
    with build_tree(tmp_path) as tree:
        assert tree.content(name).count("The kettle \\[*") == len(keys)
        said = told(tree)
        assert [key for key in keys if key[-20:] in said] == []


HEX = "0a1b2c3d" * 9
KEY = "a1B2c3D4e5" * 10
KEYS_OF_PROVIDERS = {
    "hf_ gsk_ r8_ lin_api_ ntn_ xai- pplx- CLOJARS_ ATBB AKID oy2 NRAK- jina_": KEY[:34],
    "glsa_ glrt- glcbt- GR1348941 GOCSPX- dckr_pat_ gldt- sq0csp- tskey-auth- figd_ LTAI pscale_tkn_ PMAK- HRKU-": KEY[
        :24
    ],
    "SG. hvs. ya29. whsec_ sntrys_ ATATT3 ABSK AKCp FlyV1=fm2_ dt0c01. dp.pt. xapp-1- sk.eyJ": KEY[:90],
    "dapi key- SK dop_v1_ shpat_ sbp_ rubygems_ sntryu_ pul-": HEX[:32],
    "a1B2c3D4e5f6g7.atlasv1.": KEY[:65],
    "https://a.example/?sig= 123456789:AA https://a.example/bot123456789:AA": KEY[:40],
    "HEXKEY:": HEX[:32] + "-us12",
    "patAbcdefgh123456.": HEX[:64],
    "https://hooks.slack.com/services/": "T01234567/B01234567/" + KEY[:24],
    "https://discord.com/api/webhooks/123456789012345678/": KEY[:68],
    "pat-na1-": "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f",
    "re_": KEY[:8] + "_" + KEY[:24],
    '{"auths": {"https://index.docker.io/v1/": {"auth": "': KEY[:32] + '=="}}}',
    '{"kty": "OKP", "d": "': KEY[:43] + '"}',
    "eyJhbGciOiJSUzI1NiJ9.eyJ": KEY * 50 + "." + KEY,
    "eyJ": KEY * 25 + ".eyJ" + KEY + "." + KEY,
    "eyJhbGciOiJSU0EtT0FFUCJ9.": ".".join([KEY, KEY[:16], KEY, KEY[:22]]),
    "---- BEGIN SSH2 ENCRYPTED " + "PRIVATE KEY ----\n": (KEY[:70] + "\n") * 9 + "---- END ",
    "LS0tLS1CRUdJTi" + "BSU0EgUFJJVkFURS": (KEY[:60] + "\n") * 9,
}


@pytest.mark.parametrize(
    ("begin", "key"),
    [
        (begin, key)
        for begins, key in KEYS_OF_PROVIDERS.items()
        for begin in ([begins] if '"' in begins or "----" in begins else begins.split())
    ],
)
@pytest.mark.parametrize("code", [True, False])
def test_keys_of_providers_are_known_without_a_name(begin: str, key: str, code: bool) -> None:
    bare = key.rstrip('"}=\n').removesuffix("---- END ")
    shown, number = masked(f"the kettle {begin}{key} is blue", code=code)
    assert number == 1
    assert [
        at for at in range(len(bare) - 9) if "\n" not in bare[at : at + 9] and bare[at : at + 9] in shown
    ] == []
    assert shown.startswith("the kettle ") and shown.endswith(" is blue")


SHAPES = [
    "token\\=",
    "&#95;",
    "SG.",
    "hf_1",
    "sig=",
    "-eyJaaaaaaaaaa.eyJaaaaaaaaaa",
    "LS0tLS1CRUdJTi" + "BSU0EgUFJJVkFURS" + "a" * 60 + "\n",
    "-us1",
    ":AA",
    '"kty":"d":"',
    '"auths":"auth":"',
    "---- BEGIN SSH2 ENCRYPTED " + "PRIVATE KEY ----\n",
    "-----BEGIN " + "PRIVATE KEY-----",
    "://a:",
    "eyJaaaaaaaaaa-",
    "sk-",
    "token=",
    "token:a1",
    "bearer ",
    "secret",
    "password is ",
    "--password ",
    "password default ",
    "identified by ",
    "pass",
    "authorization: a ",
    "curl ",
    "curl -u a:",
    "pass_1 'a1",
    "password    ",
    "password:\n ",
    "password: |\n   ",
    "password: !a &b ",
    'password value="',
    "password>",
    "password a",
]


@pytest.mark.parametrize("text", SHAPES)
@pytest.mark.parametrize("code", [True, False])
def test_no_text_takes_long(text: str, code: bool) -> None:
    whole = text * (300_000 // len(text))
    said, _ = masked(whole, code=code)
    assert len(said) == len(whole)  # lines and columns stay


@pytest.mark.parametrize(
    "name",
    [
        "app.log",
        "kettle.service",
        "Dockerfile.prod",
        "values.yaml.example",
        "f.ini.bak",
        "my.env.local",
        "page.j2",
        "a.desktop",
        "notes.org",
    ],
)
def test_what_is_no_program_may_have_passwords_without_quotes(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("about the kettle\nENV DB_PASSWORD=hunter19Zq7Kettle\n")
    with build_tree(tmp_path) as tree:
        assert all("hunter19" not in str(node) for _, node in tree.walk())
        assert "about the kettle" in tree.content(name) and "hunter19" not in tree.content(name)
    assert b"hunter19" not in (tmp_path / ".metatree" / "index.db").read_bytes()


@pytest.mark.parametrize(
    "text",
    [
        "define('DB_PASSWORD', 'hunter19Zq7Kettle');",
        'settings.put("password", "hunter19Zq7Kettle")',
        'password <- "hunter19Zq7Kettle"',
        "<key>password</key>\n\t<string>hunter19Zq7Kettle</string>",
        'open("Server=x;Password=hunter19Zq7Kettle;")',
    ],
)
def test_passwords_in_quotes_are_masked_in_programs_however_they_are_named(text: str) -> None:
    assert masked(text, code=True) == (text.replace("hunter19Zq7Kettle", "*" * 17), 1)


@pytest.mark.parametrize(
    "text",
    [
        *("password2={}", "PASSWORD1: {}", "DB_PASSWORD_2={}", "SECRET_KEY_BASE={}", "secret_key_base: {}"),
        *(
            "API_KEY_STAGING={}",
            "passwordHash: {}",
            "password_confirmation: {}",
            "PGPASS={}",
            "DB_PASS={}",
            "pass: {}",
        ),
        *("credentials: {}", "encryption_key: {}", "APP_KEY=base64:{}", "passcode={}", "passwords: {}"),
        *("password ?= {}", "password := {}", "run --db-password {}", "run --token '{}'", "pg:pass={}"),
        *(
            "password TEXT DEFAULT '{}'",
            "pwd varchar(40) not null default '{}'",
            "IDENTIFIED BY '{}'",
            "PASSWORD '{}'",
        ),
        *(
            "Authorization: Basic {}",
            '"Authorization": "Token {}"',
            "curl -s -u ann:{} http://x",
            "curl --user=ann:{} x",
        ),
        *(
            "amqp://ann:{}@h1,{{x}}@h2",
            "[amqp://ann:{}@h1;ben:${{PW}}@h2]",
            "smtp://ann:{}@mail;from=%s@x.org",
            "mongodb://ann:{}@h1,***@h2",
            "http://ann:{}@h,...@h2",
            "machine h login ann password {};{{x}}",
            "machine h login ann password {}:%s",
            "machine a login b password ${{PW}};machine h login ann password {}",
            "machine h login ann password {}=***",
        ),
    ],
)
def test_passwords_are_masked_however_they_are_named(text: str) -> None:
    shown = text.format("*" * 17)
    assert masked(text.format("hunter19Zq7Kettle")) in ((shown, 1), (shown.replace("base64:", "*" * 7), 1))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "password2 = '{}'",
            "PASSWORD1: '{}'",
            "SECRET_KEY_BASE = '{}'",
            "passwordHash: '{}'",
            "DB_PASS = '{}'",
        ),
        *("encryption_key: str = '{}'", "run --token '{}'", "pwd text DEFAULT '{}'", "PASSWORD '{}'"),
    ],
)
def test_passwords_in_programs_are_masked_however_they_are_named(text: str) -> None:
    assert masked(text.format("hunter19Zq7Kettle"), code=True) == (text.format("*" * 17), 1)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "the bypass: hunter19Zq7Kettle",
            "compass=hunter19Zq7Kettle",
            "passport: ab12cd34ef",
            "app: app12345key",
        ),
        *("pass --with hunter19Zq7Kettle", "import secrets\n\nSALT = 'abc12345'", "identified by ann12345"),
        *(
            "curl -o file12345 http://x/y:z1234",
            "docker run -u 1000:1000x x",
            "Authorization: required1 for all",
        ),
    ],
)
def test_names_that_only_begin_or_end_so_hold_nothing(text: str) -> None:
    assert masked(text) == (text, 0)
    assert masked(text, code=True) == (text, 0)


@pytest.mark.parametrize(
    "text", ['f"password={x12345678}"', 'login(token, "abc12345678")', "token: Token2Class = x"]
)
def test_what_only_looks_so_stays(text: str) -> None:
    assert masked(text, code=True) == (text, 0)


def rows_of(tree: Tree) -> str:
    """All rows of the index of a tree."""
    tables = tree.index.rows("SELECT name FROM sqlite_master WHERE type = 'table'")
    return "\n".join(str(row) for (name,) in tables for row in tree.index.rows(f'SELECT * FROM "{name}"'))


def test_sources_and_histories_are_read_again_when_more_is_masked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a version that knows more kinds of keys: what they say has not changed."""
    repository = Repository(tmp_path / "shop")
    repository.commit(f"Deploy with {TOKEN}", {"a.md": "# Shop\n"})
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
        connection.execute(f"CREATE TABLE lamp (name TEXT DEFAULT '{TOKEN}')")
    place, sources = tmp_path / "tree", (str(tmp_path / "shop"), f"database:{tmp_path / 'shop.db'}")
    with monkeypatch.context() as before:
        before.setattr(_secret_shapes, "SHAPES", ())
        for name in ("metatree_memory_tools.build._source", "metatree_memory_tools.git.log"):
            before.setattr(f"{name}.SHAPES_VERSION", "1")
        with build_tree(*sources, out=place, history=True) as tree:
            assert rows_of(tree).count(TOKEN) > 1
    with Tree.open(place) as tree:
        assert tree.stale()
        tree.refresh()
        assert TOKEN not in rows_of(tree) and "Deploy with" in rows_of(tree)


def test_the_second_of_two_lines_of_netrc_is_masked_too() -> None:
    for between in ('","', ";", "),(", " "):
        lines = between.join(f"machine h{number} login u password hunter2{number}" for number in (2, 3))
        assert "hunter2" not in masked(lines)[0], between
