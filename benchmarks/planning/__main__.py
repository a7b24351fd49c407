"""Solve every problem in a folder with metatree, Aries and GTPyhop, and print one table.

usage: python -m benchmarks.planning --data FOLDER [--seconds 20] [--peers .venv-planners] [--only TEXT] [--json FILE]

FOLDER holds folders of HDDL: each problem beside `domain.hddl`, or `NAME.hddl` beside `NAME-domain.hddl`. The others
run in a venv of their own (`make bench-planning`), one process for each problem; without it their columns are empty.

Times are wall-clock seconds, reading the files included, imports and start of the process not; `CPU` is what metatree
used of its core, which other work on the machine changes little. `verified`: the plan
was accepted by metatree's verifier, which works on the text of the plan; `val`: by aries-val, where that can read the
problem. GTPyhop has methods that its authors wrote by hand for two of the domains, and no HDDL. Aries has
SECONDS a problem; a process that takes much longer is ended.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from metatree_agents.planner.hddl.parse import read_domain, read_problem
from metatree_agents.planner.hddl.plan import plan_lines
from metatree_agents.planner.hddl.solve import solve
from metatree_agents.planner.hddl.verify import InvalidPlan, verify

HERE = Path(__file__).parent


def problems(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield domain and problem of each problem in a folder."""
    for file in sorted(folder.rglob("*.hddl")):
        if file.stem.endswith("domain"):
            continue
        for domain in (file.with_name(f"{file.stem}-domain.hddl"), file.with_name("domain.hddl")):
            if domain.exists():
                yield domain, file
                break


def ours(domain: Path, problem: Path, seconds: float) -> tuple[dict[str, Any], str]:
    """Solve with metatree; return what came of it, and the text of the plan."""
    began, cpu = time.perf_counter(), time.process_time()
    read = read_problem(problem, read_domain(domain))
    found = solve(read, seconds=seconds)
    took = time.perf_counter() - began
    row: dict[str, Any] = {"ended": found.ended, "seconds": took, "cpu": time.process_time() - cpu}
    if found.plan is None:
        return row, ""
    text = "\n".join(plan_lines(found.plan, read))
    try:
        verify(text, read)
        row["verified"] = True
    except InvalidPlan as exc:
        row |= {"verified": False, "why": str(exc)}
    return {**row, "steps": len(found.plan)}, text


def peer(python: Path, *arguments: object, text: str = "", seconds: float = 60.0) -> dict[str, Any]:
    """Run another planner in its venv."""
    command = [str(python), str(HERE / "peers.py"), *map(str, arguments)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(text, timeout=seconds + 20)
    except subprocess.TimeoutExpired:
        return {"ended": "timeout", "seconds": seconds}
    finally:
        with suppress(
            ProcessLookupError
        ):  # the server that Aries runs in outlives a process that was given up
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    lines = [line for line in out.splitlines() if line.startswith("{")]
    if not lines:
        return {"ended": "failed", "why": err.strip()[-200:]}
    return dict(json.loads(lines[-1]))


def shown(row: dict[str, Any] | None) -> str:
    """Return steps and seconds, or how it ended."""
    if not row:
        return "-"
    if row["ended"] != "solved":
        return str(row["ended"])
    return f"{row.get('steps', '?')} in {row['seconds']:.3f} s"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--peers", type=Path, default=Path(".venv-planners"))
    parser.add_argument("--only", default="", help="problems whose path has this text")
    parser.add_argument("--json", type=Path, help="write the rows there, too")
    arguments = parser.parse_args()
    python = arguments.peers / "bin" / "python"
    rows = []
    print("| problem | metatree | CPU | verified | val | Aries | GTPyhop |")
    print("|---|---|---|---|---|---|---|")
    for domain, problem in problems(arguments.data):
        name = str(problem.relative_to(arguments.data).with_suffix(""))
        if arguments.only not in name:
            continue
        row, text = ours(domain, problem, arguments.seconds)
        found: dict[str, Any] = {"problem": name, "metatree": row}
        if python.exists():
            found["aries"] = peer(
                python, "aries", arguments.seconds, domain, problem, seconds=arguments.seconds
            )
            found["gtpyhop"] = peer(
                python, "gtpyhop", problem.parent.name, problem.stem, seconds=arguments.seconds
            )
            if text:
                row["val"] = peer(python, "val", domain, problem, text=text).get("valid", "-")
        rows.append(found)
        verified = "yes" if row.get("verified") else "no"
        others = f"{shown(found.get('aries'))} | {shown(found.get('gtpyhop'))}"
        said = str(row.get("val", "-")).lower()
        print(f"| {name} | {shown(row)} | {row['cpu']:.3f} s | {verified} | {said} | {others} |", flush=True)
    solved = [one for one in rows if one["metatree"]["ended"] == "solved"]
    both = [one for one in solved if one.get("aries", {}).get("ended") == "solved"]
    faster = [one for one in both if one["metatree"]["seconds"] < one["aries"]["seconds"]]
    theirs = sum(one.get("aries", {}).get("ended") == "solved" for one in rows)
    print()
    print(
        f"{len(rows)} problems: metatree solves {len(solved)}, Aries {theirs}; of the {len(both)} that both solve,"
        f" metatree is faster on {len(faster)}."
    )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    if any(one["metatree"].get("verified") is False for one in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
