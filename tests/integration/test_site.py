"""What `make site` builds the site from; `tests/real/test_site.py` builds it and looks at it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from docs import build_site
from docs.build_site import (
    Pages,
    entries,
    finish,
    first_sentence,
    llms_txt,
    navigation,
    outside_code,
    slug,
    spaced,
)
from docs.reference import PACKAGES, names_of, reference_pages

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)")


@pytest.fixture(scope="module")
def pages() -> Pages:
    found = Pages()
    found.gather()
    return found


def links(text: str) -> Iterator[tuple[str, str]]:
    """Yield the target and the anchor of each link outside of code, but not to other hosts."""
    found: list[tuple[str, str]] = []

    def keep(part: str) -> str:
        found.extend(LINK.findall(part))
        return part

    outside_code(text, keep)
    yield from found


def anchors(text: str) -> set[str]:
    """Return the anchors of the headings of a page; of headings that are alike, those behind get a number."""
    found: set[str] = set()
    for _, title in re.findall(r"^(#+) (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M):
        own = slug(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title))
        number = next(n for n in range(len(text)) if (f"{own}_{n}" if n else own) not in found)
        found.add(f"{own}_{number}" if number else own)
    return found


def test_links_of_every_page_of_the_repository_lead_somewhere() -> None:
    files = [
        ROOT / name for name in ("README.md", "NOTES.md", "CHANGELOG.md", "AGENTS.md", "examples/README.md")
    ]
    files += sorted((ROOT / "docs").rglob("*.md"))
    missing = []
    for file in files:
        for target, anchor in links(file.read_text(encoding="utf-8")):
            to = (file.parent / target) if target else file
            named = not anchor or (to.suffix == ".md" and anchor in anchors(to.read_text(encoding="utf-8")))
            if not to.exists() or not named:
                missing.append(f"{file.relative_to(ROOT)}: {target}#{anchor}")
    assert missing == []


def test_links_of_every_page_of_the_site_lead_to_pages_of_it(pages: Pages) -> None:
    missing = []
    for page, text in pages.texts.items():
        for target, anchor in links(text):
            to = os.path.normpath(PurePosixPath(page).parent / target) if target else page
            named = not anchor or (to in pages.texts and anchor in anchors(pages.texts[to]))
            if to not in {*pages.texts, *pages.copied, *pages.drawn} or not named:
                missing.append(f"{page}: {target}#{anchor}")
    assert missing == []


def test_notebooks_are_pages_with_what_their_cells_show(pages: Pages) -> None:
    text = pages.texts["notebooks/search.md"]
    assert "```python\nfrom metatree import" in text and '"cell_type"' not in text
    assert "](search-8.svg)" in text and pages.drawn["notebooks/search-8.svg"].startswith("<svg")
    assert "(../plugins.md#write-a-plug-in)" in pages.texts["notebooks/plugin.md"]


def test_a_link_that_leads_nowhere_ends_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# A\n\nSee `[x](in-code.md)` and [b](b.md).\n")
    monkeypatch.setattr(build_site, "ROOT", tmp_path)
    monkeypatch.setattr(build_site, "DOCS", tmp_path / "docs")
    with pytest.raises(SystemExit, match=r"docs/a\.md: b\.md leads nowhere"):
        Pages().gather()


def test_the_navigation_has_every_page_once(pages: Pages) -> None:
    named = [page for _, _, page in entries(navigation())]
    assert len(named) == len(set(named))
    assert set(named) == {page for page in pages.texts if not page.startswith("files/")}


def test_the_list_for_models_names_the_markdown_of_every_page(pages: Pages) -> None:
    listed = llms_txt(pages.texts)
    assert listed.startswith("# metatree\n\n> ")
    for _, title, page in entries(navigation()):
        assert f"{title}]({page})" in listed
    assert "reference/metatree.md" in listed


def test_files_without_a_page_are_shown_whole(pages: Pages) -> None:
    shown = pages.texts["files/examples/demo.py.md"]
    assert f"```python\n{(ROOT / 'examples/demo.py').read_text().rstrip()}\n```" in shown
    assert "## alerts_test.yaml" in pages.texts["files/examples/monitoring.md"]


def test_the_reference_describes_every_public_name() -> None:
    found = reference_pages()
    for package in PACKAGES:
        text = found[f"reference/{package}.md"]
        for name in names_of(package):
            assert f"\n## {name}\n" in text or f"[`{name}`](" in text.partition("## Also here")[2], name
    search = found["reference/metatree.md"].partition("\n## search\n")[2].partition("\n## ")[0]
    assert "questions: str | Sequence[str]" in search and "sure: float = 0.65" in search
    limits = found["reference/metatree.md"].partition("\n## Limits\n")[2].partition("\n## ")[0]
    assert "- `tokens`: Prompt and completion tokens together." in limits
    assert "see [`Limits`](#limits)" in found["reference/metatree.md"]
    assert "T" not in names_of("metatree.trees.source_types")
    assert "could not be fetched (`url`, `status`)" in found["reference/metatree.errors.md"], (
        "no links in code"
    )
    assert {"MemoryType", "Outline", "SourceFile"} <= set(names_of("metatree.trees.source_types"))
    assert " object at 0x" not in "".join(found.values())


def test_scripts_are_taken_out_of_pages(tmp_path: Path) -> None:
    (tmp_path / "assets" / "javascripts").mkdir(parents=True)
    (tmp_path / "in").mkdir()
    page = '<head></head><script>a()</script><script src="b.js"></script>'
    (tmp_path / "in" / "page.html").write_text(page)
    finish(tmp_path, {"in/page.md": "# Page\n"})
    text = (tmp_path / "in" / "page.html").read_text()
    (script,) = re.findall(r'<script src="\.\./(assets/javascripts/\w+\.js)"></script>', text)
    assert (tmp_path / script).read_text() == "a()"
    assert 'href="page.md"' in text
    assert (tmp_path / "in" / "page.md").read_text() == "# Page\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# A\n\n<!-- made -->\n\nSee [b](b.md), **now**: yes. More.", "See b, now: yes."),
        (
            "# A\n\n```sh\nls -l\n```\n\n| a |\n|---|\n\n`pip install 'x[web]'` reads pages. So.",
            "`pip install 'x[web]'` reads pages.",
        ),
        ("# A\n\n- one\n", ""),
    ],
)
def test_the_first_sentence_of_a_page(text: str, said: str) -> None:
    assert first_sentence(text) == said


def test_a_list_that_ends_a_paragraph_has_a_line_before_it() -> None:
    assert spaced("Both:\n- one\n  more\n- two") == "Both:\n\n- one\n  more\n- two"
    same = "# A\n- one\n\n```sh\nls\n- x\n```\n1. a\n2. b"
    assert spaced(same) == same
