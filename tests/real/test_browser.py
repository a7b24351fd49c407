"""A real Chromium: pictures and texts of pages with scripts, and pages that try to reach what they may not."""

from __future__ import annotations

import os
import struct
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from metatree_memory_tools import build_tree
from metatree_memory_tools.web.addresses import AddressRules
from metatree_memory_tools.web.chromium import find_chromium, take_screenshot
from metatree_memory_tools.web.tools import screenshot

from metatree import Blackboard, search
from metatree.errors import FetchFailed, RefusedAddress, UserError
from metatree.testing._web_server import Asked, Reply, WebServer
from metatree.trees.source_types import SourceRef

pytestmark = pytest.mark.real

BOARD = """<!doctype html><title>Departures</title><style>body{margin:0}#low{height:2000px}</style>
<h1>Departures</h1><p id="next">Loading the departures board.</p><div id="low"></div><p>End of page</p>
<script>setTimeout(() => fetch('/next').then(r => r.text()).then(
t => { document.getElementById('next').textContent = t }), 200)</script>"""


@pytest.fixture
def server() -> Iterator[WebServer]:
    next_one = "The night train to Vienna leaves from platform 9."
    with WebServer({"/": BOARD, "/next": Reply(next_one, kind="text/plain")}) as running:
        yield running


@pytest.fixture
def rules(server: WebServer) -> AddressRules:
    return AddressRules(allow=(server.host,))


