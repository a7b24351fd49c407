"""The site of the documentation as `make site` builds it: complete, whole in itself, and read in a real browser."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from metatree_memory_tools.web.chromium import find_chromium

from docs.build_site import entries, navigation

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
# Icons of the theme are data in its style, and the box of its search makes a style.
POLICY = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; base-uri 'none'"
# A proxy that nothing listens at: whoever asks for something elsewhere fails.
NOWHERE = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")


class Page(HTMLParser):
    """What a page loads, where its links lead, which anchors it has, and which scripts stand in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.inside: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a":
            self.links.append(found.get("href", ""))
        else:
            self.loaded += [
                found[name] for name in ("src", "href", "srcset", "poster", "data") if name in found
            ]
        self.inside += [f"{tag} {name}" for name in found if name.startswith("on")]
        if tag == "script" and "src" not in found and found.get("type") != "application/json":
            self.inside.append(tag)


@pytest.fixture(scope="module")
def site(testrun_uid: str) -> Path:
    """The built site, made without a way to another host; once for all processes that run these tests."""
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build" / "site.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        if lock.read() != testrun_uid:
            done = subprocess.run(
                ["make", "site"],
                cwd=ROOT,
                env={**os.environ, **NOWHERE},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            lock.truncate(0)
            lock.write(testrun_uid)
    return ROOT / "build" / "site"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    return {path.relative_to(site).as_posix(): Page(path) for path in sorted(site.rglob("*.html"))}


def test_every_page_of_the_navigation_is_there_and_its_markdown_beside_it(site: Path) -> None:
    for _, title, page in entries(navigation()):
        assert (site / page).read_text(encoding="utf-8").startswith("# "), title
        assert (site / page).with_suffix(".html").is_file(), title
    assert "](tutorial-code.md)" in (site / "llms.txt").read_text(encoding="utf-8")


def test_pages_load_nothing_from_other_hosts_and_hold_no_script(site: Path, pages: dict[str, Page]) -> None:
    assert len(pages) > 60
    assert {name: page.inside for name, page in pages.items() if page.inside} == {}
    elsewhere = {
        name: [url for url in page.loaded if re.match(r"(\w+:)?//", url)] for name, page in pages.items()
    }
    assert {name: urls for name, urls in elsewhere.items() if urls} == {}
    for style in site.rglob("*.css"):
        assert re.findall(r"url\([\"']?(?:https?:)?//|@import", style.read_text(encoding="utf-8")) == []


def test_no_markdown_is_left_in_pages(site: Path) -> None:
    for path in sorted(site.rglob("*.html")):
        article = path.read_text(encoding="utf-8").partition("<article")[2].partition("</article>")[0]
        text = re.sub(r"<[^>]+>", "", re.sub(r"<(pre|code)\b.*?</\1>", "", article, flags=re.DOTALL))
        assert re.findall(r"^(?:[-*] |#+ |\||1\. ).*|```.*|\]\(.*", text, re.MULTILINE) == [], path.name


def test_every_link_of_the_built_site_leads_to_a_page_and_an_anchor_of_it(
    site: Path, pages: dict[str, Page]
) -> None:
    missing = []
    for name, page in pages.items():
        for link in (*page.links, *page.loaded):
            if re.match(r"\w+:", link) or not link or name == "404.html":
                continue
            target, _, anchor = link.partition("#")
            to = (site / name).parent / unquote(target) if target else site / name
            inner = pages.get(os.path.relpath(to, site))
            if not to.exists() or (anchor and inner and unquote(anchor) not in inner.anchors):
                missing.append(f"{name}: {link}")
    assert missing == []


class Strict(SimpleHTTPRequestHandler):
    """Serves files with a strict policy."""

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def served(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Strict, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_browser_shows_pages_and_finds_words_under_a_strict_policy(served: str) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="run `make test-real`")
    troubles: list[str] = []

    def console(message: Any) -> None:
        if message.type in ("error", "warning"):
            troubles.append(f"{message.text} {message.location}")

    def request(asked: Any) -> None:
        if not asked.url.startswith((f"{served}/", "blob:", "data:")):
            troubles.append(f"asked {asked.url}")

    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(60_000)
        page.on("console", console)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", request)
        for name in ("index.html", "concepts.html", "reference/metatree.html", "benchmarks/peers.html"):
            page.goto(f"{served}/{name}")
            assert page.locator("h1").first.is_visible()
        pictures = page.locator("article img").evaluate_all("all => all.map(each => each.naturalWidth)")
        page.locator("button.md-search__button").click()
        page.keyboard.type("HDDL")
        page.get_by_role("link", name=re.compile("Plan")).first.wait_for()
        browser.close()
    assert pictures and all(pictures)
    assert troubles == []
