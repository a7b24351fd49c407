"""Hooks of schemathesis: sign what it sends as the user of METATREE_FUZZ_USER, and often name what is there."""

from __future__ import annotations

import hashlib
import os
import random
import secrets
from typing import Any

import schemathesis

NAME, SECRET, KEY = os.environ["METATREE_FUZZ_USER"].split(":")
TOPICS = ("T/1+", "T2")


@schemathesis.hook  # type: ignore[untyped-decorator]
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Replace the proof by a right one in most calls, and names by those of what there is in half of them."""
    if random.random() < 0.95:
        nonce = secrets.token_urlsafe(18)
        digest = hashlib.sha256(f"{NAME} {nonce} {SECRET}".encode()).hexdigest()
        if not isinstance(case.query, dict) and case.query is not None:
            return
        if case.path.startswith("/v1/"):
            case.headers = {**(case.headers or {}), "Authorization": f"Bearer {KEY}"}
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
