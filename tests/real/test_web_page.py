"""The web page in a real Chromium: everything that a person does there, by mouse and by keyboard, wide and narrow."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from metatree_agents.service.accounts.users import Users, proof
from metatree_agents.service.database.database import SqliteDatabase
from metatree_memory_tools.web.chromium import find_chromium

from metatree import Node, Tree
from metatree._util.threads import run_apart

from .conftest import SCREENSHOTS

pytestmark = pytest.mark.real
WIDE, NARROW = (1280, 900), (390, 844)
FILES = {
    "billing/invoice.py": 'def total_of(invoice):\n    """Add up the lines of an invoice, with value added tax."""\n'
    "    total = 0\n    for line in invoice.lines:\n        total += line.amount * (1 + line.tax)\n    return total\n",
    "billing/reminder.py": 'def remind(customer):\n    """Send a reminder to a customer after thirty days."""\n',
    "shipping/parcel.py": 'def weigh(parcel):\n    """Weigh a parcel in grams."""\n',
    "house.md": "# House\n\nThe lamp in the hall has a bulb of nine watts.\n\n# Garden\n\nRoses are watered at dawn.\n",
}
MANY = 100_000
OUT_OF_SIGHT = """[...document.querySelectorAll("main td, main td :is(a, button, select, summary)")].filter(
    each => each.checkVisibility() && each.getBoundingClientRect().right > innerWidth).map(each => each.outerHTML)"""
"""What of the tables of a page lies beside the window."""
ADMINISTERED = (
    *("admin", "admin/users", "admin/keys", "admin/trees", "admin/engines", "admin/limits", "admin/backups"),
    *("runs", "memories", "account", "tree"),
)


@dataclass
class Site:
    """A running server, and what it said at its first start."""

    url: str
    secrets: dict[str, str]
    link: str
    log: list[str] = field(default_factory=list)
    """All that the server wrote."""

    def call(self, name: str, method: str, route: str, body: Any = None, **given: str) -> Any:
        """Call the API as one of the users."""
        nonce = os.urandom(8).hex()
        proven = {"User": name, "Nonce": nonce, "Hash": proof(name, nonce, self.secrets[name])}
        answer = requests.request(
            method, f"{self.url}/api/{route}", params={**proven, **given}, json=body, timeout=70
        )
        assert answer.status_code == 200, "\n".join([answer.text, *self.log[-20:]])
        return answer.json()

    def claim(self, page: Any) -> Any:
        """Claim the query that a page shows; what a test before left behind when it failed is passed over."""
        (topic,) = parse_qs(urlsplit(page.url).query)["topic"]
        while (claimed := self.call("Engine_1", "GET", "get-new-queries"))["Topic"] != topic:
            pass
        return claimed


@contextmanager
def serving(*options: str, trees: Sequence[str] = ()) -> Iterator[Site]:
    """Run `metatree serve` as a person does, until the block ends."""
    command = [sys.executable, "-c", "from metatree_agents.cli import main; main()"]
    server = subprocess.Popen(
        [*command, "serve", *trees, "--port", "0", *options],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    log: list[str] = []
    ready = threading.Event()

    def read() -> None:
        assert server.stderr is not None
        for line in server.stderr:  # to its end: a server whose log nobody reads stops when the pipe is full
            log.append(line)
            if "makes another" in line:
                ready.set()
        ready.set()

    reading = threading.Thread(target=read)
    reading.start()
    try:
        ready.wait()
        said = "".join(log)
        secrets = dict(re.findall(r"^  (\w+) \(\w+\): (\S+)$", said, re.M))
        url = re.search(r"listening on (\S+)", said)
        link = re.search(r"(\S+/login#code=\S+)", said)
        assert url is not None and link is not None, f"exit code {server.poll()}: {said}"
        named = [option for option in options if option != "--no-engine"]
        added = subprocess.run(
            [*command, "service", "users", "add", "Engine_1", "--role", "engine", *named],
            capture_output=True,
            text=True,
            check=False,
        )
        assert added.returncode == 0, f"{added.stderr}\nThe server said:\n{''.join(log)}"
        yield Site(url[1], {**secrets, "Engine_1": added.stdout.strip()}, link[1], log)
    finally:
        server.terminate()
        server.wait(60)
        reading.join()
        assert server.stderr is not None
        server.stderr.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server with an engine inside, over some files."""
    folder = tmp_path_factory.mktemp("source")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    with serving("--source", str(folder)) as running:
        yield running


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server over two trees, with an engine inside that has both."""
    folder = tmp_path_factory.mktemp("several")
    for name, text in (
        ("handbook", FILES["house.md"]),
        ("recipes", "# Soup\n\nThe secret of the soup is one spoon of smoked paprika.\n"),
    ):
        (folder / name).mkdir()
        (folder / name / "page.md").write_text(text)
    named = [f"{name}={folder / name}" for name in ("handbook", "recipes")]
    with serving("--database", str(folder / "service.db"), trees=named) as running:
        yield running


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server without an engine, over a tree with 100,000 nodes under one, and a very deep one."""
    file = tmp_path_factory.mktemp("large") / "tree.db"
    with Tree.create(file, title="archive") as tree:
        tree.add(Node(id="letters", title="Letters", description="All that came in"))
        letters = (
            Node(id=f"letter-{number:06}", title=f"Letter {number:,}", description="From somebody")
            for number in range(1, MANY + 1)
        )
        tree.add_many((letter, "letters") for letter in letters)
        tree.add(Node(id="note", title="A note on it", content="Seen."), parent="letter-054321")
        for depth in range(200):
            tree.add(
                Node(id=f"level-{depth}", title=f"Level {depth}"),
                parent=f"level-{depth - 1}" if depth else ".",
            )
    with serving("--tree", str(file), "--no-engine") as running:
        yield running


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Debian's Chromium, driven by playwright."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="run `make test-real`")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        yield browser
        browser.close()


