"""The Python in README.md and docs/ runs, and prints what the page says it prints."""

from __future__ import annotations

import contextlib
import io
import re
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


@pytest.mark.parametrize(("page", "code", "output"), BLOCKS)
def test_block_prints_what_the_page_says(
    page: Path, code: str, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "area.py").write_text("def area(radius):\n    return 3 * radius**2\n")
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(page), "exec"), {"__name__": "__main__"})
    if output:
        assert printed.getvalue() == output


def test_readme_shows_an_example_with_its_output() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert any(output for _, output in BLOCK.findall(readme))
