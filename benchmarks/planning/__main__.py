"""Solve every problem in a folder with metatree, Aries and GTPyhop, and print one table.

usage: python -m benchmarks.planning --data FOLDER [--seconds 20] [--memory 1000] [--peers .venv-planners] [--only TEXT]
                                     [--every N] [--first] [--improve-for S] [--best FILE …] [--json FILE]

FOLDER holds folders of HDDL: each problem beside `domain.hddl`, or `NAME.hddl` beside `NAME-domain.hddl`. The others
run in a venv of their own (`make bench-planning`), one process for each problem; without it their columns are empty.

Each is a whole command, from the start of Python to the end, and has SECONDS and as many megabytes as `--memory` says;
the others have SECONDS of CPU, and three times as many by the clock. metatree reads, searches, looks for cheaper plans
(4 s by default, none with `--first`), and runs the verifier, which works on the text of the plan; a plan that it does
not accept is none. Times are wall-clock seconds; `CPU` is what other work on the machine changes less. `val`: what
aries-val says of the plan, where it can read the problem. GTPyhop has methods that its authors wrote by hand for two of
the domains, and no HDDL.

With `--cpu` metatree searches in this process and its seconds are those of CPU, for measuring how plans become cheaper.
`--every 6` takes the second problem of each folder, the eighth, and so on. At the end there is a line for each folder,
and how the cost of plans compares with the best that metatree or Aries found, here or in the files of `--best`, which
earlier runs wrote with `--json`, by the seconds that metatree had searched.
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

PATIENCE = 3
"""How many times its seconds of CPU another planner may take by the clock on the wall."""


def problems(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield domain and problem of each problem in a folder."""
    for file in sorted(folder.rglob("*.hddl")):
        if file.stem.endswith("domain"):
            continue
        for domain in (file.with_name(f"{file.stem}-domain.hddl"), file.with_name("domain.hddl")):
            if domain.exists():
                yield domain, file
                break


def ours(
    domain: Path, problem: Path, seconds: float, memory: int, more: list[str]
) -> tuple[dict[str, Any], str]:
    """Run `metatree plan`; return what came of it, how long it took from its start to its end, and the plan's text."""
    limits = ("--seconds", str(seconds), "--memory", str(memory), "--json", *more)
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
    if found["ended"] != "solved":
        return row, ""
    curve = [(one["seconds"], one["cost"]) for one in found["found"]]
    return {**row, "steps": len(found["steps"]), "found": curve}, found["text"]


def peer(
    python: Path, *arguments: object, text: str = "", seconds: float = 60.0, memory: float = float("inf")
) -> dict[str, Any]:
    """Run another planner in its venv: the whole command, ended after some seconds or beyond some megabytes."""
    command = [str(python), str(HERE / "peers.py"), *map(str, arguments)]
    began = time.perf_counter()
    most = cpu = 0.0
    with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+") as out:
        given.write(text)
        given.seek(0)
        process = subprocess.Popen(
            command, stdin=given, stdout=out, stderr=subprocess.DEVNULL, process_group=0
        )
        ended = ""
        while process.poll() is None and not ended:
            time.sleep(0.1)
            megabytes, now = used_by(process.pid)
            most, cpu = max(most, megabytes), max(cpu, now)
            if cpu > seconds or time.perf_counter() - began > PATIENCE * seconds:
                ended = "timeout"
            elif most > memory:
                ended = "memory"
        took = time.perf_counter() - began
        with suppress(
            ProcessLookupError
        ):  # the server that Aries runs in outlives a process that was given up
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        out.seek(0)
        lines = [line for line in out.read().splitlines() if line.startswith("{")]
    row = dict(json.loads(lines[-1])) if lines and not ended else {"ended": ended or "failed"}
    return {**row, "seconds": took, "cpu": cpu, "megabytes": most}