class Watch:
    """A page that notes what should not happen: errors in the console, requests to other hosts."""

    def __init__(self, context: Any, url: str) -> None:
        self.url = url
        self.troubles: list[str] = []
        self.asked: list[str] = []
        self.page: Any = context.new_page()
        self.page.set_default_timeout(30_000)
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("request", self._request)

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.troubles.append(f"{message.type}: {message.text}")

    def _request(self, request: Any) -> None:
        self.asked.append(request.url)
        if not request.url.startswith(f"{self.url}/"):
            self.troubles.append(f"asked {request.url}")

    def log_in(self, site: Site, name: str = "admin") -> None:
        """Log in by the form."""
        self.page.goto(f"{self.url}/login")
        self.page.fill("#name", name)
        self.page.fill("#secret", site.secrets[name])
        self.page.keyboard.press("Enter")
        self.page.wait_for_url("**/topics")


Visit = Callable[..., Watch]


@pytest.fixture
def visit(chromium: Any) -> Iterator[Visit]:
    """Return a function that opens a page of a site; at the end nothing may have gone wrong on any of them."""
    opened: list[tuple[Any, Watch]] = []

    def visiting(site: Site, size: tuple[int, int] = WIDE, **options: Any) -> Watch:
        context = chromium.new_context(viewport={"width": size[0], "height": size[1]}, **options)
        opened.append((context, Watch(context, site.url)))
        return opened[-1][1]

    yield visiting
    troubles = [trouble for _, watch in opened for trouble in watch.troubles]
    for context, _ in opened:
        context.close()
    assert troubles == []


@pytest.fixture(scope="session")
def axe(real_files: Path) -> str:
    """What finds faults in how accessible a page is."""
    return (real_files / "axe-core" / "package" / "axe.min.js").read_text(encoding="utf-8")


def picture(page: Any, name: str) -> None:
    """Keep the page as it looks now, in light and dark colours."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for colours in ("light", "dark"):
        page.emulate_media(color_scheme=colours, reduced_motion="reduce")
        page.screenshot(path=SCREENSHOTS / f"{name}-{page.viewport_size['width']}-{colours}.png")
    page.emulate_media(color_scheme="light", reduced_motion="no-preference")


def check(page: Any, axe: str) -> None:
    """Check that a page is accessible in light and dark colours, and no wider than the window."""
    for colours in ("light", "dark"):
        page.emulate_media(color_scheme=colours, reduced_motion="reduce")
        # axe is given to the page by the browser, not by a script of the page: its policy holds as it is.
        page.evaluate(axe)
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        faults = [
            f"{each['id']}: {each['help']}: {[node['html'][:200] for node in each['nodes']][:3]}"
            for each in found["violations"]
        ]
        assert faults == [], (page.url, colours)
    page.emulate_media(color_scheme="light", reduced_motion="no-preference")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{page.url} is too wide"


def focused(page: Any) -> str:
    """Return the name of what has the focus."""
    said = page.evaluate(
        "(e => e.getAttribute('aria-label') || e.labels?.[0]?.innerText || e.innerText || e.tagName)"
        "(document.activeElement)"
    )
    return " ".join(str(said).split())


def until(page: Any, true: str, timeout_s: float = 30.0) -> None:
    """Wait until an expression is true on a page, whatever its policy.

    Playwright's own `wait_for_function` evaluates the text in the page from its second look on, which ours forbid.
    """
    from playwright.sync_api import Error

    end = time.monotonic() + timeout_s
    while True:
        with suppress(Error):  # the page is left just now
            if page.evaluate(true):
                return
        assert time.monotonic() < end, f"not true on {page.url} in {timeout_s} s: {true}"
        page.wait_for_timeout(50)


def tab_to(page: Any, name: str, most: int = 60) -> None:
    """Press Tab until something of this name has the focus, which must be seen."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if focused(page).startswith(name):
            seen = page.evaluate(
                "(e => [e, ...e.querySelectorAll(':scope > .line')]"
                ".some(x => getComputedStyle(x).outlineStyle != 'none') || e.matches('textarea, [type=radio]'))"
                "(document.activeElement)"
            )
            assert seen, f"{name} does not show that it has the focus"
            return
    raise AssertionError(f"Tab does not come to {name!r}, only to {focused(page)!r}")


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["desktop", "phone"])
def test_a_whole_conversation(site: Site, visit: Visit, axe: str, size: tuple[int, int]) -> None:
    """Log in, ask, see the answer come, open its source, look at the trace, recommend, find, log out."""
    watch = visit(site, size)
    page = watch.page
    page.goto(f"{site.url}/node?id=house.md")
    assert "/login?next=" in page.url
    check(page, axe)
    picture(page, "login")
    watch.log_in(site)
    check(page, axe)
    page.fill("#question", "How are the lines of an invoice added up?")
    picture(page, "topics")
    page.click(".ask button.main")
    page.wait_for_url("**/thread?*")
    page.wait_for_selector(".answer")
    assert "value added tax" in page.inner_text(".answer")
    assert page.inner_text(".answer").count("__") == 0 and "total += line.amount" in page.inner_text(
        ".answer"
    )
    check(page, axe)
    picture(page, "answer")
    page.click("summary:has-text('How it was found')")
    assert "total_of" in page.inner_text(".walk")
    page.locator(".walk .out summary").first.click()
    check(page, axe)
    picture(page, "found")
    page.click("text=The whole trace")
    page.wait_for_selector(".steps")
    assert "decided at" in page.inner_text(".steps") and "Decisions of the router" in page.inner_text(
        ".node-side"
    )
    page.locator(".steps details summary").first.click()
    assert "ruled out" in page.inner_text(".steps table")
    check(page, axe)
    picture(page, "trace")
    page.click("text=Back to the answer")
    page.locator(".sources a").first.click()
    page.wait_for_selector("mark.line")
    assert "value added tax" in page.inner_text(".lines mark >> nth=1") + page.inner_text(".lines")
    assert page.locator("mark.line").first.get_attribute("data-n") == "1"
    top = "document.getElementById('quoted').getBoundingClientRect().top / innerHeight"
    assert page.evaluate(f"scrollY === 0 || {top} > 0.3"), "the title above what is quoted is seen"
    check(page, axe)
    picture(page, "node")
    page.click("text=Back to the answer")
    page.click("summary:has-text('More:')")
    check(page, axe)
    picture(page, "recommend")
    page.check("[name=type][value='Add Missing Info']")
    assert not page.is_visible("[name=fragment]"), "the answer is not what is missing"
    page.fill("[name=missing]", "Members of the club pay no tax.")
    page.click("button:has-text('Send')")
    page.wait_for_selector("[role=status].notice")
    assert "It is remembered" in page.inner_text(".notice")
    kept = site.call("Engine_1", "GET", "get-recommendations", After="0")
    assert kept[-1]["type"] == "Add Missing Info" and kept[-1]["fragment"].startswith("Members of the club")
    page.goto(f"{site.url}/find?q=bulb+of+the+lamp")
    assert "nine watts" in page.inner_text(".found")
    check(page, axe)
    picture(page, "find")
    for path in ADMINISTERED:
        page.goto(f"{site.url}/{path}")
        check(page, axe)
        assert page.evaluate(OUT_OF_SIGHT) == [], path
        picture(page, path.replace("/", "-"))
    page.goto(f"{site.url}/memories")
    page.click("button:has-text('Undo')")
    page.wait_for_selector("[role=status].notice")
    assert "taken back" in page.inner_text(".notice")
    header = page.locator("header.top .bar").bounding_box()
    assert header["height"] <= 64, "the header is one row"
    page.click("summary[aria-label*=account]")
    page.click("text=Log out everywhere")
    page.wait_for_url("**/login")
    page.goto(f"{site.url}/topics")
    assert "/login" in page.url


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["desktop", "phone"])
def test_trees_are_chosen_beside_the_question_and_opened_by_tabs(
    several: Site, visit: Visit, axe: str, size: tuple[int, int]
) -> None:
    """By keyboard: leave one tree out, ask, and look into the other."""
    watch = visit(several, size)
    page = watch.page
    watch.log_in(several)
    check(page, axe)
    page.fill("#question", "What is the secret of the soup?")
    tab_to(page, "handbook")
    page.keyboard.press("Space")
    picture(page, "trees")
    page.focus("#question")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/thread?*")
    page.wait_for_selector(".answer")
    assert "paprika" in page.inner_text(".answer") and "Asks recipes" in page.inner_text("main")
    check(page, axe)
    picture(page, "trees-answer")
    page.locator(".sources a").first.click()
    page.wait_for_selector("mark.line")
    assert "tree=recipes" in page.url
    page.click("text=Show in the tree")
    page.wait_for_selector("[role=treeitem]")
    check(page, axe)
    picture(page, "trees-tree")
    page.click("nav[aria-label=Trees] a:has-text('handbook')")
    page.wait_for_selector("[role=treeitem]")
    page.keyboard.press("Tab")
    page.locator("[role=treeitem]").first.press("ArrowDown")
    page.goto(f"{several.url}/admin/trees")
    page.fill("#i1-who", "everybody")
    page.click("button:has-text('Give access')")
    page.wait_for_selector("[role=status].notice")
    assert "everybody may ask handbook now." in page.inner_text(".notice")
    check(page, axe)
    picture(page, "admin-trees-two")
    page.click("summary:has-text('Remove access of everybody')")
    asks, does = (page.locator(f"details[open] form.act > {each}").bounding_box() for each in ("p", "button"))
    assert does["y"] >= asks["y"] + asks["height"], "the button is below what it asks"
    check(page, axe)
    picture(page, "admin-trees-asks")
    page.click("button:has-text('Remove access of everybody to handbook')")
    page.wait_for_selector("[role=status].notice:has-text('may not ask handbook any more')")


