"""Secrets of Kubernetes: each value below `data` and `stringData` is one, whatever its name."""

from __future__ import annotations

import re
from collections.abc import Iterator

_MANIFEST = re.compile(
    r"(?m)^[ \t-]{0,20}[\"']?kind[\"']?[ \t]{0,9}:[ \t]{1,9}[\"']?Secret[\"']?[ \t\r]{0,9}(?:#|$)"
)
_DATA = re.compile(
    r"(?m)^(?P<indent>[ \t-]{0,20})[\"']?(?:data|stringData)[\"']?[ \t]{0,9}:[ \t\r]{0,9}(?:#[^\n]*)?\n"
)
_LINE = re.compile(r"(?P<indent>[ \t]*+)(?P<text>[^\n]*+)(?:\n|\Z)")
_ENTRY = re.compile(r"(?P<name>\"[^\"\n]{0,253}\"|'[^'\n]{0,253}'|[^\s:#\"'][^:\n]{0,253}):(?=[ \t\r]|\Z)")
_VALUE = re.compile(r"[ \t]*+(?:![\w!./:-]{0,40}[ \t]++)?(?P<value>[^ \t\r][^\n]*+)?")
_BLOCK = re.compile(r"[|>][-+\d]{0,3}[ \t\r]*+(?:#[^\n]*+)?\Z")
_JSON = re.compile(r"\"(?:data|stringData)\"\s{0,99}:\s{0,99}\{")
_JSON_KIND = re.compile(r"\"kind\"\s{0,99}:\s{0,99}\"Secret\"")
_PAIR = re.compile(r"\s*+\"(?:[^\"\\]|\\.)*+\"\s*+:\s*+\"(?P<value>(?:[^\"\\]|\\.)*+)\"\s*+,?", re.DOTALL)


def manifest_values(text: str) -> Iterator[tuple[int, int]]:
    """Yield where values of such secrets stand, from start to end, in YAML and in JSON."""
    if "kind" not in text or "Secret" not in text:
        return
    if _JSON_KIND.search(text):
        for data in _JSON.finditer(text):
            at = data.end()
            while (pair := _PAIR.match(text, at)) is not None:
                yield pair.span("value")
                at = pair.end()
    start = 0
    while start < len(text):
        end = text.find("\n---", start + 1)
        end = len(text) if end < 0 else end
        if _MANIFEST.search(text, start, end):
            for data in _DATA.finditer(text, start, end):
                yield from _entries(text, data.end(), end, len(data["indent"]))
        start = end


def _entries(text: str, at: int, end: int, indent: int) -> Iterator[tuple[int, int]]:
    """Yield the values of entries that stand further in than `indent`, and all lines further in than these."""
    inner: int | None = None
    while at < end and (line := _LINE.match(text, at, end)) is not None:
        at, here, said = line.end(), len(line["indent"]), line["text"].rstrip()
        if not said or (said.startswith("#") and here in (inner, indent)):
            continue
        if here <= indent:
            return
        inner = here if inner is None else inner
        start, stop = line.start("text"), line.start("text") + len(said)
        if here <= inner and (entry := _ENTRY.match(text, start, stop)) is not None:
            value = _VALUE.match(text, entry.end(), stop)
            if value is None or not value["value"] or _BLOCK.match(value["value"]):
                continue
            start = value.start("value")
        if text[start] in "\"'":
            start += 1
        if text[stop - 1] in "\"'":
            stop -= 1
        if stop > start:
            yield start, stop
