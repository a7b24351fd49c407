"""Draw right-tool-in-five and tokens over the number of tools.

usage: python -m benchmarks.gateway.plot ROWS.jsonl FILE.svg   (needs matplotlib)
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SETS = {"StableToolBench": "C0", "LiveMCPBench": "C1", "TMDB": "C2", "MetaTool two": "C3"}


def plot(rows: Sequence[dict[str, Any]], file: Path) -> None:
    """Draw rows of the benchmark, those of mixed tools, in a file."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "gateway"  # so that the same figures give the same file
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4))
    mixed = [row for row in rows if row["size"] != "own" and row["metric"] == "R@5"]
    for name, colour in SETS.items():
        own = sorted((row for row in mixed if row["set"] == name), key=lambda row: int(row["tools"]))
        sizes = [row["tools"] for row in own]
        left.plot(sizes, [row["gateway"][0] for row in own], "o-", color=colour, label=name)
        left.plot(sizes, [row["bm25"][0] for row in own], "x--", color=colour, alpha=0.6)
    left.set(xscale="log", ylim=(0, 1.15), xlabel="tools", ylabel="R@5", title="— gateway   - - BM25")
    left.legend(ncols=4, fontsize="x-small", loc="upper center")
    tools = sorted({row["tools"] for row in mixed})
    for key, label, style in (("tokens_of_all", "all tools listed", "x--"), ("tokens", "gateway", "o-")):
        means = [[row[key] for row in mixed if row["tools"] == size] for size in tools]
        right.plot(tools, [sum(each) / len(each) for each in means], style, label=label)
    right.set(xscale="log", yscale="log", xlabel="tools", ylabel="tokens in the agent's context")
    right.legend()
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})


if __name__ == "__main__":
    lines = Path(sys.argv[1]).read_text().splitlines()
    plot([json.loads(line) for line in lines], Path(sys.argv[2]))
