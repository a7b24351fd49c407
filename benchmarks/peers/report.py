"""The table and the plot."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.measure import Measured

CONDITIONS = ("0 %", "10 %", "30 %", "10 % + marks", "30 % + marks")
_HEAD = (
    "leaves",
    "system",
    "searches",
    "model calls<br>0 / 10 / 30 %",
    "prompt tokens<br>0 / 10 / 30 %",
    "largest<br>prompt",
    "found<br>0 %",
    "found<br>10 %",
    "found<br>30 %",
    "found, 10 %<br>+ wrong marks",
    "found, 30 %<br>+ wrong marks",
    "CPU<br>a call",
)
_COLOURS = ("#999999", "#d08770", "#b5651d", "#5e81ac", "#2e8b57", "#76b041", "#8064a2", "#333333")


@dataclass(frozen=True)
class Row:
    """One system on one tree."""

    leaves: int
    system: str
    measured: Mapping[str, Measured]
    """By condition; those with wrong marks are missing where the prompts ask for no marks."""


def table(rows: Sequence[Row]) -> str:
    """Return the table in Markdown."""
    lines = ["| " + " | ".join(_HEAD) + " |", "|---:|---|" + "---:|" * (len(_HEAD) - 2)]
    for row in rows:
        plain = [row.measured[name] for name in CONDITIONS[:3]]
        found = [row.measured.get(name) for name in CONDITIONS]
        cells = [
            f"{row.leaves:,}",
            row.system,
            f"{plain[0].searches}",
            " / ".join(f"{m.calls:.1f}" for m in plain),
            " / ".join(f"{_round(m.tokens):,}" for m in plain),
            f"{max(m.largest for m in row.measured.values()):,}",
            *("–" if m is None else f"{100 * m.hit_rate:.1f} %" for m in found),
            f"{plain[1].cpu_ms:.2f} ms",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _round(tokens: float) -> int:
    step = 10 if tokens < 10_000 else 100 if tokens < 100_000 else 1000
    return int(round(tokens / step) * step)


def put_into_page(page: Path, text: str) -> None:
    """Put the table between the marks of a page."""
    old = page.read_text(encoding="utf-8")
    new = re.sub(
        r"(?s)(<!-- table -->\n).*?(\n<!-- end of table -->)", lambda found: found[1] + text + found[2], old
    )
    page.write_text(new, encoding="utf-8")


def plot(rows: Sequence[Row], folder: Path) -> None:
    """Draw hit rate, calls and tokens on the smallest tree, as peers.png and peers.svg."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "peers"  # so that the same figures give the same file
    import matplotlib.pyplot as plt

    least = min(row.leaves for row in rows)
    shown = [row for row in rows if row.leaves == least]
    names = [row.system.replace(", ", ",\n", 1) for row in shown]
    figure, axes = plt.subplots(1, 3, figsize=(13, 0.55 * len(shown) + 1.9), sharey=True)
    height = 0.26
    shades = ((0.45, "no errors"), (0.7, "10 % errors"), (1.0, "30 % errors"))
    panels: tuple[tuple[str, Callable[[Measured], float], str, bool], ...] = (
        ("found, %", lambda m: 100 * m.hit_rate, "{:.0f}", False),
        ("model calls a search", lambda m: m.calls, "{:.1f}", False),
        ("prompt tokens a search (log)", lambda m: m.tokens, "{:,.0f}", True),
    )
    for axis, (title, value, form, log) in zip(axes, panels, strict=True):
        for offset, (shade, label) in enumerate(shades):
            for place, row in enumerate(shown):
                figures = value(row.measured[CONDITIONS[offset]])
                at = place + (offset - 1) * height
                colour = _COLOURS[place % len(_COLOURS)]
                axis.barh(at, figures, height, color=colour, alpha=shade, label=label if place == 0 else None)
                axis.annotate(
                    form.format(figures),
                    (figures, at),
                    (3, 0),
                    textcoords="offset points",
                    va="center",
                    size=7,
                )
        axis.set_title(title, size=10)
        axis.margins(x=0.16)
        if log:
            axis.set_xscale("log")
            axis.set_xlim(100, max(m.tokens for row in shown for m in row.measured.values()) * 8)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    axes[0].set_yticks(range(len(shown)), names, size=9)
    axes[0].invert_yaxis()
    axes[0].set_xlim(0, 118)
    figure.suptitle(
        f"{least:,} leaves, branching 10; bars from light to dark: the model errs in 0, 10, 30 % of its decisions",
        size=10,
    )
    figure.tight_layout()
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "peers.png", dpi=130)
    figure.savefig(folder / "peers.svg", metadata={"Date": None})
    plt.close(figure)
