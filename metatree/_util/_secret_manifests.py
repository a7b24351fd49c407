"""Secrets of Kubernetes: each value below `data` and `stringData` is one, whatever its name."""

from __future__ import annotations

import re
from collections.abc import Iterator

_MANIFEST = re.compile(r"(?m)^[ \t-]{0,20}kind:[ \t]{1,9}[\"']?Secret[\"']?[ \t]{0,9}\r?$")
_DATA = re.compile(r"(?m)^(?P<indent>[ \t-]{0,20})(?:data|stringData):[ \t]{0,9}\r?\n")
_ENTRY = re.compile(
    r"(?P<indent>[ \t]{1,40})(?:#[^\n]*|[\w.\"'/-]{1,253}:[ \t]{0,9}[\"']?"
    r"(?:(?P<block>[|>][-+\d]{0,3})[ \t]{0,9}\r?|(?P<value>[^\s\"'#|>{][^\n\"']*)?[^\n]*))(?:\n|\Z)"
)
_LINE = re.compile(r"(?P<indent>[ \t]*+)(?P<text>[^\n]*+)(?:\n|\Z)")
_JSON = re.compile(r"\"(?:data|stringData)\"\s{0,99}:\s{0,99}\{(?P<pairs>[^{}]*+)\}")
_JSON_KIND = re.compile(r"\"kind\"\s{0,99}:\s{0,99}\"Secret\"")
_PAIR = re.compile(r":\s{0,99}\"(?P<value>[^\"]{1,200000})\"")


def manifest_values(text: str) -> Iterator[tuple[int, int]]:
    """Yield where values of such secrets stand, from start to end, in YAML and in JSON."""
    if "kind" not in text or "Secret" not in text:
        return
    if _JSON_KIND.search(text):
        for pairs in _JSON.finditer(text):
            yield from (pair.span("value") for pair in _PAIR.finditer(text, *pairs.span("pairs")))
    start = 0
    while start < len(text):
        end = text.find("\n---", start + 1)
        end = len(text) if end < 0 else end
        at, is_secret = start, _MANIFEST.search(text, start, end) is not None
        while is_secret and (data := _DATA.search(text, at, end)) is not None:
            at = data.end()
            while (entry := _ENTRY.match(text, at, end)) is not None and entry.end() > at:
                if len(entry["indent"]) <= len(data["indent"]):
                    break
                at = entry.end()
                if entry["value"]:
                    yield entry.start("value"), entry.start("value") + len(entry["value"].rstrip())
                while entry["block"] and (line := _LINE.match(text, at, end)) is not None and line.end() > at:
                    if line["text"].strip() and len(line["indent"]) <= len(entry["indent"]):
                        break
                    yield line.span("text")
                    at = line.end()
        start = end
