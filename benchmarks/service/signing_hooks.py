"""Hooks of schemathesis: sign what it sends as the user of METATREE_FUZZ_USER, and often name what is there."""

from __future__ import annotations

import hashlib
import os
import random
import secrets
from typing import Any

import schemathesis

NAME, SECRET = os.environ["METATREE_FUZZ_USER"].split(":")
TOPICS = ("T/1+", "T2")
MOST = 1_000
"""Bounds of lengths above this are left out for what is made at random: texts of 100,000 characters, right and wrong,
take schemathesis most of its time. What is at the bounds is tried one by one, with the whole description."""


@schemathesis.hook  # type: ignore[untyped-decorator]
def before_load_schema(context: Any, raw_schema: Any) -> None:
    """Leave large bounds out of the description, when it is to be tried at random."""
    if os.environ.get("METATREE_FUZZ_RANDOM"):
        leave_out(raw_schema)


def leave_out(part: Any) -> None:
    """Leave large bounds out of a part of a description."""
    if isinstance(part, dict):
        for name in ("maxLength", "maxItems"):
            if isinstance(part.get(name), int) and part[name] > MOST:
                del part[name]
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        leave_out(inner)


@schemathesis.hook  # type: ignore[untyped-decorator]
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Replace the proof by a right one in most calls, and names by those of what there is in half of them."""
    if random.random() < 0.95:
        nonce = secrets.token_urlsafe(18)
        digest = hashlib.sha256(f"{NAME} {nonce} {SECRET}".encode()).hexdigest()
        if not isinstance(case.query, dict) and case.query is not None:
            return
        if case.path.startswith("/v1/"):  # an API key is asked for there, which schemathesis sends by itself
            return
        case.query = {**(case.query or {}), "User": NAME, "Nonce": nonce, "Hash": digest}
    known = {
        "Topic": random.choice(TOPICS),
        "OnBehalfOf": "User_1",
        "User": "User_1",
        "Seq": random.randint(1, 3),
    }
    for name, value in known.items():
        if random.random() < 0.5:
            if isinstance(case.body, dict) and name in case.body:
                case.body[name] = value
            if isinstance(case.query, dict) and name in case.query and name != "User":
                case.query[name] = value
