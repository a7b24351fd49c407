"""Every secret that docs/threats.md promises to mask, in every type of text, between every sign: nowhere in a tree."""

from __future__ import annotations

import base64
import csv
import html
import io
import json
import random
import sqlite3
import string
import zipfile
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from pathlib import Path

import pytest
from metatree_memory_tools import build_tree

from metatree import Tree
from metatree.errors import UserError

pytestmark = pytest.mark.integration

LETTERS = string.ascii_letters + string.digits
BEFORE, BEHIND = " \"'([,;=:\n", " \"')],;=:\n"
WORDS = ("kettle", "harbour", "lantern", "orchard", "violet", "marble", "thimble", "saddle", "copper")


class Maker:
    """Makes secrets and prose, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def letters(self, number: int, of: str = LETTERS) -> str:
        while True:
            made = "".join(self.chance.choices(of, k=number))
            if sum(map(str.isdigit, made)) > 1:
                return made

    def prose(self, words: int = 0) -> str:
        number = words or self.chance.choice([2, 8, 20, 29, 31, 40, 60, 90])
        return " ".join(self.chance.choices(WORDS, k=number)).capitalize() + "."

    def more(self) -> list[str]:
        """Lines without secrets, so that a file is not left out as nothing else."""
        return [self.prose(20) for _ in range(12)]

    def secrets(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each kind of secret, and the parts of it of which none may be seen."""
        for begin, number in (("ghp_", 36), ("glpat-", 20), ("sk-proj-", 48), ("sk_live_", 24), ("npm_", 36)):
            body = self.letters(number)
            yield begin + body, [body]
        body = self.letters(16, string.ascii_uppercase + "234567")
        yield f"AKIA{body}", [body]
        body = self.letters(43)
        said = base64.urlsafe_b64encode(json.dumps({"sub": self.letters(12)}).encode()).decode().rstrip("=")
        yield f"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.{said}.{body}", [body]
        body = self.letters(12)
        yield f"postgres://ann:{body}@db.example.org:5432/x", [body]
        body = self.letters(12)
        yield f"machine m.example.org login ann password {body}", [body]
        for kind, gap in (
            ("RSA PRIVATE KEY", ""),
            ("OPENSSH PRIVATE KEY", ""),
            ("PGP PRIVATE KEY BLOCK", "\n"),
        ):
            lines = [self.letters(64, LETTERS + "+/") for _ in range(4)]
            text = "\n".join([f"-----BEGIN {kind}-----{gap}", *lines, f"-----END {kind}-----"])
            yield text, [line[10:40] for line in lines]


def below(begin: str, text: str) -> str:
    return "\n".join(begin + line for line in text.split("\n"))


def letter(make: Maker, secret: str) -> bytes:
    message = EmailMessage()
    message["From"], message["To"] = "ann@example.org", "bob@example.org"
    message["Date"], message["Subject"] = "Mon, 02 Mar 2026 10:00:00 +0000", f"Tea {secret}".split("\n")[0]
    message.set_content("\n\n".join([make.prose(), secret, make.prose()]))
    message.add_alternative(f"<p>{make.prose()}</p><pre>{html.escape(secret)}</pre>", subtype="html")
    message.add_attachment(
        f"# Tea\n\n{secret}\n".encode(), maintype="text", subtype="markdown", filename="a.md"
    )
    return message.as_bytes()


def table(make: Maker, secret: str) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerows(
        [["name", secret], ["a", secret], *([f"w{n}", make.prose(3)] for n in range(60))]
    )
    return out.getvalue().encode()


def database(make: Maker, secret: str) -> bytes:
    with sqlite3.connect(":memory:") as store:
        store.execute("CREATE TABLE tea(name TEXT, price TEXT)")
        store.executemany("INSERT INTO tea VALUES (?, ?)", [(make.prose(2), secret), (secret, make.prose(2))])
        store.execute("CREATE VIEW teas AS SELECT name, price FROM tea")
        store.commit()
        return store.serialize()


def notebook(make: Maker, secret: str) -> bytes:
    lines = [f"{line}\n" for line in secret.split("\n")]
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": lines},
        {"output_type": "error", "ename": "E", "evalue": secret, "traceback": lines},
    ]
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Tea\n", make.prose(), " ", *lines]},
        {"cell_type": "code", "metadata": {}, "source": ['a = """', *lines, '"""'], "outputs": outputs},
    ]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}).encode()