def used_by(group: int) -> tuple[float, float]:
    """Return the megabytes that the processes of a group have, and the seconds of CPU that they have used."""
    pages = ticks = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(stat[2]) == group:
                ticks += sum(map(int, stat[11:15]))
                pages += int((folder / "statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6, ticks / os.sysconf("SC_CLK_TCK")


def searched(
    domain: Path, problem: Path, seconds: float, memory: int, improve_for_s: float
) -> dict[str, Any]:
    """Search in this process, its seconds being those of CPU; the verifier has to accept the plan."""
    from metatree_agents.planner.hddl.limits import SolverLimits
    from metatree_agents.planner.hddl.parse import read_domain, read_problem
    from metatree_agents.planner.hddl.solve import solve
    from metatree_agents.planner.hddl.verify import verify_plan

    read = read_problem(problem, read_domain(domain))
    began = time.process_time()
    limits = SolverLimits(seconds, memory * 1e6, clock=time.process_time)
    solved = solve(read, limits, improve_for_s=improve_for_s)
    took = time.process_time() - began
    row: dict[str, Any] = {"ended": solved.ended, "seconds": took, "cpu": took, "megabytes": 0.0}
    if solved.plan is not None:
        verify_plan(solved.plan, read)
        row |= {"steps": len(solved.plan), "found": solved.found}
    return row


def shown(row: dict[str, Any] | None) -> str:
    """Return steps and seconds, or how it ended."""
    if not row:
        return "-"
    if row["ended"] != "solved":
        return str(row["ended"])
    return f"{row.get('steps', '?')} in {row['seconds']:.3f} s"


MARKS = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Seconds of searching at which plans are compared; 0: the first plan."""


def known(row: dict[str, Any]) -> list[float]:
    """Return what the plans of a problem cost that metatree and Aries found; GTPyhop has other methods."""
    costs = [cost for _, cost in row["metatree"].get("found", ())]
    return [*costs, row["aries"]["steps"]] if "steps" in row.get("aries", ()) else costs


def quality(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> str:
    """Return a table of what plans cost by the best known cost, for each folder; problems without a metric."""
    best: dict[str, float] = {}
    for row in (*rows, *others):
        for cost in known(row):
            best[row["problem"]] = min(cost, best.get(row["problem"], cost))
    folders: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["metatree"].get("found") and best[row["problem"]] > 0:
            folders.setdefault(str(Path(row["problem"]).parent), []).append(row)
    heads = " | ".join("first" if not mark else f"{mark:g} s" for mark in MARKS)
    lines = [f"| domain | problems | {heads} | within 1.2 | Aries |", "|---|" + "---:|" * (len(MARKS) + 3)]
    for name, listed in {**folders, "all": [row for one in folders.values() for row in one]}.items():
        shares: list[list[float]] = []
        for mark in MARKS:
            shares.append([])
            for row in listed:
                found = row["metatree"]["found"]
                costs = [cost for after, cost in found if after <= mark] or [found[0][1]]
                shares[-1].append(min(costs) / best[row["problem"]])
        near = sum(ratio <= 1.2 for ratio in shares[-1])
        aries = [
            row["aries"]["steps"] / best[row["problem"]] for row in listed if "steps" in row.get("aries", ())
        ]
        theirs = f"{sum(aries) / len(aries):.2f} of {len(aries)}" if aries else "-"
        means = " | ".join(f"{sum(one) / len(one):.2f}" for one in shares)
        lines.append(f"| {name} | {len(listed)} | {means} | {near} | {theirs} |")
    return "\n".join(lines)


def by_folder(rows: list[dict[str, Any]]) -> str:
    """Return a table with a line for each folder of problems."""
    folders: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        folders.setdefault(str(Path(row["problem"]).parent), []).append(row)
    lines = [
        "| domain | metatree | longest of these | most CPU | most memory | steps | Aries | GTPyhop |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, listed in folders.items():
        own = [one["metatree"] for one in listed]
        solved = [one for one in own if one["ended"] == "solved"]
        longest, cpu = (max((one[what] for one in solved), default=0.0) for what in ("seconds", "cpu"))
        most, steps = max(one["megabytes"] for one in own), sum(one["steps"] for one in solved)
        others = [solved_by(listed, name) for name in ("aries", "gtpyhop")]
        lines.append(
            f"| {name} | {len(solved)} of {len(own)} | {longest:.1f} s | {cpu:.1f} s | {most:.0f} MB | {steps:,} |"
            f" {' | '.join(others)} |"
        )
    return "\n".join(lines)


def solved_by(rows: list[dict[str, Any]], name: str) -> str:
    """Return how many problems another planner solves, of those that it can read, with its median time."""
    tried = [
        row[name]
        for row in rows
        if row.get(name, {"ended": "unread"})["ended"] not in ("unread", "no methods")
    ]
    times = sorted(one["seconds"] for one in tried if one["ended"] == "solved")
    if not times:
        return f"0 of {len(tried)}" if tried else "–"
    return f"{len(times)} of {len(tried)}, {times[len(times) // 2]:.1f} s"


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
    parser.add_argument("--every", type=int, default=1, metavar="N", help="one problem in N of each folder")
    parser.add_argument("--first", action="store_true", help="the first plan of metatree")
    parser.add_argument("--improve-for", metavar="S", help="look for cheaper plans for S seconds")
    parser.add_argument("--cpu", action="store_true", help="search in this process, by seconds of CPU")
    parser.add_argument("--val", action="store_true", help="let aries-val check the plans, too")
    parser.add_argument("--best", type=Path, nargs="+", default=[], help="rows of other runs")
    parser.add_argument("--json", type=Path, help="write the rows there, too")
    arguments = parser.parse_args()
    python = arguments.peers / "bin" / "python"
    rows: list[dict[str, Any]] = []
    more = ["--first"] if arguments.first else []
    more += ["--improve-for", arguments.improve_for] if arguments.improve_for else []
    counted: dict[Path, int] = {}
    print("| problem | metatree | CPU | memory | val | Aries | GTPyhop |")
    print("|---|---:|---:|---:|---|---:|---:|")
    for domain, problem in problems(arguments.data):
        name = str(problem.relative_to(arguments.data).with_suffix(""))
        if arguments.only not in name:
            continue
        counted[problem.parent] = counted.get(problem.parent, 0) + 1
        if (counted[problem.parent] - 1) % arguments.every != min(1, arguments.every - 1):
            continue
        if arguments.cpu:
            for_s = float(arguments.improve_for or 4.0)
            row, text = searched(domain, problem, arguments.seconds, arguments.memory, for_s), ""
        else:
            row, text = ours(domain, problem, arguments.seconds, arguments.memory, more)
        found: dict[str, Any] = {"problem": name, "metatree": row}
        if python.exists():
            limits = {"seconds": arguments.seconds, "memory": float(arguments.memory)}
            found["aries"] = peer(python, "aries", arguments.seconds, domain, problem, **limits)
            found["gtpyhop"] = peer(python, "gtpyhop", problem.parent.name, problem.stem, **limits)
            if text and arguments.val:
                row["val"] = peer(python, "val", domain, problem, text=text).get("valid", "-")
        rows.append(found)
        if arguments.json:
            arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
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
    print()
    print(by_folder(rows))
    print()
    print(quality(rows, [row for file in arguments.best for row in json.loads(file.read_text())]))
    if any(one["metatree"]["ended"] == "failed" for one in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
