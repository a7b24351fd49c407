"""Tables of what was measured, and what changed between two runs."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from benchmarks.answers.asking import BASELINE, OURS
from benchmarks.answers.scoring import (
    Figures,
    Row,
    Share,
    figures,
    halves,
    silenced,
    threshold_for,
)

SILENT = "BM25, threshold"
TECHNICAL = ("own-a", "own-b", "own-d")
"""The sets over technical sources; together they are the group `technical`."""
_Columns = tuple[tuple[str, Callable[[Figures], str]], ...]
_CLAIMS: _Columns = (
    ("precision of claims", lambda f: _share(f.precision)),
    ("coverage", lambda f: _share(f.coverage)),
    ("false claims", lambda f: _share(f.false)),
    ("claims of a wrong collection", lambda f: _share(f.elsewhere)),
    ("coverage at .95", lambda f: _number(f.at95)),
    ("at .90", lambda f: _number(f.at90)),
    ("right words shown", lambda f: _share(f.shown)),
)
_REST: _Columns = (
    ("right in `closest`", lambda f: _share(f.closest)),
    ("calibration error", lambda f: _number(f.calibration_error)),
    ("area under risk", lambda f: _number(f.area)),
    ("ended at a limit", lambda f: _share(f.limits)),
    ("tool calls", lambda f: f"{f.tool_calls:.0f}"),
    ("router calls", lambda f: f"{f.router_calls:.0f}"),
    ("characters", lambda f: _number(f.length, ".0f")),
    ("ms of CPU, median", lambda f: f"{1000 * f.seconds:.0f}"),
    ("90 % within", lambda f: f"{1000 * f.seconds90:.0f}"),
)


def groups(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of each set; those over all technical sources first."""
    names = list(dict.fromkeys(row.set for row in rows))
    found = {name: [row for row in rows if row.set == name] for name in names}
    technical = [row for row in rows if row.set in TECHNICAL]
    if len({row.set for row in technical}) > 1:
        found = {"technical": technical, **found}
    return found


def panels(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the groups without those that are within another."""
    found = groups(rows)
    return {name: held for name, held in found.items() if "technical" not in found or name not in TECHNICAL}


def systems(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of each system: ours, BM25 that always claims, and BM25 that is silent below a threshold.

    The threshold of each half of the sources (of the two technical sets, where there are both) is the one that gives
    BM25 our coverage of the other half.
    """
    ours = [row for row in rows if row.system == OURS]
    always = [row for row in rows if row.system == BASELINE]
    of: Callable[[Row], str] = (
        (lambda row: row.set) if len({row.set for row in rows}) > 1 else (lambda row: row.source)
    )
    silent: list[Row] = []
    first, second = halves(rows, of)
    for fitted, reported in ((first, second), (second, first)):
        aim = figures([row for row in ours if of(row) in fitted]).coverage
        if aim.total:
            threshold = threshold_for(aim.value, [row for row in always if of(row) in fitted])
            silent += silenced([row for row in always if of(row) in reported], threshold, SILENT)
    return {OURS: ours, BASELINE: always, SILENT: silent}


def measured(rows: Sequence[Row]) -> dict[str, dict[str, Figures]]:
    """Return the figures by group and system."""
    return {
        group: {
            system: figures(some, calibrated=system == OURS) for system, some in systems(held).items() if some
        }
        for group, held in groups(rows).items()
    }


def tables(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of the tables in Markdown: all figures, then ours beside BM25 by kind and by source."""
    found = measured(rows)
    for columns in (_CLAIMS, _REST):
        yield from _table(
            ("set", "questions", "system", *(title for title, _ in columns)),
            [
                (group, str(each.questions), system, *(cell(each) for _, cell in columns))
                for group, by_system in found.items()
                for system, each in by_system.items()
            ],
        )
        yield ""
    for group, held in panels(rows).items():
        own = [row for row in held if not row.wrong_collection]
        for title, of in (("kind", _kind), ("source", _source)):
            if len({of(row) for row in own}) <= _MOST:
                yield f"{group}, by {title}"
                yield ""
                yield from _parts(own, title, of)
                yield ""


_MOST = 40
"""More sources than this are not listed one by one."""


def _kind(row: Row) -> str:
    return row.kind


def _source(row: Row) -> str:
    return row.source


def _parts(own: Sequence[Row], title: str, of: Callable[[Row], str]) -> Iterator[str]:
    lines = []
    for part in sorted({of(row) for row in own}):
        ours = figures([row for row in own if of(row) == part and row.system == OURS])
        line = figures([row for row in own if of(row) == part and row.system == BASELINE])
        lines.append(
            (
                part,
                str(ours.questions),
                *(_counts(share) for share in (ours.precision, ours.coverage, ours.false, ours.shown)),
                *(_counts(share) for share in (line.precision, line.coverage, line.false, line.shown)),
            )
        )
    heads = ("precision", "coverage", "false claims", "right words shown")
    yield from _table((title, "questions", *heads, *(f"BM25: {head}" for head in heads)), lines)


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for line in lines:
        yield f"| {' | '.join(line)} |"


def _share(share: Share) -> str:
    if not share.total:
        return "–"
    low, high = share.interval
    return f"{_number(share.value)} [{_number(low)} {_number(high)}]"


def _counts(share: Share) -> str:
    return f"{share.count}/{share.total}" if share.total else "–"


def _number(value: float | None, form: str = ".2f") -> str:
    if value is None or math.isnan(value):
        return "–"
    text = f"{value:{form}}"
    return text.removeprefix("0") if form == ".2f" else text


# files


def as_json(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the figures by group and system, each share as its count, total, value and interval."""
    return {
        group: {system: _plain(each) for system, each in by_system.items()}
        for group, by_system in measured(rows).items()
    }


def _plain(each: Figures) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in (field.name for field in fields(each)):
        value = getattr(each, name)
        if isinstance(value, Share):
            low, high = value.interval
            found[name] = {"count": value.count, "total": value.total} | {
                key: _finite(number) for key, number in (("value", value.value), ("low", low), ("high", high))
            }
        else:
            found[name] = _finite(value)
    return found


def _finite(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else round(value, 4)


def append_rows(file: Path, rows: Iterable[Row]) -> None:
    """Add a line of JSON for each question and system."""
    with file.open("a", encoding="utf-8") as out:
        for row in rows:
            out.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")


def read_rows(file: Path) -> list[Row]:
    """Read what `append_rows` wrote."""
    return [Row(**json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines() if line]


# two runs


def changes(before: Sequence[Row], now: Sequence[Row]) -> Iterator[str]:
    """Yield what became of each of our questions that has another verdict than in an earlier run, and the counts."""
    known = {_key(row): row for row in before}
    pairs = [(known[_key(row)], row) for row in now if row.system == OURS and _key(row) in known]
    moved = [(old, new) for old, new in pairs if old.verdict != new.verdict]
    for (was, became), count in Counter((old.verdict, new.verdict) for old, new in moved).most_common():
        yield f"{count:5} {was} → {became}"
    yield f"{len(moved):5} of {len(pairs)} changed"
    for old, new in sorted(moved, key=lambda pair: (pair[0].verdict, pair[1].verdict, _key(pair[1]))):
        where = f" (of {new.asked})" if new.wrong_collection else ""
        yield f"{old.verdict} → {new.verdict}  {new.id} {new.kind}{where}: {new.question}"


def _key(row: Row) -> tuple[str, str, str, str]:
    return row.set, row.id, row.asked, row.system