def book(make: Maker, secret: str) -> bytes:
    said, out = html.escape(secret), io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr(
            "META-INF/container.xml",
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="c.opf"/></rootfiles></container>',
        )
        archive.writestr(
            "c.opf",
            '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
            f"<dc:title>Tea</dc:title><dc:description>{said}</dc:description></metadata><manifest>"
            '<item id="a" href="a.xhtml"/></manifest><spine><itemref idref="a"/></spine></package>',
        )
        archive.writestr("a.xhtml", f"<html><body><h1>Tea</h1><p>{said}</p><pre>{said}</pre></body></html>")
    return out.getvalue()


def document(make: Maker, secret: str) -> bytes:
    from docx import Document

    made, out = Document(), io.BytesIO()
    made.add_heading("Tea", 1)
    made.add_paragraph(f"{make.prose()} {secret} {make.prose()}")
    paragraph, half = made.add_paragraph(), len(secret) // 2
    paragraph.add_run(f"{make.prose()} {secret[:half]}")
    paragraph.add_run(f"{secret[half:]} {make.prose()}")
    cells = made.add_table(2, 2)
    cells.cell(0, 1).text = cells.cell(1, 0).text = secret
    made.core_properties.comments = secret[:255]
    made.save(out)
    return out.getvalue()


def workbook(make: Maker, secret: str) -> bytes:
    from openpyxl import Workbook

    made, out = Workbook(), io.BytesIO()
    for row in (["name", "value"], ["a", secret], [secret, "b"]):
        made.active.append(row)
    made.save(out)
    return out.getvalue()


def page(make: Maker, secret: str) -> bytes:
    said = html.escape(secret)
    return (
        f'<html><head><title>Tea {said}</title><meta name="description" content="{said}"></head><body><h1>{said}</h1>'
        f"<p>{make.prose()} <b>{said}</b> {make.prose()}</p><pre>{said}</pre><!-- {said} --><table><tr><th>{said}</th>"
        f'</tr><tr><td>{said}</td></tr></table><ul><li>{said}</li></ul><img src="a.png" alt="{said}">'
        f'<a href="https://x.example.org/?q={said}" title="{said}">{said}</a></body></html>'
    ).encode()


def values(make: Maker, secret: str) -> bytes:
    said = {"title": "Tea", "a": secret, "list": [secret, {"b": secret}], secret: 1, "more": make.more()}
    return json.dumps(said, indent=make.chance.choice([None, 1, 2])).encode()


def api(make: Maker, secret: str) -> bytes:
    asked = {
        "name": "q",
        "in": "query",
        "description": secret,
        "schema": {"type": "string", "default": secret},
    }
    call = {"summary": f"x {secret}", "description": secret, "parameters": [asked], "responses": {}}
    about = {"title": "Tea", "version": "1", "description": f"{secret} {' '.join(make.more())}"}
    return json.dumps({"openapi": "3.0.0", "info": about, "paths": {"/a": {"get": call}}}).encode()


