"""Logging in by a real provider of OpenID Connect, which runs on this machine."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import requests
from metatree_agents.service.accounts.other_logins import OtherLogins

from tests.integration.service.test_other_logins import at_work, seen
from tests.integration.service.test_web import Browser

pytestmark = pytest.mark.real
PEOPLE = {"sub-1": "User_1", "sub-2": "Nobody_yet", "sub-3": "Inference_1"}


@pytest.fixture
def provider() -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own use of Authlib
        import oidc_provider_mock as mock

        users = [mock.User(sub=sub, claims={"preferred_username": name}) for sub, name in PEOPLE.items()]
        with mock.run_server_in_thread(require_nonce=True, user_claims=users) as server:
            yield f"http://localhost:{server.server_port}"


@contextmanager
def service(folder: Path, issuer: str, **given: object) -> Iterator[Browser]:
    logins = OtherLogins(issuer=issuer, client_id="metatree", client_secret="s" * 32, **given)  # type: ignore[arg-type]
    with at_work(folder / "service.db", logins) as url:
        yield Browser(url)


def at_provider(browser: Browser, sub: str) -> str:
    """Go to the provider by the link of the log-in page, say who one is, and return where it sends the browser."""
    link = re.search(r'href="(/login/oidc[^"]*)"', browser.get("/node?id=hall").text)
    assert link is not None
    sent = browser.get(link[1].replace("&amp;", "&"), allow_redirects=False)
    assert sent.status_code in (302, 303, 307), sent.text
    asked = parse_qs(urlsplit(sent.headers["Location"]).query)
    assert asked["code_challenge_method"] == ["S256"] and asked["nonce"] and asked["state"]
    given = requests.post(sent.headers["Location"], data={"sub": sub}, allow_redirects=False, timeout=60)
    return given.headers["Location"]


def test_somebody_logs_in_by_the_provider_and_comes_back_to_where_they_wanted(
    provider: str, tmp_path: Path
) -> None:
    with service(tmp_path, provider) as browser:
        back = at_provider(browser, "sub-1")
        came = browser.session.get(back, timeout=60, allow_redirects=False)
        assert came.status_code == 303 and came.headers["Location"] == "/node?id=hall", came.text
        assert seen(browser) == "User_1"
        again = Browser(browser.url)
        refused = again.session.get(back, timeout=60)
        assert refused.status_code == 400 and not again.session.cookies, "in no other browser, and not twice"
        assert "User_1" in seen(browser)


def test_who_is_unknown_or_an_engine_is_not_let_in(provider: str, tmp_path: Path) -> None:
    with service(tmp_path, provider) as browser:
        for sub, says in (
            ("sub-2", "no user Nobody_yet"),
            ("sub-3", "is an engine"),
            ("sub-9", "does not say"),
        ):
            refused = browser.session.get(at_provider(browser, sub), timeout=60)
            assert refused.status_code == 403 and says in refused.text, refused.text
            assert seen(browser) == ""


def test_who_is_unknown_becomes_a_user_where_that_is_wanted(provider: str, tmp_path: Path) -> None:
    with service(tmp_path, provider, adds=True) as browser:
        browser.session.get(at_provider(browser, "sub-2"), timeout=60)
        assert seen(browser) == "Nobody_yet" and browser.get("/admin").status_code == 403


def test_an_email_counts_only_when_it_is_verified(provider: str, tmp_path: Path) -> None:
    claims: dict[str, str | bool] = {"email": "ann@example.org", "email_verified": False}
    requests.put(f"{provider}/users/sub-4", json=dict(claims), timeout=60).raise_for_status()
    with service(tmp_path, provider, adds=True, claim="email") as browser:
        refused = browser.session.get(at_provider(browser, "sub-4"), timeout=60)
        assert refused.status_code == 403 and "not verified" in refused.text
        requests.put(f"{provider}/users/sub-4", json={**claims, "email_verified": True}, timeout=60)
        browser.session.get(at_provider(browser, "sub-4"), timeout=60)
        assert seen(browser) == "ann@example.org"


def test_what_did_not_come_from_the_provider_lets_nobody_in(provider: str, tmp_path: Path) -> None:
    with service(tmp_path, provider) as browser:
        back = urlsplit(at_provider(browser, "sub-1"))
        given = {name: values[0] for name, values in parse_qs(back.query).items()}
        for changed in ({"state": "x"}, {"code": "x"}, {"error": "access_denied"}, {"state": ""}):
            address = f"{browser.url}{back.path}?{urlencode({**given, **changed})}"
            refused = browser.session.get(address, timeout=60)
            assert refused.status_code == 502 and seen(browser) == "", changed
    with service(tmp_path, "http://127.0.0.1:9") as browser:
        assert browser.get("/login/oidc").status_code == 502, "a provider that is away"
        assert browser.log_in("User_1").status_code == 303, "and a secret still works"
