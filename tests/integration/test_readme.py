"""The Python in README.md and docs/ runs, and prints what the page says it prints."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
# The blocks of the first two need servers: `memory_tools/test_docs.py` runs them. Those of the others are files that
# commands of the page start: `test_tutorials.py` does.
ELSEWHERE = (
    "servers.md",
    "web.md",
    "start.md",
    *(page.name for page in (ROOT / "docs").glob("tutorial-*.md")),
)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# A python block and, when a text block follows at once, what the page says it prints.
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
BLOCKS = [
    pytest.param(page, code, output, id=f"{page.name}-{number}")
    for page in PAGES
    if page.name not in ELSEWHERE
    for number, (code, output) in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")), 1)
    if "sys.argv" not in code  # a program with arguments: `agents/test_planner_docs.py` runs it
]

MAKES_PROJECT = re.compile(r"^mkdir -p project && .*$", re.MULTILINE)


@pytest.mark.parametrize(("page", "code", "output"), BLOCKS)
def test_block_prints_what_the_page_says(
    page: Path, code: str, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = page.read_text(encoding="utf-8").partition(code)[0]
    if '"project' in code:  # what the page says above of how the folder is made
        subprocess.run(["bash", "-c", MAKES_PROJECT.findall(before)[-1]], check=True)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(page), "exec"), {"__name__": "__main__"})
    if output:
        assert printed.getvalue() == output


def test_readme_shows_an_example_with_its_output() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert any(output for _, output in BLOCK.findall(readme))


@pytest.mark.parametrize("page", [page for page in PAGES if MAKES_PROJECT.search(page.read_text("utf-8"))])
def test_the_blocks_of_a_page_run_one_after_another_in_the_folder_that_it_makes(
    page: Path, tmp_path: Path
) -> None:
    """As a reader runs them, each in an interpreter of its own."""
    text = page.read_text(encoding="utf-8")
    subprocess.run(["bash", "-c", MAKES_PROJECT.findall(text)[0]], cwd=tmp_path, check=True)
    for code, output in BLOCK.findall(text):
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True
        )
        assert not output or done.stdout == output