TEXTS = {
    "a.md": "# Tea\n\n{p} {s} {p}\n\n- {p}\n- {s}\n\n```sh\n{s}\n```\n\n{quoted}\n\n<!-- {s} -->\n",
    "heading.md": "# Tea {s1} more\n\n{p}\n\n## Sub {s1}\n\n| a | b |\n|---|---|\n| {s1} | x |\n\n[{s1}](https://x.org/?a={s1})\n",
    "front.md": '---\ntitle: {s1}\ndescription: "x {s1}"\n---\n\n# Tea\n\n{p}\n',
    "a.rst": "{s1} tea\n{line}\n\n{p} {s} {p}\n\n:field: {s1}\n\n.. note:: {s1}\n\n   {p}\n\nCode::\n\n{indented}\n",
    "a.txt": "{p}\n{s}\n{p} {s} {p}\n",
    "a.tex": "\\section{{Tea}}\n{p} {s} {p}\n\\begin{{verbatim}}\n{s}\n\\end{{verbatim}}\n",
    "a.py": '"""Tea {s}\n\n{s}\n"""\n\nA = """{s}"""\n\n\ndef f(a="""{s}"""):\n    """{p} {s}"""\n    return a\n'
    "\n\n{hashed}\n",
    "a.js": "// {s1}\n/**\n * {p} {s1}\n */\nexport function f() {{ const a = `{s}`; return a; }}\nconst B = `{s}`;\n",
    "a.go": "// Package p {s1}\npackage p\n\n// F {s1}\nfunc F() string {{ return `{s}` }}\n\nconst K = `{s}`\n",
    "a.c": "/* {s} */\n/** {s} */\nint f(void) {{ return 0; }}\n",
    "a.sh": "#!/bin/sh\nf() {{\ncat <<EOF\n{s}\nEOF\n}}\nA='{s}'\n{hashed}\n",
    "a.sql": "CREATE TABLE tea (a TEXT DEFAULT '{s}');\nINSERT INTO tea VALUES ('{s}');\n",
    "a.yaml": "title: Tea\na: |\n{indented}\nb:\n  - x: >-\n{indented}\n{hashed}\n",
    "a.ini": "[tea]\nb = {s1}\nc: {s1}\n; {s1}\n",
    "a.xml": '<?xml version="1.0"?><tea a="{e}"><!-- {e} --><b>{e}</b><p>{more}</p></tea>',
    "a.ics": "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\nDTSTART:20260302T100000Z\n"
    "SUMMARY:Tea {s1}\nDESCRIPTION:{s1}\nCOMMENT:{more}\nEND:VEVENT\nEND:VCALENDAR\n",
    "a.vtt": "WEBVTT\n\n00:01.000 --> 00:03.000\n<v Ann>{p} {s1}\n\nNOTE {s1}\n\nNOTE {more}\n",
    "a.1": ".TH TEA 1\n.SH NAME\ntea \\- {p}\n.SH DESCRIPTION\n{p}\n.B {s}\n.nf\n{s}\n.fi\n",
}
"""By the end of the name; `s1` is a secret of one line, or a word."""
MADE: dict[str, Callable[[Maker, str], bytes]] = {
    "a.eml": letter, "a.csv": table, "a.sqlite": database, "a.ipynb": notebook, "a.epub": book, "a.docx": document,
    "a.xlsx": workbook, "a.html": page, "a.json": values, "api.json": api,
}  # fmt: skip


COMMENTS = {"tex": "% ", "js": "// ", "go": "// ", "c": "// ", "sql": "-- ", "1": '.\\" '}
COMMENTS |= dict.fromkeys(["py", "sh", "yaml"], "# ") | dict.fromkeys(["ini"], "; ")


def written(make: Maker, name: str, secret: str) -> bytes:
    single = "kettle" if "\n" in secret.strip("\n") else secret.replace("\n", " ")
    text = TEXTS[name].format(
        p=make.prose(), s=secret, s1=single, e=html.escape(secret), line="=" * (len(single) + 4), more=make.prose(300),
        quoted=below("> ", secret), indented=below("    ", secret), hashed=below("# ", secret),
    )  # fmt: skip
    if "{more}" not in TEXTS[name]:
        text += "\n" + below(COMMENTS.get(name.rpartition(".")[2], ""), "\n".join(make.more())) + "\n"
    return text.encode()


@pytest.mark.parametrize("seed", [1, 2])
def test_no_secret_of_a_promised_kind_is_in_a_tree(tmp_path: Path, seed: int) -> None:
    make, known = Maker(seed), dict[str, str]()
    folder = tmp_path / "tea"
    for name in [*TEXTS, *MADE]:
        for number, (secret, parts) in enumerate(make.secrets()):
            said = make.chance.choice(BEFORE) + secret + make.chance.choice(BEHIND)
            data = MADE[name](make, said) if name in MADE else written(make, name, said)
            file = folder / name.replace(".", "-") / f"{number}-{name}"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            known |= dict.fromkeys(parts, f"{file.relative_to(folder)}: {said!r}")
    with build_tree(folder) as tree:
        texts = [repr(node) + text_of(tree, node.id) for _, node in tree.walk()]
        files = len([node for _, node in tree.walk() if node.kind == "file"])
    kept = [
        file.read_bytes().decode("latin-1") for file in (folder / ".metatree").iterdir() if file.is_file()
    ]
    assert files > 300, "most files are read, not left out as nothing but secrets"
    assert {where for part, where in known.items() if any(part in text for text in [*texts, *kept])} == set()


def text_of(tree: Tree, node_id: str) -> str:
    try:
        return tree.content(node_id)
    except UserError:  # it has none
        return ""
