"""Solve one problem with another planner, or let another one check a plan; runs in the venv of those planners.

usage: python peers.py aries SECONDS DOMAIN.hddl PROBLEM.hddl
       python peers.py gtpyhop FOLDER PROBLEM_NUMBER          FOLDER as in gtpyhop's examples of IPC 2020
       python peers.py val DOMAIN.hddl PROBLEM.hddl < PLAN    PLAN in the format of IPC 2020

Prints one JSON object. Its times begin once everything is imported, and include reading the files.
"""

from __future__ import annotations

import importlib.util
import io
import json
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any


def aries(seconds: float, domain: str, problem: str) -> dict[str, Any]:
    """Solve with Aries through unified-planning."""
    import unified_planning.shortcuts as up
    from unified_planning.io import PDDLReader

    up.get_environment().credits_stream = None
    began = time.perf_counter()
    try:
        read = PDDLReader().parse_problem(domain, problem)
    except Exception as exc:
        return {
            "ended": "unread",
            "seconds": time.perf_counter() - began,
            "why": f"{type(exc).__name__}: {exc}",
        }
    try:
        with up.OneshotPlanner(name="aries") as planner:
            result = planner.solve(read, timeout=seconds)
    except Exception as exc:
        return {
            "ended": "failed",
            "seconds": time.perf_counter() - began,
            "why": f"{type(exc).__name__}: {exc}",
        }
    took = time.perf_counter() - began
    plan = result.plan
    if plan is None:
        return {"ended": result.status.name.lower(), "seconds": took}
    flat = getattr(plan, "action_plan", plan)
    return {
        "ended": "solved",
        "seconds": took,
        "steps": len(list(getattr(flat, "actions", ())) or list(flat.timed_actions)),
    }


def gtpyhop(folder: str, problem: str) -> dict[str, Any]:
    """Solve with GTPyhop and the methods that its authors wrote by hand."""
    import gtpyhop as library

    root = Path(library.__file__).parent / "examples" / "ipc-2020-total-order" / folder
    if not root.is_dir():
        return {"ended": "no methods"}
    sys.path.insert(0, str(root.parent))
    with redirect_stdout(io.StringIO()):
        spec = importlib.util.spec_from_file_location(
            "ipc_example", root / "__init__.py", submodule_search_locations=[str(root)]
        )
        assert spec is not None and spec.loader is not None
        package = importlib.util.module_from_spec(spec)
        sys.modules["ipc_example"] = package
        spec.loader.exec_module(package)
        problems = package.get_problems()
        # Childsnack is numbered as the files are, Blocksworld named by its blocks: 5, 7, 9 …
        wanted = {problem, f"BW_rand_{3 + 2 * int(problem[1:])}"} if problem[1:].isdigit() else {problem}
        name = next((one for one in problems if any(one.endswith(w) for w in wanted)), None)
        if name is None:
            return {"ended": "no methods"}
        state, goals, *_ = problems[name]
        sys.setrecursionlimit(100_000)
        began = time.perf_counter()
        with library.PlannerSession(domain=package.the_domain, verbose=0) as session:
            goal = library.Multigoal("goal")
            setattr(goal, "served" if folder == "Childsnack" else "on", goals)
            with session.isolated_execution():
                result = session.find_plan(state, [goal])
        took = time.perf_counter() - began
    plan = getattr(result, "plan", result)
    if not getattr(result, "success", bool(plan)):
        return {"ended": "failed", "seconds": took}
    return {"ended": "solved", "seconds": took, "steps": len(plan)}


def val(domain: str, problem: str, text: str) -> dict[str, Any]:
    """Let aries-val check a plan."""
    import unified_planning.shortcuts as up
    from unified_planning.io import PDDLReader
    from unified_planning.plans import ActionInstance, SequentialPlan
    from unified_planning.plans.hierarchical_plan import Decomposition, HierarchicalPlan, MethodInstance

    up.get_environment().credits_stream = None
    read = PDDLReader().parse_problem(domain, problem)
    objects = {one.name.lower(): one for one in read.all_objects}
    actions = {one.name.lower(): one for one in read.actions}
    methods = {one.name.lower(): one for one in read.methods}
    tasks: dict[int, list[str]] = {}
    into: dict[int, tuple[str, list[int]]] = {}
    roots: list[int] = []
    steps: list[int] = []
    lines = text.splitlines()
    for line in lines[lines.index("==>") + 1 : lines.index("<==")]:
        words = line.lower().split()
        if words[0] == "root":
            roots = [int(one) for one in words[1:]]
        elif "->" in words:
            arrow = words.index("->")
            tasks[int(words[0])] = words[1:arrow]
            into[int(words[0])] = (words[arrow + 1], [int(one) for one in words[arrow + 2 :]])
        else:
            tasks[int(words[0])] = words[1:]
            steps.append(int(words[0]))
    instances = {
        key: ActionInstance(
            actions[tasks[key][0]], tuple(up.ObjectExp(objects[one]) for one in tasks[key][1:])
        )
        for key in steps
    }

    def decomposed(key: int) -> Any:
        if key in instances:
            return instances[key]
        name, below = into[key]
        method = methods[name]
        values: dict[str, Any] = {}
        for parameter, value in zip(method.achieved_task.parameters, tasks[key][1:], strict=True):
            values[parameter.name] = up.ObjectExp(objects[value])
        for subtask, one in zip(method.subtasks, below, strict=True):
            for argument, value in zip(subtask.parameters, tasks[one][1:], strict=True):
                if argument.is_parameter_exp():
                    values[argument.parameter().name] = up.ObjectExp(objects[value])
        if any(one.name not in values for one in method.parameters):
            raise LookupError("a parameter of a method is in no subtask, and the format does not name it")
        inner = {
            subtask.identifier: decomposed(one) for subtask, one in zip(method.subtasks, below, strict=True)
        }
        return MethodInstance(
            method, tuple(values[one.name] for one in method.parameters), Decomposition(inner)
        )

    top = {
        subtask.identifier: decomposed(one)
        for subtask, one in zip(read.task_network.subtasks, roots, strict=True)
    }
    plan = HierarchicalPlan(SequentialPlan([instances[key] for key in steps]), Decomposition(top))
    with up.PlanValidator(name="aries-val") as validator:
        return {"valid": validator.validate(read, plan).status.name}


def main(arguments: list[str]) -> dict[str, Any]:
    """Do what the arguments say."""
    match arguments:
        case ["aries", seconds, domain, problem]:
            return aries(float(seconds), domain, problem)
        case ["gtpyhop", folder, problem]:
            return gtpyhop(folder, problem)
        case ["val", domain, problem]:
            try:
                return val(domain, problem, sys.stdin.read())
            except LookupError as exc:
                return {"valid": "UNKNOWN", "why": str(exc)}
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    found = main(sys.argv[1:])
    print(json.dumps(found))