LONG = "The office handbook of 2026 & all that belongs to it"


@pytest.fixture
def titled(several: Site, visit: Visit) -> Iterator[Site]:
    """The server of two trees, one of which has a long title meanwhile."""
    watch = visit(several)
    watch.log_in(several)
    page = watch.page
    for title in (LONG, "handbook"):
        page.goto(f"{several.url}/admin/trees")
        page.select_option("#i2-choice", "handbook")
        page.fill("#i2-title", title)
        page.click("button:has-text('Rename')")
        page.wait_for_selector("[role=status].notice")
        if title == LONG:
            yield several


def test_a_long_title_of_a_tree_fits_on_a_phone(titled: Site, visit: Visit) -> None:
    watch = visit(titled, NARROW)
    page = watch.page
    watch.log_in(titled)
    chip = page.locator(f".choices span:has-text('{LONG}')")
    corner, height = chip.evaluate("e => [parseFloat(getComputedStyle(e).borderRadius), e.offsetHeight]")
    assert corner < height / 2.5, "its corners cut no text"
    page.fill("#question", "Which colour does the xylophone of the ferret have?")
    page.click(".ask button.main")
    page.wait_for_url("**/thread?*")
    page.wait_for_selector("select[name=tree]")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("size", [NARROW, (768, 900)], ids=["phone", "tablet"])
def test_a_long_name_of_a_user_fits_in_tables_and_topics(
    several: Site, visit: Visit, size: tuple[int, int]
) -> None:
    name = f"Somebody_who_has_a_name_without_spaces_{size[0]}".ljust(64, "x")
    watch = visit(several, size)
    watch.log_in(several)
    page = watch.page
    page.goto(f"{several.url}/admin/users")
    page.fill("#i1-name", name)
    page.click("button:has-text('Add')")
    secret = page.locator(".shown").first.inner_text()
    page.goto(f"{several.url}/admin/trees")
    page.fill("#i1-who", name)
    page.click("button:has-text('Give access')")
    page.wait_for_selector("[role=status].notice")
    page.click(f"summary:has-text('Remove access of {name}')")
    theirs = visit(several, size)
    theirs.log_in(replace(several, secrets={name: secret}), name)
    theirs.page.click("summary[aria-label*=account]")
    assert theirs.page.locator(".sheet").bounding_box()["x"] >= 0
    theirs.page.keyboard.press("Escape")
    theirs.page.fill("#question", "How many watts has the bulb of the lamp in the hall?")
    theirs.page.click(".ask button.main")
    theirs.page.wait_for_selector(".answer")
    thread = theirs.page.url
    for address in (None, f"{several.url}/admin/users", f"{several.url}/topics?others=1", thread):
        if address is not None:
            page.goto(address)
        assert name in page.inner_text("main")
        assert page.evaluate(OUT_OF_SIGHT) == [], page.url
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), page.url


