"""The pages for newcomers: what they say to type, typed in an empty folder, prints what they say it prints."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.shell_reader import Reader

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here"),
]

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "start.md", *sorted(DOCS.glob("tutorial-*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`(\w+\.py)`")


def follow(page: Path, folder: Path) -> tuple[list[tuple[str, str]], list[str]]:
    """Do what a page says; return what it says is printed beside what was, and the kinds of its blocks."""
    reader = Reader(folder)
    pairs, kinds, text = [], [], page.read_text(encoding="utf-8")
    try:
        for block in BLOCK.finditer(text):
            kind, lines = block.groups()
            kinds.append(kind)
            if kind == "python":
                name = FILE.findall(text[: block.start()])[-1]
                reader.run(f"cat > {name} <<'END OF FILE'\n{lines}END OF FILE\n")
            elif kind == "text":
                pairs.append((lines, reader.printed.replace(reader.url, "http://127.0.0.1:8080")))
            else:
                assert kind == "sh", f"who runs a block of {kind!r}?"
                assert all(status == 200 for status, _, _ in reader.follow(lines))
    finally:
        reader.stop()
    return pairs, kinds


def fits(said: str, printed: str) -> bool:
    """Tell whether a text was printed, in which `…` stands for anything."""
    return bool(re.fullmatch(re.escape(said.strip()).replace("…", ".*?"), printed.strip(), re.DOTALL))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_for_newcomers_says_happens(page: Path, tmp_path: Path) -> None:
    pairs, kinds = follow(page, tmp_path)
    assert len(pairs) >= 3
    assert kinds.count("sh") > len(pairs)
    for said, printed in pairs:
        assert fits(said, printed), f"{page.name} says:\n{said}\nand this was printed:\n{printed}"


def test_a_page_that_says_something_else_is_seen() -> None:
    assert fits("a …\nb", "a 1\nb\n")
    assert not fits("a …\nb", "a 1\nc\n")
    assert not fits("a", "a\nb")