def _size(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def test_a_page_is_seen_with_its_scripts(server: WebServer, rules: AddressRules) -> None:
    shot = take_screenshot(f"{server.url}/", rules=rules, width=800, height=600)
    assert (shot.title, shot.url, shot.refused) == ("Departures", f"{server.url}/", ())
    assert "The night train to Vienna leaves from platform 9." in shot.text and "End of page" in shot.text
    assert _size(shot.png) == (shot.width, shot.height) and shot.width == 800 and shot.height > 2_000
    low = take_screenshot(f"{server.url}/", rules=rules, width=800, height=600, full_page=False)
    assert _size(low.png) == (800, 600)


def test_a_question_that_only_a_browser_answers(server: WebServer, tmp_path: Path) -> None:
    """The page as it was fetched says nothing of trains; the search looks at it in a browser and tells the board."""
    source = SourceRef(f"{server.url}/", {"allow": [server.host]}, "station")
    with build_tree(source, out=tmp_path / "tree") as tree:
        question = "Departures board in a browser: from which platform does the train to Vienna leave?"
        assert search(question, tree=tree, own_tools=False).ended == "exhausted"
        board = Blackboard()
        result = search(question, tree=tree, blackboard=board)
        assert result.ended == "answered" and "platform 9" in str(result.answer)
        steps = [(e.event, (e.data or {}).get("tool")) for e in result.trace if e.event in ("tool", "create")]
        assert steps[0] == ("tool", "screenshot")
        (made,) = [node for _, node in tree.walk() if node.kind == "screenshot"]
        assert made.provenance["tool"] == "screenshot" and "Vienna" in tree.content(made)
        (item,) = board.items(sections="screenshots")
        assert item.image == made.attributes["image"] and item.sources == ("station",)
        assert item.data["metadata"]["url"] == f"{server.url}/"
        (shown,) = [part for part in board.screenshots_to_prompt() if part["type"] == "image_url"]
        assert shown["image_url"]["url"].startswith("data:image/png;base64,")
        board.close()


def test_without_a_board_the_picture_goes_to_that_of_the_tree(server: WebServer, tmp_path: Path) -> None:
    source = SourceRef(f"{server.url}/", {"allow": [server.host]}, "station")
    with build_tree(source, out=tmp_path / "tree") as tree:
        search("Departures board in a browser: which platform is for Vienna?", tree=tree)
        assert len(Blackboard(tree).items(sections="screenshots")) == 1


def test_keys_on_a_page_are_masked_in_what_a_browser_shows(tmp_path: Path) -> None:
    page = "<!doctype html><title>T AKIAQQ971ZZZZYYYXXXX</title><p>Key AKIAQQ974ZZZZYYYXXXX of platform 9</p>"
    with WebServer({"/": page}) as running:
        source = SourceRef(f"{running.url}/", {"allow": [running.host]}, "keys")
        with build_tree(source, out=tmp_path / "tree") as tree:
            made = screenshot(tree.get("keys"), tree, Blackboard(tree))
    assert "platform 9" in str(made.content) and "AKIA" not in repr(made)


@pytest.fixture
def secret() -> Iterator[WebServer]:
    """Another server on this machine, which no page may reach."""
    anybody = {"Access-Control-Allow-Origin": "*"}
    with WebServer({"/": Reply("SECRET", headers=anybody)}) as running:
        yield running


def _attack(secret: WebServer) -> str:
    at, named = secret.url, f"http://localhost:{secret.port}"
    return f"""<!doctype html><title>Attack</title><body><p id="said">nothing</p>
    <img src="{at}/img"><link rel="stylesheet" href="{named}/css"><script src="{at}/js"></script>
    <link rel="prefetch" href="{at}/prefetch"><link rel="dns-prefetch" href="//metadata.example">
    <iframe src="{at}/frame"></iframe><iframe src="file:///etc/passwd"></iframe>
    <object data="{at}/object"></object><video src="{at}/video"></video>
    <form id="form" method="post" action="{at}/form" target="hidden"><input name="a" value="b"></form>
    <iframe name="hidden"></iframe>
    <script>
    const say = t => {{ document.getElementById('said').textContent += t }};
    for (const url of ['{at}/', '{named}/', 'http://[::1]:{secret.port}/', 'http://2130706433:{secret.port}/',
                       'http://169.254.169.254/latest/', 'file:///etc/passwd'])
      fetch(url).then(r => r.text()).then(say).catch(() => 0);
    try {{ new WebSocket('{at.replace("http", "ws")}/ws') }} catch (e) {{}}
    try {{ new EventSource('{at}/events') }} catch (e) {{}}
    navigator.sendBeacon('{at}/beacon', 'x');
    document.getElementById('form').submit();
    try {{ const pc = new RTCPeerConnection({{iceServers: [{{urls: 'stun:127.0.0.1:{secret.port}'}}]}});
           pc.createDataChannel('x'); pc.createOffer().then(o => pc.setLocalDescription(o)) }} catch (e) {{}}
    if ('serviceWorker' in navigator) navigator.serviceWorker.register('{at}/worker').catch(() => 0);
    window.open('{at}/popup');
    </script>"""


def test_a_page_reaches_nothing_that_we_may_not(
    server: WebServer, rules: AddressRules, secret: WebServer
) -> None:
    server.routes["/attack"] = _attack(secret)
    shot = take_screenshot(f"{server.url}/attack", rules=rules)
    assert secret.asked == []
    assert "SECRET" not in shot.text and "root:" not in shot.text
    assert any("/img" in line and "loopback" in line for line in shot.refused)
    assert any("169.254.169.254" in line for line in shot.refused)


@pytest.mark.parametrize(
    "way",
    [
        "location.href = '{}'",
        "location.replace('{}')",
        "document.write('<meta http-equiv=refresh content=\"0;url={}\">')",
    ],
)
def test_a_page_that_goes_elsewhere_by_script_is_refused(
    server: WebServer, rules: AddressRules, secret: WebServer, way: str
) -> None:
    server.routes["/away"] = f"<title>Away</title><p>here</p><script>{way.format(secret.url + '/')}</script>"
    shot = take_screenshot(f"{server.url}/away", rules=rules)
    assert secret.asked == [] and "SECRET" not in shot.text


def test_a_redirect_of_the_browser_alone_is_refused(
    server: WebServer, rules: AddressRules, secret: WebServer
) -> None:
    """A server that shows our own fetch a page and the browser a redirect."""

    def two_faced(asked: Asked) -> Reply:
        ours = asked.headers["user-agent"].startswith("metatree/")
        return Reply("<p>fine") if ours else Reply("", 302, {"Location": f"{secret.url}/"})

    server.routes["/faces"] = two_faced
    shot = take_screenshot(f"{server.url}/faces", rules=rules)
    assert secret.asked == [] and "SECRET" not in shot.text


def test_what_may_not_be_fetched_is_not_shown(server: WebServer, rules: AddressRules) -> None:
    for url in ("http://127.0.0.1:9/", "file:///etc/passwd", "chrome://version", "about:blank"):
        with pytest.raises(RefusedAddress):
            take_screenshot(url, rules=rules)
    server.routes["/robots.txt"] = Reply("User-agent: *\nDisallow: /")
    with WebServer({"/robots.txt": "User-agent: *\nDisallow: /", "/": BOARD}) as closed:
        with pytest.raises(FetchFailed, match="robots"):
            take_screenshot(f"{closed.url}/", rules=AddressRules(allow=(closed.host,)))
        assert closed.paths() == []


def _left_behind() -> list[str]:
    names = [path.name for path in Path(tempfile.gettempdir()).glob("metatree-browser-*")]
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes()
        except OSError:
            continue
        if b"metatree-browser-" in command:
            names.append(command.decode(errors="replace"))
    return names


def test_a_page_that_never_ends_is_left_and_nothing_stays_behind(
    server: WebServer, rules: AddressRules
) -> None:
    server.routes["/busy"] = "<p>busy</p><script>setTimeout(() => { while (true) {} }, 0)</script>"
    with pytest.raises(FetchFailed, match=r"was not shown within 4 s|stopped"):
        take_screenshot(f"{server.url}/busy", rules=rules, seconds=4.0)
    end = time.monotonic() + 30.0  # what watches for crashes ends after the browser, by itself
    while (left := _left_behind()) and time.monotonic() < end:
        time.sleep(0.1)
    assert left == []


def test_a_page_that_asks_for_too_much_is_cut_off(server: WebServer, rules: AddressRules) -> None:
    server.routes["/large"] = Reply(b"x" * 3_000_000, kind="text/plain")
    server.routes["/asks"] = """<p>here</p><script>(async () => { for (let n = 0; n < 10; n++) {
        await (await fetch('/large?' + n)).text(); document.body.append(' read ' + n) } })()</script>"""
    shot = take_screenshot(f"{server.url}/asks", rules=rules, max_bytes=5_000_000)
    assert "here" in shot.text and "read 0" in shot.text and "read 3" not in shot.text


def test_another_browser_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METATREE_CHROMIUM", "no-such-browser")
    with pytest.raises(UserError, match="METATREE_CHROMIUM names 'no-such-browser'"):
        find_chromium()
    monkeypatch.delenv("METATREE_CHROMIUM")
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(UserError, match="apt install chromium"):
        find_chromium()