def test_the_printed_link_logs_in_once_and_leaves_the_address(site: Site, visit: Visit, axe: str) -> None:
    page = visit(site).page
    page.goto(site.link)
    code = site.link.partition("code=")[2]
    until(page, "document.getElementById('code').value != ''")
    assert code not in page.url and "code" not in page.evaluate("location.hash")
    assert focused(page) == "Log in with the code"
    check(page, axe)
    page.keyboard.press("Enter")
    page.wait_for_url("**/topics")
    cookies = page.context.cookies()
    assert [(each["httpOnly"], each["sameSite"]) for each in cookies] == [(True, "Lax")]
    assert page.evaluate("document.cookie") == ""
    kept = page.evaluate("JSON.stringify([localStorage, sessionStorage])")
    assert not any(secret in page.content() + kept for secret in (*site.secrets.values(), code))
    refused = visit(site)
    other = refused.page
    other.goto(site.link)
    other.keyboard.press("Enter")
    other.wait_for_selector("[role=alert]")
    assert "was used" in other.inner_text("[role=alert]")
    assert len(refused.troubles) == 1 and "401" in refused.troubles.pop(), "which every console tells"


def step(number: int) -> dict[str, Any]:
    """Return a step as an engine tells it: each place is under the one before."""
    return {
        "Event": "route", "Node": f"place-{number}", "Title": f"Place {number}", "Choice": f"place-{number + 1}",
        "Chosen": f"Place {number + 1}", "Reason": f"evidence <{number}>", "Offered": 5, "Frame": 0, "RuledOutCount": 2,
        "RuledOut": [{"Node": f"no-{number}", "Title": f"Cellar {number}", "Reason": "nothing of it there"}],
        "Text": f"chose Place {number + 1} of 5",
    }  # fmt: skip


def notified(page: Any, text: str) -> None:
    """Wait until an event told a page of a step; the walk, which comes by another connection, may show it before."""
    page.wait_for_selector(f"[data-now]:has-text({text!r})")


def test_an_open_page_hears_who_searches(large: Site, visit: Visit) -> None:
    watch = visit(large)
    page = watch.page
    watch.log_in(large)
    large.call("Engine_1", "POST", "leave")
    page.fill("#question", "Who looks for this?")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/thread?*")
    notified(page, "Nobody is searching")
    claim = large.claim(page)
    notified(page, "An engine (Engine_1) took it just now")
    assert page.inner_text("span[data-state]") == "being answered"
    large.call("Engine_1", "POST", "hand-back", {"Topic": claim["Topic"], "Lease": claim["Lease"]})
    large.call("Engine_1", "POST", "leave")
    notified(page, "Nobody is searching")
    assert page.inner_text("span[data-state]") == "waiting for an engine"
    assert sum("/thread?" in url for url in watch.asked) == 1, "without loading it again"


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["desktop", "phone"])
def test_the_walk_is_watched_while_it_grows(
    large: Site, visit: Visit, axe: str, size: tuple[int, int]
) -> None:
    watch = visit(large, size)
    page = watch.page
    watch.log_in(large)
    page.fill("#question", f"Where does this lead, {size[0]}?")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/thread?*")
    assert "waiting for an engine" in page.inner_text(".question")
    claim = large.claim(page)
    topic, ((_, text),) = claim["Topic"], claim["Queries"][0].items()
    assert page.locator(".so-far[open]").count() == 0, "a page stays calm until somebody wants to watch"
    page.click(".so-far > summary")
    for number in range(1, 4):
        large.call("Engine_1", "POST", "give-progress", {"Topic": topic, "Seq": 1, "Steps": [step(number)]})
        page.wait_for_selector(f".walk >> text='Place {number + 1}'")
        notified(page, f"Place {number + 1}")
    assert "evidence <2>" in page.inner_text(".walk"), "what engines say is text"
    assert "waiting for an engine" not in page.inner_text(".question")
    assert page.inner_text("#told").startswith("chose Place 4"), "told to those who hear the page"
    fetching: list[Any] = []
    page.route("**/thread/walk?*", lambda route: fetching.append(route), times=1)
    large.call("Engine_1", "POST", "give-progress", {"Topic": topic, "Seq": 1, "Steps": [step(4)]})
    notified(page, "Place 5")
    while not fetching:
        page.wait_for_timeout(20)
    page.locator(".walk .out summary").first.click()
    assert "nothing of it there" in page.inner_text(".walk")
    fetching[0].continue_()
    page.wait_for_selector(".walk >> text='Place 5'")
    assert page.locator(".walk details[open]").count() == 1, "what was opened stays open while the walk grows"
    assert page.evaluate("document.activeElement.matches('.walk .out summary')"), "and so does the focus"
    check(page, axe)
    picture(page, "walk")
    loads = sum("/thread?" in url for url in watch.asked)
    asked = {"Key": "k", "Question": "Which <cellar> do you mean?"}
    parked = {"Topic": topic, "Seq": 1, "Lease": claim["Lease"], "Questions": [asked]}
    large.call("Engine_1", "POST", "ask-person", parked)
    page.wait_for_selector(".person")
    check(page, axe)
    picture(page, "person")
    page.fill(".person textarea", "The upper one")
    page.click(".person button.main")
    page.wait_for_selector(".told")
    assert "The upper one" in page.inner_text(".told")
    large.claim(page)
    page.wait_for_selector("[data-now]")
    source = {"Node": "letter-000007", "Title": "Letter 7", "Quote": "", "Path": None}
    body = {"Topic": topic, "Seq": 1, "Query": text, "Answer": ["To **the end**."], "Sources": [source]}
    large.call("Engine_1", "POST", "give-new-answer", body)
    page.wait_for_selector(".answer strong")
    assert sum("/thread?" in url for url in watch.asked) <= loads + 2, "the page was not loaded again for it"
    assert page.inner_text("#told") == "The answer is there."


