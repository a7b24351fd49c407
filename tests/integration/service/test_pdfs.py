"""PDFs on the page: opened at a page of them, looked at before they are given, and read line by line."""

from __future__ import annotations

import html
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest
import requests
from metatree_agents.service.web import _files
from metatree_memory_tools import build_tree

from tests.documents import make_pdf

from .conftest import Served
from .test_web import Browser, asked, entered
from .test_what_people_see import words

pytestmark = pytest.mark.integration
Serve = Callable[..., Served]


def test_a_pdf_opens_at_the_page_that_an_answer_quotes(serve: Serve, tmp_path: Path) -> None:
    pages = [[(12.0, f"Page {number} of the manual of the lamp.")] for number in range(1, 4)]
    pages[1].append((12.0, "The lamp has a bulb of nine watts."))
    key = "ghp_" + "a1B2" * 9
    data, secret = make_pdf(pages), make_pdf([[(12.0, f"The key is {key}")]])
    for name, its in (
        ("lamp.pdf", data),
        ("keys.pdf", secret),
        ("titled.pdf", make_pdf([[(12.0, "It is old.")]], title=f"Deploy {key}")),
        ("noted.pdf", make_pdf([[(12.0, "It is new.")]]) + f"\n% {key}\n".encode()),
        ("other.pdf", make_pdf([[(12.0, "It is old.")]])),
        ("damaged.pdf", make_pdf([[(12.0, "It is old.")]] * 3).replace(b"/Count 3", b"/Count 9")),
    ):
        (tmp_path / name).write_bytes(its)
    (tmp_path / "plain.md").write_text("# Plain\n")
    with build_tree(tmp_path) as made:
        service = serve(memory=made)
        user = entered(service, "User_1")
        topic = asked(user)
        node = next(n.id for _, n in made.walk() if n.path == "lamp.pdf" and n.has_content)
        source = {
            "Node": node,
            "Title": "lamp",
            "Quote": "nine watts",
            "Path": "lamp.pdf",
            "Pages": [2, 2],
            "Number": 1,
        }
        service.engine.answer("How many watts?", "nine watts", topic=topic, Sources=[source], End="answered")
        for shown in (f"/thread?topic={topic}", f"/node?id={quote(node)}&topic={topic}&seq=1"):
            (where,) = re.findall(r'href="(/file[^"]*)"[^>]*>Open the PDF at page 2<', user.get(shown).text)
            assert where.endswith("#page=2")
            assert "lamp.pdf, page " in words(user.get(shown).text) and ", lines" not in user.get(shown).text
            given = user.get(html.unescape(where.partition("#")[0]))
            assert (given.content, given.headers["Content-Type"]) == (data, "application/pdf")
            assert given.headers["Content-Disposition"] == 'inline; filename="lamp.pdf"'
        (tmp_path / "other.pdf").write_bytes(data)
        for other, why in (("plain.md", "no PDF"), ("other.pdf", "not as it was")):
            refused = user.get(f"/file?id={other}")
            assert refused.status_code == 422 and why in words(refused.text), refused.text
        assert user.get("/file?id=nothing.pdf").status_code == 404
        for hidden in ("keys.pdf", "titled.pdf", "noted.pdf", "damaged.pdf"):
            kept_back = user.get(f"/file?id={hidden}")
            assert f"/node?id={hidden}" in kept_back.url and "/file?" not in kept_back.text
            assert "The PDF itself is not opened here" in words(kept_back.text)
        assert "/file?" in user.get("/node?id=keys.pdf").text, "not known before it is read"
    assert "/login" in Browser(service.url).get(f"/file?id={quote(node)}").url


def test_pdfs_are_looked_at_one_after_the_other_and_sent_as_they_were_then(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = make_pdf([[(12.0, "The lamp has a bulb.")]]) + b"%" + b"x" * 2_500_000 + b"\n"
    (tmp_path / "lamp.pdf").write_bytes(data)
    (tmp_path / "tea.pdf").write_bytes(data.replace(b"x", b"y"))
    looking, together = threading.Lock(), []

    def looks(pdf: bytes) -> bool:
        together.append(not looking.acquire(blocking=False))
        time.sleep(0.3)  # longer than the loop waits for a thread
        looking.release()
        if b"y" * 99 in pdf:
            with (tmp_path / "tea.pdf").open("r+b") as file:  # changed when it was looked at
                file.seek(-9, 2)
                file.write(b"z")
        return False

    monkeypatch.setattr(_files, "holds_secret", looks)
    with build_tree(tmp_path) as made, ThreadPoolExecutor(4) as threads:
        user = entered(serve(memory=made), "User_1")
        given = list(threads.map(lambda _: user.get("/file?id=lamp.pdf").content, range(4)))
        with pytest.raises(requests.RequestException):
            user.get("/file?id=tea.pdf")
    assert given == [data] * 4
    assert together == [False] * 5


def test_a_page_of_a_pdf_has_lines_of_its_own_and_says_nothing_twice(serve: Serve, tmp_path: Path) -> None:
    entry = [(20.0, "Cleaning"), (12.0, "Descale the machine with citric acid every three months.")]
    (tmp_path / "machine.pdf").write_bytes(
        make_pdf([[(12.0, f"This is part {n}."), *entry] for n in range(4)])
    )
    with build_tree(tmp_path) as made:
        nodes = [node for _, node in made.walk() if node.path == "machine.pdf" and node.has_content]
        node = max(nodes, key=lambda node: (node.source and node.source.start_line) or 0)
        assert node.source is not None and (node.source.start_line or 0) > 1 and node.description
        page = entered(serve(memory=made), "User_1").get(f"/node?id={quote(node.id)}").text
    assert re.findall(r'data-n="(\d+)"', page)[0] == "1"
    assert words(page).count("This is part 3.") == 1
