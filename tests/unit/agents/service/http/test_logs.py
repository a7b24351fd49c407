"""The log: its two forms, and secrets that get into no line of it, whatever way they come."""

from __future__ import annotations

import io
import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metatree_agents.service.http.logs import HIDDEN, Form, logging_to, redacted

SECRET = "Zx9-" + "q7" * 12
_SECRETS = st.text("abcdefXYZ0123456789-_", min_size=8, max_size=60)


@pytest.mark.parametrize(
    "text",
    [
        f"GET /api/login?User=Ann&Nonce={SECRET}&Hash={SECRET}&Topic=x",
        f"Hash={SECRET}",
        f"{{'Hash': '{SECRET}', 'Nonce': '{SECRET}'}}",
        f'{{"hash": "{SECRET}"}}',
        f"Authorization: Bearer {SECRET}",
        f"('authorization', 'Bearer {SECRET}')",
        f"[(b'authorization', b'Bearer {SECRET}'), (b'cookie', b'session={SECRET}')]",
        f"cookie: session={SECRET}; csrf={SECRET}",
        f"Set-Cookie: session={SECRET}; HttpOnly",
        f"key mtk-{SECRET} was used",
        f"postgresql://owner:{SECRET}@db/service",
        f"secret='{SECRET}'",
    ],
)
def test_what_looks_like_a_secret_is_hidden(text: str) -> None:
    assert SECRET not in redacted(text)
    assert HIDDEN in redacted(text)


@given(_SECRETS, st.sampled_from(["?Hash={}", "Nonce={}&x", "bearer {}", '"hash": "{}"', "mtk-{}"]))
def test_no_secret_is_left_whatever_it_is(secret: str, form: str) -> None:
    left = redacted("before " + form.format("S" + secret + "E"))
    assert "S" + secret + "E" not in left


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_key_in_what_went_wrong_is_in_no_line(form: Form) -> None:
    key, stream = "AKIAQ3EGRB7TZ5KMX2WD", io.StringIO()
    with logging_to(form, stream=stream):
        log = logging.getLogger("metatree.service")
        log.warning("the settings say %s twice", key)
        try:
            raise ValueError(f"no TOML: {key}")
        except ValueError:
            log.info("the tree was not read", exc_info=True)
    assert "twice" in stream.getvalue() and "no TOML" in stream.getvalue() and key not in stream.getvalue()


def test_ordinary_words_stay() -> None:
    text = "the secret of Ann was changed; a token bucket; hash functions; 12:30:45 GET /api/login 401"
    assert redacted(text) == text


def written(form: Form, *, debug: bool = False) -> str:
    stream = io.StringIO()
    log = logging.getLogger("metatree.service.requests")
    with logging_to(form, stream=stream, debug=debug):
        log.debug("GET /healthz 200")
        fields = {"request_id": "r1", "status": 200}
        log.info("%s", "GET /api/login 200\nforged line\x1b[2J", extra={"fields": fields})
        try:
            raise ValueError(f"no answer from http://x/?Hash={SECRET}")
        except ValueError:
            log.exception("failed with Bearer %s", SECRET)
    log.warning("nobody's any more")
    return stream.getvalue()


def test_lines_for_people() -> None:
    text = written("text")
    assert SECRET not in text
    lines = text.splitlines()
    assert lines[0].endswith("GET /api/login 200\\nforged line\\x1b[2J [r1]")
    assert "error: failed with [hidden]" in lines[1]
    assert lines[-1] == "ValueError: no answer from http://x/?Hash=[hidden]"
    assert "healthz" not in text and "nobody" not in text


def test_one_json_object_a_line() -> None:
    text = written("json", debug=True)
    assert SECRET not in text
    first, second, third = (json.loads(line) for line in text.splitlines())
    assert (first["level"], first["message"]) == ("debug", "GET /healthz 200")
    assert (second["level"], second["request_id"], second["status"]) == ("info", "r1", 200)
    assert second["logger"] == "metatree.service.requests"
    assert "ValueError: no answer" in third["error"] and third["level"] == "error"
