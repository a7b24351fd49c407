"""A frontend written from the page of the wire format alone; nothing of metatree is imported.

Run as `python frontend.py URL USER TOKEN`. Prints one line of JSON for each thing it has seen, and stops at the first
that is not as the page says.
"""

import hashlib
import json
import re
import secrets
import sys
from typing import Any

import requests

BASE, USER, TOKEN = [*sys.argv[1:4], "", "", ""][:3]
OWNER = "Calico_Seders"
FIRST, SECOND = "DGQIn+5troxI", "qSBb7/zYhIN0"
LIFE, COLOR, MALI = (
    "What is the meaning of life?",
    "What is your favorite color?",
    "What is the capital of Mali?",
)
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def proof(token: str = TOKEN) -> dict[str, str]:
    nonce = secrets.token_hex(8)
    return {
        "User": USER,
        "Nonce": nonce,
        "Hash": hashlib.sha1(f"{USER} {nonce} {token}".encode()).hexdigest(),
    }


def call(method: str, route: str, body: Any = None, status: int = 200, **given: Any) -> Any:
    found = requests.request(
        method, f"{BASE}/api/{route}", params={**proof(), **given}, json=body, timeout=120
    )
    assert found.status_code == status, (route, found.status_code, found.text)
    return found.json()


def say(what: str, **more: Any) -> None:
    print(json.dumps({"what": what, **more}), flush=True)


def add(topic: str, query: str, **more: Any) -> int:
    body = {"Topic": topic, "User": OWNER, "Query": query, "Modifiers": {"Region": "EU"}, "Model": "default"}
    added = call("POST", "add-query", {**body, **more})
    assert set(added) == {"Topic", "Seq", "Timestamp"} and added["Topic"] == topic
    assert STAMP.fullmatch(added["Timestamp"]), added
    return int(added["Seq"])


def documented(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in ("Query", "Topic", "Seq", "Answer", "Think")}


def answer(topic: str, seq: int) -> dict[str, Any]:
    while True:
        found = documented(call("GET", "check-query", Topic=topic, Seq=seq))
        if found["Answer"] is not None:
            assert found["Think"] == ["That's a great question."]
            return found
        assert found["Think"] is None


def log_in() -> None:
    url = f"{BASE}/api/login"
    right = proof()
    assert requests.get(url, params=right, timeout=120).status_code == 200
    assert requests.get(url, params=right, timeout=120).status_code == 401, "a replay"
    assert requests.get(url, params=proof("wrong"), timeout=120).status_code == 401
    say("logged in")


def ask() -> None:
    call("GET", "user-topics", status=404, OnBehalfOf=OWNER)
    call("GET", "get-topic-thread", status=404, Topic=FIRST)
    assert [add(FIRST, LIFE), add(FIRST, COLOR), add(SECOND, MALI, Model="unknown", Modifiers={})] == [
        1,
        2,
        1,
    ]
    waiting = documented(call("GET", "check-query", Topic=SECOND, Seq=1))
    assert waiting == {"Query": MALI, "Topic": SECOND, "Seq": 1, "Answer": None, "Think": None}
    say("waits")


def read() -> None:
    for topic, seq, query in ((SECOND, 1, MALI), (FIRST, 2, COLOR), (FIRST, 1, LIFE)):
        found = answer(topic, seq)
        assert (found["Query"], found["Topic"], found["Seq"]) == (query, topic, seq)
        say("answer", query=query, answer=found["Answer"])
    thread = [documented(one) for one in call("GET", "get-topic-thread", Topic=FIRST)]
    assert [(one["Seq"], one["Query"]) for one in thread] == [(1, LIFE), (2, COLOR)]
    assert all(isinstance(one["Answer"], list) for one in thread)
    pairs = "&".join(f"{name}={value}" for name, value in proof().items())
    naive = requests.get(f"{BASE}/api/get-topic-thread?{pairs}&Topic={FIRST}", timeout=120)
    assert [documented(one) for one in naive.json()] == thread, "as a client that encodes nothing sends it"


def look_up() -> None:
    fragment = "Employees can accrue comp time for overtime hours worked ..."
    mark = hashlib.sha1(fragment.encode()).hexdigest()[:12]
    added = call("POST", "add-lookup", {"Topic": FIRST, "Seq": 2, "Fragment": fragment})
    assert added["Fingerprint"] == mark and STAMP.fullmatch(added["Timestamp"])
    one = {"Topic": FIRST, "Seq": 2, "Fragment": fragment, "Count": 1, "Threshold": 1.0}
    assert call("POST", "add-lookup", one)["Fingerprint"] == mark
    while True:
        found = call("GET", "get-lookups", {"Topic": FIRST})
        assert found["Topic"] == FIRST
        assert [one["Query"] for one in found["Lookups"]] == [LIFE, COLOR]
        assert found["Lookups"][0]["Fragments"] == []
        lists = [matches for each in found["Lookups"][1]["Fragments"] for matches in each.values()]
        assert all(list(each) == [fragment] for each in found["Lookups"][1]["Fragments"])
        if len(lists) == 2 and all(lists):
            break
        call("GET", "check-query", Topic=FIRST, Seq=1)
    assert [len(matches) for matches in lists] == [2, 1]
    distances = []
    for match in lists[0]:
        head, text = match.split("\n.....\n")
        known = dict(line.split(": ", 1) for line in head.split("\n"))
        distances.append(float(known["Distance"]))
        assert text
    assert distances == sorted(distances) and max(distances) <= 1.0
    say("matches", distances=distances)


def recommend() -> None:
    body = {
        "Topic": FIRST,
        "OnBehalfOf": OWNER,
        "Query": LIFE,
        "Fragment": "It don't mean a thing",
        "Comment": "Duke",
    }
    kinds = [
        "Suggest Improvement",
        "Promote Answer",
        "Make Correction",
        "Add Missing Info",
        "Clarify Phrasing",
    ]
    for kind in [*kinds, "Flag as Off Topic"]:
        assert STAMP.fullmatch(call("POST", "recommend", {**body, "Type": kind})["Timestamp"])
    call("POST", "recommend", {**body, "Type": "Praise"}, status=422)
    say("recommended")


def finish() -> None:
    assert add(SECOND, "Take your time.") == 2
    assert answer(SECOND, 2)["Answer"] == ["Done at last."]
    assert call("GET", "user-topics", OnBehalfOf=OWNER) == {SECOND: MALI, FIRST: LIFE}
    call("DELETE", "topic", status=403, OnBehalfOf="Somebody_Else", Topic=FIRST)
    call("DELETE", "topic", status=403, OnBehalfOf=OWNER, Topic="none")
    call("DELETE", "topic", OnBehalfOf=OWNER, Topic=FIRST)
    call("GET", "get-topic-thread", status=404, Topic=FIRST)
    assert call("GET", "user-topics", OnBehalfOf=OWNER) == {SECOND: MALI}
    assert answer(SECOND, add(SECOND, "Thank you, that is all."))["Answer"] == ["Good-bye."]
    say("end", imported=sorted(name for name in sys.modules if name.startswith("metatree")))


if __name__ == "__main__":
    for step in (log_in, ask, read, look_up, recommend, finish):
        step()
