"""Build the site of the documentation into build/site: pages, the Markdown of each beside it, and llms.txt.

usage: python -m docs.build_site ZENSICAL

ZENSICAL is the program, in an environment of its own (`make site`). No network is needed. Pages load nothing from other
hosts, and no script stands in a page: they work under the policy `default-src 'self'; img-src 'self' data:; style-src
'self' 'unsafe-inline'`; the theme's icons and the box of its search need the last two. Pages of docs/ stay readable
where they lie: links that lead out of docs/ become links to pages of the site.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from docs.reference import reference_pages

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
CONFIG = DOCS / "zensical.toml"
BUILD = ROOT / "build"
RENAMED = {
    "docs/start.md": "index.md",
    "docs/benchmarks/README.md": "benchmarks/index.md",
    "README.md": "index.md",
    "NOTES.md": "words.md",
    "CHANGELOG.md": "changelog.md",
    "examples/README.md": "examples.md",
}
"""The pages that have another name here than in the repository."""
NOTES = {
    "Glossary": ("words.md", "What the words of these pages mean."),
    "Decisions": ("decisions.md", "What was decided, by area, with the options that lost."),
    "Known gaps": ("gaps.md", "What is known not to work, or not to be there."),
}
"""The pages that the sections of NOTES.md become, and their first sentences."""
LANGUAGES = {
    ".py": "python",
    ".toml": "toml",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
}
# Code in which nothing is a link: blocks between fences, and stretches between backticks.
CODE = re.compile(r"^(`{3,}|~{3,}).*?^\1`*\s*$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(\]\()([^)#\s]*)(#[^)\s]*)?(\))")
ITEM = re.compile(r"(?:[-*]|1\.) ")
SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Return the text with what is not code changed."""
    parts, at = [], 0
    for code in CODE.finditer(text):
        parts += [change(text[at : code.start()]), code[0]]
        at = code.end()
    return "".join([*parts, change(text[at:])])


def spaced(text: str) -> str:
    """Return a page with an empty line before each list, which on GitHub may end a paragraph, and in Python's not."""
    lines: list[str] = []
    fence = False
    for line in text.split("\n"):
        before = lines[-1] if lines else ""
        if (
            not fence
            and ITEM.match(line)
            and before.strip()
            and not re.match(r"[ #>|]|```", before)
            and not ITEM.match(before)
        ):
            lines.append("")
        fence ^= line.startswith("```")
        lines.append(line)
    return "\n".join(lines)


class Pages:
    """The pages of the site as Markdown, by their path in it, with what they show copied beside them."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.copied: dict[str, Path] = {}
        """Pictures, by their path in the site."""
        self.drawn: dict[str, str] = {}
        """Pictures that notebooks have as their outputs, as text."""

    def gather(self) -> None:
        """Take every page of docs/ and the notes, changes and examples beside it."""
        for path in sorted(DOCS.rglob("*.md")):
            self._take(path.relative_to(ROOT).as_posix())
        for name in ("CHANGELOG.md", "examples/README.md"):
            self._take(name)
        for path in sorted((ROOT / "examples" / "notebooks").glob("*.ipynb")):
            source = path.relative_to(ROOT).as_posix()
            text, pictures = notebook_page(path, partial(self._linked, source, page_of(source)))
            self.texts[page_of(source)] = text
            self.drawn.update(pictures)
        for title, text in _sections((ROOT / "NOTES.md").read_text(encoding="utf-8")):
            page, says = NOTES[title]
            self.texts[page] = self._linked("NOTES.md", page, f"# {title}\n\n{says}\n\n{_raised(text)}")
        self.texts.update(reference_pages())
        for path in sorted(DOCS.rglob("*")):
            if path.suffix in (".png", ".svg"):
                self.copied[path.relative_to(DOCS).as_posix()] = path

    def _take(self, source: str) -> None:
        page = page_of(source)
        self.texts[page] = self._linked(source, page, (ROOT / source).read_text(encoding="utf-8"))

    def _linked(self, source: str, page: str, text: str) -> str:
        def link(found: re.Match[str]) -> str:
            before, target, anchor, after = found.groups()
            if not target or ":" in target:
                return found[0]
            full = os.path.normpath(PurePosixPath(source).parent / target)
            if not (ROOT / full).exists():
                raise SystemExit(f"{source}: {target} leads nowhere")
            to = self._target(full, anchor)
            return f"{before}{os.path.relpath(to, PurePosixPath(page).parent)}{anchor or ''}{after}"

        return spaced(outside_code(text, lambda part: LINK.sub(link, part)))

    def _target(self, full: str, anchor: str | None) -> str:
        if full == "NOTES.md" and anchor:
            return next((to for title, (to, _) in NOTES.items() if slug(title) == anchor[1:]), "words.md")
        if full.endswith((".md", ".ipynb")) or full.startswith("docs/"):
            page = page_of(full)
            if full.endswith(".md") and page not in self.texts and page.startswith("files/"):
                self.texts[page] = ""  # so that a page that links back does not take it again
                self._take(full)
            return page
        page = f"files/{full}.md"
        self.texts.setdefault(page, listing(full))
        return page


def page_of(source: str) -> str:
    """Return where a file of the repository is in the site."""
    if source in RENAMED:
        return RENAMED[source]
    if source.endswith(".ipynb"):
        return f"notebooks/{PurePosixPath(source).stem}.md"
    return source.removeprefix("docs/") if source.startswith("docs/") else f"files/{source}"


def slug(title: str) -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.replace("`", "").lower()).replace(" ", "-")


def _sections(text: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        yield title, body


def _raised(text: str) -> str:
    return outside_code(text, lambda part: re.sub(r"^###", "##", part, flags=re.MULTILINE))


def listing(name: str) -> str:
    """Return a page that shows a file, or the files of a folder, which have no page of their own."""
    path = ROOT / name
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if _is_shown(each))
    shown = [f"# {name}", ""]
    for file in files:
        text = file.read_text(encoding="utf-8")
        fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", text)), 3)
        shown += [f"## {file.name}", ""] if path.is_dir() else []
        shown += [fence + LANGUAGES.get(file.suffix, "text"), text.rstrip("\n"), fence, ""]
    return "\n".join(shown)


def notebook_page(path: Path, linked: Callable[[str], str]) -> tuple[str, dict[str, str]]:
    """Return a notebook as a page, and the pictures that its cells show, by their path in the site.

    Args:
        path: of the notebook.
        linked: returns its Markdown with the links of the site.
    """
    parts, pictures = list[str](), dict[str, str]()
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        source = "".join(cell["source"]).rstrip("\n")
        parts.append(linked(source) if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {"text/plain": output.get("text", ())})
            if picture := "".join(data.get("image/svg+xml", ())):
                name = f"{path.stem}-{number}.svg"
                pictures[f"notebooks/{name}"] = picture
                parts.append(f"![what the cell shows]({name})")
            else:
                parts.append("```text\n" + "".join(data["text/plain"]).rstrip("\n") + "\n```")
    return "\n\n".join(parts) + "\n", pictures


def _is_shown(path: Path) -> bool:
    hidden = any(part.startswith((".", "__")) or part.endswith(".egg-info") for part in path.parts)
    return path.is_file() and not hidden


def navigation() -> list[Any]:
    """Return the navigation as the file of settings has it: tables of title and page, or of title and such a list."""
    settings = tomllib.loads(CONFIG.read_text(encoding="utf-8"))
    found: list[Any] = settings["project"]["nav"]
    return found


def entries(nav: list[Any], *above: str) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Yield the titles above, the title and the page of each entry."""
    for entry in nav:
        for title, below in entry.items():
            if isinstance(below, str):
                yield above, title, below
            else:
                yield from entries(below, *above, title)