class Cable:
    """What is between a browser and a server, and can be cut."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._ends: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                here = self._listening.accept()[0]
                there = socket.create_connection(("127.0.0.1", self._port))
                self._ends += [here, there]
                for one, other in ((here, there), (there, here)):
                    threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65_536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        """End all connections; new ones can be made."""
        ends, self._ends = self._ends, []
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        """End it all."""
        self._listening.close()
        self.cut()


def test_a_lost_connection_goes_on_where_it_was_cut_off(large: Site, visit: Visit) -> None:
    with closing(Cable(int(large.url.rpartition(":")[2]))) as cable:
        watch = visit(replace(large, url=cable.url))
        page, asked = watch.page, list[Any]()
        page.on("request", lambda request: asked.append(request) if "/thread/events" in request.url else None)
        watch.log_in(large)
        page.fill("#question", "What was missed?")
        page.click(".ask button.main")
        page.wait_for_url("**/thread?*")
        topic = large.claim(page)["Topic"]
        large.call("Engine_1", "POST", "give-progress", {"Topic": topic, "Seq": 1, "Steps": [step(1)]})
        notified(page, "Place 2")
        cable.cut()
        large.call("Engine_1", "POST", "give-progress", {"Topic": topic, "Seq": 1, "Steps": [step(2)]})
        notified(page, "Place 3")
        after = [int(parse_qs(urlsplit(one.url).query)["after"][0]) for one in asked]
        assert after[0] < after[-1], "it goes on where it was cut off"
        body = {"Topic": topic, "Seq": 1, "Query": "What was missed?", "Answer": ["Nothing."]}
        large.call("Engine_1", "POST", "give-new-answer", body)
        page.wait_for_selector(".answer")
    # The console of a browser tells of connections that are lost.
    assert all("net::ERR_" in trouble for trouble in watch.troubles)
    watch.troubles.clear()


class BehindNginx:
    """A server whose searches wait, behind nginx; it can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = folder / "service.db"
        self._port, port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{port}"
        (folder / "source").mkdir()
        for name in ("house", "garden"):
            (folder / "source" / f"{name}.md").write_text(
                f"# The {name}\n\nThe lamp in the {name} has nine watts.\n"
            )
        secret = run_apart(self._add_ann)
        self.site = Site(self.url, {"ann": secret}, "")
        user = "user root;" if os.getuid() == 0 else ""
        template = (Path(__file__).parent / "nginx.conf").read_text()
        text = template.format(folder=folder, port=port, server=self._port, user=user)
        (folder / "nginx.conf").write_text(text)
        self._nginx = subprocess.Popen(
            ["/usr/sbin/nginx", "-c", folder / "nginx.conf", "-e", folder / "nginx.log"]
        )
        self._server: subprocess.Popen[str] | None = None
        self.start()

    async def _add_ann(self) -> str:
        with closing(SqliteDatabase.open(self.database)._store) as store:
            return await Users(SqliteDatabase(store)).add("ann", "user")

    def start(self) -> None:
        """Start the server, and wait until it listens."""
        given = (self.database, self.folder / "source", self.folder, str(self._port), "600")
        command = [sys.executable, "-m", "tests.integration.service.slow_server", *map(str, given)]
        self._server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._server.stdout is not None
        assert any("listening on" in line for line in self._server.stdout)

    def searching(self, times: int) -> None:
        """Wait until a search was begun so many times."""
        file = self.folder / "searching"
        for _ in range(1_200):
            if file.exists() and len(file.read_text().split()) >= times:
                return
            threading.Event().wait(0.05)
        raise AssertionError("no search was begun")

    def kill(self) -> None:
        """Kill the server."""
        assert self._server is not None and self._server.stdout is not None
        self._server.kill()
        self._server.wait()
        self._server.stdout.close()

    def close(self) -> None:
        """Stop everything."""
        self.kill()
        self._nginx.terminate()
        self._nginx.wait(30)


@pytest.fixture
def behind_nginx(tmp_path: Path) -> Iterator[BehindNginx]:
    with closing(BehindNginx(tmp_path)) as running:
        yield running


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port


def watched(behind: BehindNginx, visit: Visit) -> tuple[Watch, list[tuple[str, int]]]:
    """Return a page that watches a search, and the answers that it was given since."""
    watch = visit(behind.site)
    watch.log_in(behind.site, "ann")
    watch.page.fill("#question", "How many watts has the lamp?")
    watch.page.click(".ask button.main")
    watch.page.wait_for_url("**/thread?*")
    behind.searching(1)
    answers: list[tuple[str, int]] = []
    watch.page.on("response", lambda answer: answers.append((answer.url, answer.status)))
    return watch, answers


def test_a_page_goes_on_when_the_server_behind_a_proxy_was_killed_and_is_back(
    behind_nginx: BehindNginx, visit: Visit
) -> None:
    watch, answers = watched(behind_nginx, visit)
    page = watch.page
    behind_nginx.kill()
    page.wait_for_selector("[data-now]:has-text('Connection lost')")
    assert page.inner_text("#told").startswith("Connection lost")
    assert page.get_attribute("#told", "aria-live") == "polite"
    while [status for _, status in answers].count(502) < 3:
        page.wait_for_timeout(100)
    behind_nginx.start()
    behind_nginx.searching(2)
    page.wait_for_selector("[data-now]:not(:has-text('Connection lost'))")
    (behind_nginx.folder / "go").touch()
    page.wait_for_selector(".answer")
    assert "nine watts" in page.inner_text(".answer")
    assert page.inner_text("#told") == "The answer is there."
    assert not any("/thread?" in url for url, _ in answers), "the page was not loaded again for it"
    # The console of a browser tells of every answer that is none.
    assert all("502" in trouble or "net::ERR_" in trouble for trouble in watch.troubles)
    watch.troubles.clear()


@pytest.mark.parametrize(
    ("gone", "said"),
    [("service_session", "log in"), ("topic", "This search is gone")],
    ids=["logged out", "deleted"],
)
def test_a_page_says_what_to_do_when_trying_again_is_no_use(
    behind_nginx: BehindNginx, visit: Visit, gone: str, said: str
) -> None:
    watch, answers = watched(behind_nginx, visit)
    page = watch.page
    behind_nginx.kill()
    page.wait_for_selector("[data-now]:has-text('Connection lost')")
    with closing(SqliteDatabase.open(behind_nginx.database)._store) as store:
        store.execute(f"DELETE FROM {gone}")
    behind_nginx.start()
    page.wait_for_selector(f"[data-now]:has-text('{said}')")
    assert said in page.inner_text("#told")
    asked = len(answers)
    page.wait_for_timeout(5_000)
    assert len(answers) == asked, "it is not tried again"
    watch.troubles.clear()


