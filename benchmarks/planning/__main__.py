"""Solve every problem in a folder with metatree, Aries and GTPyhop, and print one table.

usage: python -m benchmarks.planning --data FOLDER [--seconds 20] [--memory 1000] [--peers .venv-planners] [--only TEXT]
                                     [--json FILE]

FOLDER holds folders of HDDL: each problem beside `domain.hddl`, or `NAME.hddl` beside `NAME-domain.hddl`. The others
run in a venv of their own (`make bench-planning`), one process for each problem; without it their columns are empty.

metatree is the whole command, `metatree plan`, from the start of Python to the end: reading, searching, and the
verifier, which works on the text of the plan; a plan that it does not accept is none. It has SECONDS and as many
megabytes as `--memory` says. Times are wall-clock seconds; `CPU` is what other work on the machine changes less. The
others are timed without the start of their processes. `val`: what aries-val says of the plan, where it can read the
problem. GTPyhop has methods that its authors wrote by hand for two of the domains, and no HDDL. Aries has SECONDS a
problem; a process that takes much longer is ended. At the end there is a line for each folder.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

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


def ours(domain: Path, problem: Path, seconds: float, memory: int) -> tuple[dict[str, Any], str]:
    """Run `metatree plan`; return what came of it, how long it took from its start to its end, and the plan's text."""
    limits = ("--seconds", str(seconds), "--memory", str(memory), "--json")
    command = [str(Path(sys.executable).with_name("metatree")), "plan", str(domain), str(problem), *limits]
    began = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        took = time.perf_counter() - began
        out.seek(0)
        err.seek(0)
        said, wrong = out.read(), err.read()
    row: dict[str, Any] = {
        "seconds": took,
        "cpu": used.ru_utime + used.ru_stime,
        "megabytes": used.ru_maxrss / 1024,
    }
    if not said:
        return {**row, "ended": "failed", "why": wrong.strip()[-200:]}, ""
    found = json.loads(said)
    row |= {"ended": found["ended"], "why": found["why"]}
    return (row, "") if found["ended"] != "solved" else ({**row, "steps": len(found["steps"])}, found["text"])


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


def by_folder(rows: list[dict[str, Any]]) -> str:
    """Return a table with a line for each folder of problems."""
    folders: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        folders.setdefault(str(Path(row["problem"]).parent), []).append(row["metatree"])
    lines = ["| domain | solved | longest of these | most memory | steps |", "|---|---:|---:|---:|---:|"]
    for name, listed in folders.items():
        solved = [one for one in listed if one["ended"] == "solved"]
        longest = max((one["seconds"] for one in solved), default=0.0)
        most = max(one["megabytes"] for one in listed)
        steps = sum(one["steps"] for one in solved)
        lines.append(
            f"| {name} | {len(solved)} of {len(listed)} | {longest:.1f} s | {most:.0f} MB | {steps:,} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--memory", type=int, default=1000, metavar="MB")
    parser.add_argument("--peers", type=Path, default=Path(".venv-planners"))
    parser.add_argument("--only", default="", help="problems whose path has this text")
    parser.add_argument("--json", type=Path, help="write the rows there, too")
    arguments = parser.parse_args()
    python = arguments.peers / "bin" / "python"
    rows = []
    print("| problem | metatree | CPU | memory | val | Aries | GTPyhop |")
    print("|---|---:|---:|---:|---|---:|---:|")
    for domain, problem in problems(arguments.data):
        name = str(problem.relative_to(arguments.data).with_suffix(""))
        if arguments.only not in name:
            continue
        row, text = ours(domain, problem, arguments.seconds, arguments.memory)
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
        others = f"{shown(found.get('aries'))} | {shown(found.get('gtpyhop'))}"
        said = str(row.get("val", "-")).lower()
        used = f"{row['cpu']:.2f} s | {row['megabytes']:.0f} MB"
        print(f"| {name} | {shown(row)} | {used} | {said} | {others} |", flush=True)
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
    print()
    print(by_folder(rows))
    if any(one["metatree"]["ended"] == "failed" for one in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