def llms_txt(texts: Mapping[str, str]) -> str:
    """Return the list of all pages in the form of llmstxt.org, each with its first sentence."""
    lines = ["# metatree", "", f"> {first_sentence(texts['index.md'])}", ""]
    lines += ["Each page of this site is Markdown, too: the same address with `.md` in place of `.html`."]
    section: tuple[str, ...] | None = None
    for above, title, page in entries(navigation()):
        if above[:1] != section:
            section = above[:1]
            lines += ["", f"## {section[0] if section else 'Start'}", ""]
        shown = ": ".join((*above[1:], title))
        said = first_sentence(texts[page])
        lines.append(f"- [{shown}]({page})" + f": {said}" * bool(said))
    return "\n".join(lines) + "\n"


def first_sentence(text: str) -> str:
    """Return the first sentence of a page's first paragraph, without links and marks, or nothing."""
    text = re.sub(r"<!--.*?-->", "", CODE.sub(lambda code: code[0] if code[0][:3] != "```" else "", text))
    for block in re.split(r"\n\s*\n", text):
        if block.strip() and not re.match(r"\s*(#|\||-|!|<|>|\d+\.|    )", block):
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(block.split())).replace("**", "")
            return re.split(r"(?<=[.?!])\s", plain, maxsplit=1)[0].rstrip(":")
    return ""


def finish(site: Path, texts: Mapping[str, str]) -> None:
    """Take scripts out of the pages into files, and put the Markdown of each page beside it."""
    for html in sorted(site.rglob("*.html")):
        above = os.path.relpath(site, html.parent)

        def script(found: re.Match[str], above: str = above) -> str:
            name = f"assets/javascripts/{hashlib.sha256(found[1].encode()).hexdigest()[:12]}.js"
            (site / name).write_text(found[1], encoding="utf-8")
            return f'<script src="{above}/{name}"></script>'

        text = SCRIPT.sub(script, html.read_text(encoding="utf-8"))
        page = html.relative_to(site).with_suffix(".md").as_posix()
        if page in texts:
            link = f'<link rel="alternate" type="text/markdown" href="{html.stem}.md">'
            text = text.replace("</head>", f"{link}</head>", 1)
        html.write_text(text, encoding="utf-8")
    for page, markdown in texts.items():
        (site / page).write_text(markdown, encoding="utf-8")


def main() -> int:
    """Build the site, or return 1 when Zensical finds a link that leads nowhere."""
    zensical = Path(sys.argv[1]).absolute()
    pages = Pages()
    pages.gather()
    for name in ("pages", "site", ".cache"):
        shutil.rmtree(BUILD / name, ignore_errors=True)
    for page, text in pages.texts.items():
        path = BUILD / "pages" / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name, source in pages.copied.items():
        (BUILD / "pages" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, BUILD / "pages" / name)
    for name, picture in pages.drawn.items():
        (BUILD / "pages" / name).write_text(picture, encoding="utf-8")
    shutil.copyfile(CONFIG, BUILD / CONFIG.name)
    done = subprocess.run(
        [zensical, "build", "--strict", "--config-file", CONFIG.name], cwd=BUILD, check=False
    )
    if done.returncode:
        return 1
    finish(BUILD / "site", pages.texts)
    (BUILD / "site" / "llms.txt").write_text(llms_txt(pages.texts), encoding="utf-8")
    print(f"{len(pages.texts)} pages: open {(BUILD / 'site' / 'index.html').relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