def test_a_walk_is_there_before_its_scripts_are(large: Site, visit: Visit) -> None:
    """Scripts that come late, or never, miss nothing: the page has the walk so far, and events go on from there."""
    watch, silent = visit(large), visit(large, java_script_enabled=False)
    watch.log_in(large)
    page = watch.page
    page.fill("#question", "What comes late?")
    held: list[Any] = []
    page.route("**/page.js*", lambda route: held.append(route), times=1)
    page.click(".ask button.main")
    page.wait_for_url("**/thread?*", wait_until="commit")
    topic = large.claim(page)["Topic"]
    for number in (1, 2):
        large.call("Engine_1", "POST", "give-progress", {"Topic": topic, "Seq": 1, "Steps": [step(number)]})
    while not held:
        page.wait_for_timeout(20)
    assert page.locator(".walk").count() == 0
    held[0].continue_()
    page.wait_for_selector(".walk >> text='Place 3'", state="attached")
    silent.log_in(large)
    silent.page.goto(page.url)
    assert "Place 3" in (silent.page.text_content(".walk") or "")
    assert silent.page.locator("noscript").count() == 1, "it loads itself again"
    silent.page.goto(f"{large.url}/tree?id=letters&start=200")
    assert silent.page.get_by_text("Letter 250", exact=True).is_visible()
    body = {"Topic": topic, "Seq": 1, "Query": "What comes late?", "Answer": ["All."]}
    large.call("Engine_1", "POST", "give-new-answer", body)


def test_a_tree_of_100_000_nodes_is_browsed_page_by_page(large: Site, visit: Visit, axe: str) -> None:
    for size in (WIDE, NARROW):
        watch = visit(large, size)
        watch.log_in(large)
        page = watch.page
        sizes: list[int] = []
        page.on(
            "response", lambda answer, sizes=sizes: sizes.append(int(answer.headers.get("content-length", 0)))
        )
        page.goto(f"{large.url}/tree")
        assert page.locator("[role=treeitem]").count() <= 5
        page.locator("[data-id=letters] > .line .twist").click()
        page.wait_for_selector("text='Letter 100'")
        assert page.locator("[role=treeitem]").count() <= 110
        page.click("text=Show more, 99,900 after here")
        page.wait_for_selector("text='Letter 200'")
        assert focused(page).startswith("Letter 101")
        item = page.locator("[data-id=letter-000150]")
        assert (item.get_attribute("aria-posinset"), item.get_attribute("aria-setsize")) == ("150", "100000")
        check(page, axe)
        picture(page, "tree")
        # A node in the middle is shown with its neighbours, from where both ways go on.
        page.goto(f"{large.url}/tree?id=note")
        page.wait_for_selector("[role=treeitem][data-at]")
        assert page.locator("[role=treeitem]").count() <= 110
        assert page.get_by_text("A note on it").is_visible()
        page.click("text=Show earlier ones, 54,300 before here")
        page.wait_for_selector("[data-id=letter-054201]")
        page.goto(f"{large.url}/tree?id=level-199")
        assert (
            page.get_by_text("Level 199").is_visible()
            and page.get_by_text("171 levels above this").is_visible()
        )
        check(page, axe)
        assert max(sizes) < 300_000, "no answer has the whole tree"
        page.goto(f"{large.url}/node?id=letters")
        assert page.locator(".children li").count() == 100
        page.get_by_role("link", name="More").click()
        page.wait_for_selector("text='Letter 200'")


def test_the_tree_is_as_it_was_after_back(site: Site, visit: Visit) -> None:
    watch = visit(site)
    watch.log_in(site)
    page = watch.page
    page.goto(f"{site.url}/tree")
    page.click("li[data-id='billing'] > .line .twist")
    page.click("li[data-id='billing/invoice.py'] > .name, li[data-id='billing/invoice.py'] .name >> nth=0")
    page.wait_for_url("**/node?*")
    page.go_back()
    page.wait_for_selector("li[data-id='billing'][aria-expanded='true'] li[data-id='billing/invoice.py']")
    page.click("nav >> text=Memory")
    page.wait_for_url("**/tree")
    page.wait_for_selector("[role=treeitem]")
    assert page.locator("li[data-id='billing'][aria-expanded='true']").count() == 0, (
        "a new visit is a new one"
    )


def test_letters_jump_to_the_node_that_begins_with_them(site: Site, visit: Visit) -> None:
    watch = visit(site)
    watch.log_in(site)
    page = watch.page
    page.goto(f"{site.url}/tree")
    titles = [
        each.strip().lower() for each in page.locator("[role=treeitem] > .line .name").all_inner_texts()
    ]
    focused = "document.activeElement.closest('[role=treeitem]').querySelector('.name').textContent"
    page.locator("[role=treeitem]").first.focus()
    for wanted in titles[1:]:
        page.wait_for_timeout(700)  # what is typed later than this begins anew
        page.keyboard.type(wanted[:3])
        assert page.evaluate(focused).strip().lower().startswith(wanted[:3])
    assert len(titles) > 2


def test_an_answer_is_copied_and_looking_says_so(site: Site, visit: Visit) -> None:
    watch = visit(site, permissions=["clipboard-read", "clipboard-write"])
    watch.log_in(site)
    page = watch.page
    page.fill("#question", "How many watts has the bulb of the lamp in the hall?")
    page.click(".ask button.main")
    page.wait_for_selector(".answer")
    page.click("button:has-text('Copy')")
    page.wait_for_selector("button:has-text('Copied')")
    assert "nine watts" in page.evaluate("navigator.clipboard.readText()")
    page.goto(f"{site.url}/find")
    looks = "document.querySelector('main form').getAttribute('aria-busy') + told.textContent"
    page.evaluate(f"addEventListener('submit', () => setTimeout(() => {{ sessionStorage.looks = {looks} }}))")
    page.route("**/find?*", lambda route: (page.wait_for_timeout(200), route.continue_()))
    page.fill("#find", "watts")
    page.keyboard.press("Enter")
    page.wait_for_selector(".found")
    assert page.evaluate("sessionStorage.looks") == "trueLooking…"
    assert page.locator("form[aria-busy=true]").count() == 0


