"""An inference engine written from the page of the wire format alone; nothing of metatree is imported.

Run as `python engine.py URL USER TOKEN`. Prints one line of JSON for each thing it does, and ends when it is thanked.
"""

import hashlib
import json
import secrets
import sys
from typing import Any

import requests

BASE, USER, TOKEN = [*sys.argv[1:4], "", "", ""][:3]
ANSWERS = {
    "What is the meaning of life?": ["It don't mean a thing", "if you ain't got that swing."],
    "What is your favorite color?": ["Blue.", "No, yellow!"],
    "What is the capital of Mali?": ["Bamako."],
    "Take your time.": ["Done at last."],
    "Thank you, that is all.": ["Good-bye."],
}
RAG = {
    "Overtime work shall be distributed equitably among employees able and\nqualified to perform it.": 0.75,
    "Employees can accrue comp time for overtime hours worked, up to 240 hours.": 0.25,
    "Part-time employees may constitute up to fifteen percent of the work force.": 1.25,
}


def proof() -> dict[str, str]:
    """A new nonce, and a new hash, at every call."""
    nonce = secrets.token_hex(8)
    digest = hashlib.sha1(f"{USER} {nonce} {TOKEN}".encode()).hexdigest()
    return {"User": USER, "Nonce": nonce, "Hash": digest}


def call(method: str, route: str, body: Any = None) -> requests.Response:
    return requests.request(method, f"{BASE}/api/{route}", params=proof(), json=body, timeout=120)


def say(what: str, **more: Any) -> None:
    print(json.dumps({"what": what, **more}), flush=True)


def give(topic: str, seq: int, query: str, answer: list[str]) -> int:
    body = {
        "Query": query,
        "Topic": topic,
        "Seq": seq,
        "Think": ["That's a great question."],
        "Answer": answer,
    }
    return call("POST", "give-new-answer", body).status_code


def look_up() -> None:
    """Serve the lookups that are wanted, one at a time."""
    while (wanted := call("GET", "get-new-lookup")).status_code == 200:
        wish = wanted.json()
        near = sorted((distance, text) for text, distance in RAG.items() if distance <= wish["Threshold"])
        matches = [
            f"Distance: {distance}\nDocument Type: Contract\n.....\n{text}" for distance, text in near
        ][: wish["Count"]]
        body = {"Fingerprint": wish["Fingerprint"], "Matches": matches}
        say("lookup", wish=wish, status=call("POST", "give-new-matches", body).status_code)
    assert wanted.status_code == 404, wanted.text


def main() -> None:
    cache: dict[str, list[str]] = {}  # topic -> queries answered
    dawdled: set[str] = set()
    thanked = False
    while not thanked:
        look_up()
        found = call("GET", "get-new-queries")
        assert found.status_code == 200, found.text
        batch = found.json()
        topic, queries = batch["Topic"], batch["Queries"]
        if topic is None:
            assert queries is None
            continue
        say("claim", topic=topic, queries=queries)
        for item in queries:
            ((seq, query),) = item.items()
            seq = int(seq)
            if query == "Take your time." and topic not in dawdled:
                dawdled.add(topic)  # so long that the query is open again
                continue
            statuses = [give(topic, seq + (query == "What is your favorite color?"), query, ANSWERS[query])]
            statuses.append(give(topic, seq, query, ANSWERS[query]))
            statuses.append(give(topic, seq, query, ["Something else."]))
            say("answer", topic=topic, seq=seq, query=query, statuses=statuses, earlier=cache.get(topic, []))
            cache.setdefault(topic, []).append(query)
            thanked = thanked or query.startswith("Thank you")
    say("end", imported=sorted(name for name in sys.modules if name.startswith("metatree")))


if __name__ == "__main__":
    main()
