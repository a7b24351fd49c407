"""Logging in by a header of a proxy: believed from the named addresses alone, whatever a request says of itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from metatree_agents.cli._main import run
from metatree_agents.listening import listen
from metatree_agents.service._app import create_app
from metatree_agents.service.accounts.other_logins import PEER, OtherLogins
from metatree_agents.service.accounts.users import Users
from metatree_agents.service.serving import server_of
from metatree_agents.service.settings import ServiceSettings

from .conftest import SECRETS, Client, opened
from .test_web import Browser

pytestmark = pytest.mark.integration
BY_HEADER = OtherLogins("Remote-User", ("127.0.0.1",))


@contextmanager
def at_work(place: Path, logins: OtherLogins) -> Iterator[str]:
    """Run a server as `metatree serve` does, and give its address."""

    async def add_users() -> None:
        database = opened(place)
        await database.start()
        for name, (role, secret) in SECRETS.items():
            await Users(database).add(name, role, secret=secret)
        await database.close()

    asyncio.run(add_users())
    listening = listen("127.0.0.1", 0)
    server = server_of(create_app(opened(place), ServiceSettings(other_logins=logins)))
    thread = threading.Thread(target=lambda: server.run(sockets=[listening]))
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            threading.Event().wait(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)


Start = Callable[[OtherLogins], str]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as stack:
        yield lambda logins: stack.enter_context(at_work(tmp_path / "service.db", logins))


def seen(browser: Browser, path: str = "/topics", **headers: str) -> str:
    """Return who is logged in on a page; empty for nobody."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    page = browser.get(path, headers=given).text
    return page.partition('class="who"><strong>')[2].partition("<")[0]


def test_a_named_proxy_says_who_somebody_is(start: Start) -> None:
    browser = Browser(start(BY_HEADER))
    assert seen(browser) == "", "without the header nobody is logged in"
    assert seen(browser, Remote_User="User_1") == "User_1"
    assert seen(browser, Remote_User="User_2") == "User_2", "another person at the same browser"
    page = browser.get("/topics", headers={"Remote-User": "Nobody"})
    assert page.status_code == 403 and "There is no user Nobody here" in page.text
    assert "is an engine" in browser.get("/topics", headers={"Remote-User": "Inference_1"}).text


@pytest.mark.parametrize(
    ("proxies", "headers"),
    [
        (("10.0.0.0/8",), {}),
        (("10.0.0.0/8",), {"X-Forwarded-For": "10.0.0.5"}),
        (
            ("10.0.0.0/8",),
            {"X-Forwarded-For": "10.0.0.5", "X-Real-IP": "10.0.0.5", "Forwarded": "for=10.0.0.5"},
        ),
        ((), {}),
    ],
)
def test_nobody_else_may_say_it(start: Start, proxies: tuple[str, ...], headers: dict[str, str]) -> None:
    browser = Browser(start(OtherLogins("Remote-User", proxies)))
    page = browser.get("/topics", headers={"Remote-User": "Admin_1", **headers})
    assert page.url.startswith(f"{browser.url}/login") and not browser.session.cookies


def test_without_the_option_the_header_is_nothing(start: Start) -> None:
    browser = Browser(start(OtherLogins()))
    assert seen(browser, Remote_User="Admin_1") == ""


def test_a_header_that_comes_twice_says_nothing() -> None:
    scope = {"type": "http", PEER: "::ffff:127.0.0.1", "headers": [(b"remote-user", b"ann")]}
    assert BY_HEADER.named_by_proxy(scope) == "ann"
    assert BY_HEADER.named_by_proxy({**scope, "headers": [(b"remote-user", b"ann")] * 2}) is None
    assert BY_HEADER.named_by_proxy({**scope, "headers": [(b"remote-user", b" ")]}) is None
    assert BY_HEADER.named_by_proxy({**scope, PEER: "unix"}) is None


def test_who_is_unknown_becomes_a_user_where_that_is_wanted(start: Start) -> None:
    browser = Browser(start(OtherLogins("Remote-User", ("127.0.0.1",), adds=True)))
    assert seen(browser, Remote_User="bea@example.org") == "bea@example.org"
    assert browser.get("/admin", headers={"Remote-User": "bea@example.org"}).status_code == 403
    wrong = Browser(browser.url).get("/topics", headers={"Remote-User": "<b>bea</b>"})
    assert wrong.status_code == 403 and "<b>bea" not in wrong.text and "is no name" in wrong.text


def test_a_name_that_was_used_is_given_to_nobody_by_a_log_in(start: Start) -> None:
    url = start(OtherLogins("Remote-User", ("127.0.0.1",), adds=True))
    assert Client(url, "Frontend_1", SECRETS["Frontend_1"][1]).ask("q", user="Bob").ok
    page = Browser(url).get("/topics", headers={"Remote-User": "Bob"})
    assert page.status_code == 403 and "was here before" in page.text


def test_forms_need_their_token_here_too(start: Start) -> None:
    browser = Browser(start(BY_HEADER))
    seen(browser, Remote_User="User_1")
    assert browser.post("/ask", {"question": "x"}, Remote_User="User_1").status_code == 403


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--login-header", "Remote-User"], "belong together"),
        (["--login-proxy", "10.0.0.5"], "belong together"),
        (["--login-header", "Remote User", "--login-proxy", "10.0.0.5"], "no name of a header"),
        (["--login-header", "Remote-User", "--login-proxy", "everybody"], "no address of a proxy"),
        (["--oidc-issuer", "https://id.example.org"], "belong together"),
        (["--oidc-issuer", "http://id.example.org", "--oidc-client", "m"], "not encrypted"),
        (["--oidc-issuer", "https://id.example.org", "--oidc-client", "m"], "METATREE_OIDC_SECRET"),
        (["--login-adds"], "needs --login-header"),
    ],
)
def test_wrong_options_are_said(
    given: list[str], says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("METATREE_OIDC_SECRET", raising=False)
    assert run(["serve", "--port", "0", *given]) == 2
    assert says in capsys.readouterr().err