def test_the_api_is_tried_on_a_page_under_the_same_policy(site: Site, visit: Visit) -> None:
    watch = visit(site)
    watch.log_in(site)
    page = watch.page
    page.goto(f"{site.url}/account")
    page.click("button:has-text('Make a key')")
    key = page.inner_text(".shown")
    page.goto(f"{site.url}/docs")
    page.click("button.authorize")
    page.fill(".auth-container input", key)
    page.click(".auth-btn-wrapper button.authorize")
    page.click(".auth-btn-wrapper button.btn-done")
    page.click('[data-path="/api/admin/overview"]')
    page.click("button.try-out__btn")
    page.click("button.execute")
    page.wait_for_selector(".responses-inner .live-responses-table .response-col_status:has-text('200')")
    assert f"Authorization: Bearer {key}" in page.inner_text(".curl-command"), "it was sent with the key"
    dark = "document.documentElement.classList.contains('dark-mode')"
    assert not page.evaluate(dark)
    page.emulate_media(color_scheme="dark")
    until(page, dark)  # as the page around it
    page.emulate_media(color_scheme="light")
    picture(page, "docs")


def test_a_question_is_not_lost_when_the_server_is_away(site: Site, visit: Visit) -> None:
    watch = visit(site)
    watch.log_in(site)
    page = watch.page
    text = "How many watts has the bulb of the lamp in the hall?"
    for seq in (1, 2):
        page.fill("#question", text)
        page.route("**/ask", lambda route: route.abort("connectionrefused"))
        page.keyboard.press("Control+Enter")
        until(page, "location.protocol === 'chrome-error:'")
        page.unroute("**/ask")
        page.go_back()
        assert page.input_value("#question") == text
        page.focus("#question")
        page.keyboard.press("Control+Enter")
        page.wait_for_selector(f"#q{seq} .answer")
        assert page.input_value("#question") == ""
    page.reload()
    assert page.input_value("#question") == ""
    page.goto(f"{site.url}/topics")
    assert page.input_value("#question") == "" and page.evaluate("sessionStorage.length") == 0
    watch.troubles = [each for each in watch.troubles if "ERR_CONNECTION_REFUSED" not in each]


def test_everything_is_done_by_keyboard_alone(large: Site, visit: Visit) -> None:
    page = visit(large).page
    page.goto(f"{large.url}/")
    assert page.evaluate("document.activeElement.id") == "name"
    page.keyboard.type("admin")
    tab_to(page, "Secret")
    page.keyboard.type(large.secrets["admin"])
    page.keyboard.press("Enter")
    page.wait_for_url("**/topics")
    page.keyboard.press("Tab")
    assert focused(page) == "Skip to the content"
    page.keyboard.press("Enter")
    tab_to(page, "Your question")
    page.keyboard.type("Is it there?")
    tab_to(page, "Ask")
    page.keyboard.press("Enter")
    page.wait_for_url("**/thread?*")
    topic = large.claim(page)["Topic"]
    sources = [{"Node": "letters", "Title": "Letters"}]
    body = {"Topic": topic, "Seq": 1, "Query": "Is it there?", "Answer": ["It is."], "Sources": sources}
    large.call("Engine_1", "POST", "give-new-answer", body)
    page.wait_for_selector(".answer")
    tab_to(page, "More: correct")
    page.keyboard.press("Enter")
    tab_to(page, "Make Correction")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.querySelector('[name=type]:checked').value") == "Promote Answer"
    tab_to(page, "Send")
    page.keyboard.press("Enter")
    page.wait_for_selector(".notice")
    tab_to(page, "Memory")
    page.keyboard.press("Enter")
    page.wait_for_selector("[role=tree]")
    tab_to(page, "archive")
    page.keyboard.press("ArrowRight")
    assert focused(page).startswith("Letters")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("[data-id=letter-000100]")
    assert (
        focused(page).startswith("Letters")
        and page.get_attribute("[data-id=letters]", "aria-expanded") == "true"
    )
    page.keyboard.press("ArrowRight")
    assert focused(page) == "Letter 1: From somebody"
    page.keyboard.press("ArrowDown")
    assert focused(page) == "Letter 2: From somebody"
    page.keyboard.press("End")
    assert focused(page).startswith("Level 0")
    page.keyboard.press("ArrowUp")
    assert focused(page).startswith("Show more")
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-id=letter-000200]")
    assert focused(page).startswith("Letter 101")
    page.keyboard.press("ArrowLeft")
    assert focused(page).startswith("Letters")
    page.keyboard.press("ArrowLeft")
    assert page.get_attribute("[data-id=letters]", "aria-expanded") == "false"
    page.keyboard.press("l")
    assert focused(page).startswith("Level 0"), "a letter goes on to the next of that name"
    page.keyboard.press("Home")
    assert focused(page).startswith("archive")
    assert page.locator("[role=treeitem][tabindex='0']").count() == 1, "Tab comes to the tree once"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/node?id=letters")
    tab_to(page, "admin, account")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    assert focused(page) == "admin, account"
    assert not page.evaluate("document.querySelector('.menu').open")


def test_colours_are_those_of_the_system_until_somebody_chooses(site: Site, visit: Visit) -> None:
    page = visit(site, color_scheme="dark").page
    paper = "getComputedStyle(document.body).backgroundColor"
    page.goto(f"{site.url}/login")
    dark = page.evaluate(paper)
    page.emulate_media(color_scheme="light")
    light = page.evaluate(paper)
    assert dark != light
    page.click("#theme")
    assert page.evaluate(paper) == dark and page.get_attribute("#theme", "aria-label") == "Use light colours"
    page.reload()
    assert page.evaluate(paper) == dark
    page.click("#theme")
    assert page.evaluate(paper) == light


def test_what_is_hostile_in_an_answer_is_shown_as_text(large: Site, visit: Visit) -> None:
    watch = visit(large)
    watch.log_in(large)
    page = watch.page
    page.fill("#question", "<img src=x onerror=document.title='hit'> What is hostile?")
    page.click(".ask button.main")
    page.wait_for_url("**/thread?*")
    claim = large.claim(page)
    ((_, text),) = claim["Queries"][0].items()
    evil = "<script>document.title='hit'</script> [x](javascript:document.title='hit') ![p](http://203.0.113.9/p.png)"
    hostile = {
        **step(1),
        "Reason": evil,
        "Chosen": evil,
        "Title": evil,
        "Text": evil,
        "Choice": "javascript:alert(1)",
    }
    large.call("Engine_1", "POST", "give-progress", {"Topic": claim["Topic"], "Seq": 1, "Steps": [hostile]})
    page.wait_for_selector(".walk", state="attached")
    body = {"Topic": claim["Topic"], "Seq": 1, "Query": text, "Answer": [evil], "Think": [evil],
            "Sources": [{"Node": "javascript:alert(1)", "Title": evil, "Quote": evil, "Path": evil}]}  # fmt: skip
    large.call("Engine_1", "POST", "give-new-answer", body)
    page.wait_for_selector(".answer")
    assert "hit" not in page.title().split("<")[0] and page.locator("main img, main script").count() == 0
    assert "<script>" in page.inner_text(".answer")
    links = page.eval_on_selector_all("main a", "all => all.map(each => each.href)")
    assert links and all(link.startswith(f"{large.url}/") for link in links)


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_a_question_that_nothing_answers_shows_what_comes_closest(
    large: Site, visit: Visit, axe: str, size: tuple[int, int]
) -> None:
    """It looks like no answer, with scripts and without; what is in a passage is text, and no page is too wide."""
    watch = visit(large, size)
    watch.log_in(large)
    page = watch.page
    page.fill("#question", "Who pays for the lamps of the archive?")
    page.click(".ask button.main")
    page.wait_for_url("**/thread?*")
    claim = large.claim(page)
    ((_, text),) = claim["Queries"][0].items()
    evil = "<img src=x onerror=document.title='hit'><script>document.title='hit'</script> ![p](http://203.0.113.9/p.png)"
    code = 'def pays(lamp, archive):\n    """Say who pays for a lamp."""\n' + "".join(
        f"    if lamp.number == {number}: return archive.accounts.of_the_year(lamp.bought_in).first_payer_of(lamp)\n"
        for number in range(30)
    )
    passages = [
        {"Question": text, "Node": "note", "Title": "A note on it", "Place": "note", "Lines": [1, 1], "Quote": "Seen."},
        {"Question": text, "Node": "javascript:alert(1)", "Title": evil, "Place": "w" * 300, "Lines": [3, 4],
         "Quote": f"{evil}\n{'w' * 600}"},
        {"Question": text, "Node": "letters", "Title": "Letters", "Place": "a/very/long/path/" * 5 + "lamps.py",
         "Lines": [1, 32], "Quote": code, "Score": 0.1},
        {"Question": text, "Title": "The fourth", "Quote": "is not shown"},
    ]  # fmt: skip
    body = {"Topic": claim["Topic"], "Seq": 1, "Query": text, "Answer": ["The sources do not say, as far as this search"
            " can tell."], "End": "closest", "Open": [text], "Closest": passages}  # fmt: skip
    large.call("Engine_1", "POST", "give-new-answer", body)
    page.wait_for_selector(".closest")
    said = "The sources do not say, as far as this search can tell. Closest passages:"
    assert page.inner_text(".not-said") == said == page.inner_text("#told")
    assert "not answered" in page.inner_text(".question .meta")
    assert page.locator(".closest li").count() == 3 and "The fourth" not in page.inner_text("main")
    assert page.locator(".answer").count() == 0
    assert page.locator("form.recommend").count() == 1 and page.is_visible("[name=fragment]")
    assert "<script>" in page.inner_text(".closest") and page.locator("main img, main script").count() == 0
    assert "number == 9:" not in page.inner_text(".closest li:last-child") and "…" in page.inner_text(
        ".closest"
    )
    check(page, axe)
    picture(page, "closest")
    links = page.eval_on_selector_all(".closest a", "all => all.map(each => each.href)")
    assert len(links) == 3 and all(link.startswith(f"{large.url}/node?") for link in links)
    page.click(".closest a:has-text('A note on it')")
    page.wait_for_selector("mark.line")
    assert page.inner_text("mark.line").strip() == "Seen."
    bare = visit(large, size, java_script_enabled=False)
    bare.log_in(large)
    bare.page.goto(page.locator("text=Back to the answer").evaluate("e => e.href"))
    assert bare.page.inner_text(".not-said") == said and bare.page.locator(".closest li").count() == 3


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_three_passages_are_seen_at_once_and_whoever_knows_it_adds_it_by_keyboard(
    large: Site, visit: Visit, axe: str, size: tuple[int, int]
) -> None:
    watch = visit(large, size)
    watch.log_in(large)
    page = watch.page
    page.fill("#question", "Who waters the roses of the archive?")
    page.click(".ask button.main")
    page.wait_for_url("**/thread?*")
    claim = large.claim(page)
    ((_, text),) = claim["Queries"][0].items()
    passages = [
        {"Question": text, "Node": "note", "Title": f"Letter {number}", "Place": f"letters/{number}.md",
         "Lines": [1, 9], "Quote": "The roses stand behind the archive, in a row of nine. " * 10}
        for number in range(3)
    ]  # fmt: skip
    body = {"Topic": claim["Topic"], "Seq": 1, "Query": text, "Answer": ["The sources do not say."], "End": "closest",
            "Open": [text], "Closest": passages}  # fmt: skip
    large.call("Engine_1", "POST", "give-new-answer", body)
    page.wait_for_selector(".closest")
    bottoms = "all => all.map(each => each.getBoundingClientRect().bottom)"
    assert max(page.eval_on_selector_all(".closest .exact", bottoms)) <= size[1], "seen without scrolling"
    first = page.locator(".closest .exact").first
    height = first.bounding_box()["height"]
    page.locator(".question").focus()
    tab_to(page, "More lines of Letter 0")
    page.keyboard.press("Enter")
    assert first.bounding_box()["height"] > height
    check(page, axe)
    page.keyboard.press("Enter")
    assert first.bounding_box()["height"] == height
    tab_to(page, "Do you know the answer? Write it here")
    picture(page, "add")
    page.keyboard.type("Ann waters them.")
    tab_to(page, "Add it to the memory")
    page.keyboard.press("Enter")
    page.wait_for_selector("[role=status].notice")
    assert "Ann waters them." in page.inner_text(".said-of"), "shown at once"
    kept = large.call("Engine_1", "GET", "get-recommendations", After="0")
    assert kept[-1]["type"] == "Add Missing Info" and kept[-1]["fragment"] == "Ann waters them."
