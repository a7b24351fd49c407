"""Measure how much a scripted agent reads until it has seen all lines that a fix changes, with two sets of tools.

usage: python -m benchmarks.code_agent --data DIR --mirrors DIR [--repo OWNER/NAME …] [--limit N] [--model NAME]

`DIR/code/issues.jsonl` has the issues (SWE-bench), `DIR/code/lines.jsonl` the lines at the base commit that each fix
changes; `--mirrors` holds a git directory OWNER+NAME/repo for each repository.

- `grep, glob, read`: patterns made of the issue (identifiers, quoted strings, words, the rarest first; what no line
  has is left out), lines that match, windows of 200 lines around what most of them hit. It sees Python files that are
  no tests.
- `metatree`: `context` with 4,000 tokens, what it names besides, the definitions in `files_to_edit`, `search`, then the
  likeliest files whole. It sees all files of the commit.

Tokens are those of what the tools give back, by one tokenizer. A line counts as seen when a tool has shown its text.
An agent stops when all edited spans were seen, or at 60 calls or 100,000 tokens: then it has these. With `--model`, a
model behind OPENAI_BASE_URL chooses the calls instead of the scripts, until it says that it has seen enough. The second
table has the issues whose id has an odd checksum: what `context` weighs was fitted on others.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path
from statistics import mean, median
from typing import Any

from metatree_agents.context import token_counter
from metatree_agents.tools.toolkit import Toolkit
from metatree_memory_tools import build_tree

from benchmarks.code_agent.by_model import by_model
from benchmarks.code_agent.scripts import Script, with_metatree, with_shell
from benchmarks.code_agent.tool_sets import Metatree, Shell, ToolSet
from benchmarks.retrieval.checkouts import Checkout, is_python_source

MOST_CALLS = 60
MOST_TOKENS = 100_000
SHELL, OURS = "grep, glob, read", "metatree"
STEPS = (5_000, 10_000, 20_000, 50_000)
Spans = Mapping[str, Sequence[Sequence[int]]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an agent needed for one issue."""

    seen: bool
    """Whether it has seen all edited spans."""
    calls: int
    tokens: int


def played(script: Script, tools: ToolSet, edits: Spans, count: Callable[[str], int]) -> Outcome:
    """Let a script call its tools until it has seen all edited spans, or may not go on.

    Args:
        script: yields calls and is sent what they showed.
        tools: do them.
        edits: ranges of lines by path.
        count: counts the tokens of a text.
    """
    unseen = {(path, line) for path, spans in edits.items() for first, last in spans
              for line in range(first, last + 1)}  # fmt: skip
    calls = tokens = 0
    try:
        call = next(script)
        while True:
            shown = tools.call(call)
            calls, tokens = calls + 1, tokens + count(shown.text)
            for path, first, last in shown.lines:
                unseen.difference_update((path, line) for line in range(first, last + 1))
            if not unseen or calls >= MOST_CALLS or tokens >= MOST_TOKENS:
                break
            call = script.send(shown)
    except StopIteration:
        pass
    return Outcome(not unseen, calls, min(tokens, MOST_TOKENS))


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--mirrors", type=Path, required=True)
    parser.add_argument("--repo", action="append", help="only these; by default those whose mirror is there")
    parser.add_argument("--limit", type=int, help="issues of each repository")
    parser.add_argument("--model", help="a model that chooses the calls")
    options = parser.parse_args()
    data = options.data / "code"
    edits = {row["id"]: row["edits"] for row in _rows(data / "lines.jsonl")}
    by_repo: dict[str, list[dict[str, Any]]] = {}
    for row in _rows(data / "issues.jsonl"):
        there = options.mirrors / str(row["mirror"]).replace("/", "+") / "repo"
        if row["repo"] in options.repo if options.repo else there.is_dir():
            by_repo.setdefault(row["repo"], []).append(row)
    outcomes: dict[str, dict[str, Outcome]] = {SHELL: {}, OURS: {}}
    with tempfile.TemporaryDirectory() as work:
        for issues in by_repo.values():
            for issue in issues[: options.limit]:
                one = _measure(issue, edits[issue["id"]], options.mirrors, Path(work), options.model)
                for name, outcome in one.items():
                    outcomes[name][issue["id"]] = outcome
                    print(f"{issue['id']}  {name}: {outcome}", file=sys.stderr, flush=True)
    print("\n".join(table({name: list(each.values()) for name, each in outcomes.items()})))
    unseen = {
        name: [one for id_, one in each.items() if int(md5(id_.encode()).hexdigest(), 16) % 2]
        for name, each in outcomes.items()
    }
    if unseen[OURS]:
        print("\n" + "\n".join(table(unseen)))


def _measure(
    issue: Mapping[str, Any], edits: Spans, mirrors: Path, work: Path, model: str | None
) -> dict[str, Outcome]:
    place = work / str(issue["repo"]).replace("/", "+")
    checkout = Checkout(mirrors / str(issue["mirror"]).replace("/", "+") / "repo", place)
    blobs = checkout.move_to(str(issue["base_commit"]), is_python_source)
    query, count = str(issue["query"]), token_counter()[0]
    shell = Shell({path: checkout.text(path) for path in blobs})
    with build_tree(checkout.folder, out=place / "tree", history=False) as tree:
        ours = Metatree(Toolkit(tree, refresh=False))
        if model is not None:
            scripts = {SHELL: by_model(query, shell, model), OURS: by_model(query, ours, model)}
        else:
            scripts = {SHELL: with_shell(query, shell), OURS: with_metatree(query, shell)}
        sets: dict[str, ToolSet] = {SHELL: shell, OURS: ours}
        return {name: played(script, sets[name], edits, count) for name, script in scripts.items()}


def table(outcomes: Mapping[str, Sequence[Outcome]]) -> list[str]:
    """Return a table: a row for each set of tools."""
    steps = "".join(f" {step:,} |" for step in STEPS)
    rows = [
        f"| {len(outcomes[OURS])} issues | all seen |{steps} median tokens | mean tokens | median calls | mean calls |",
        "|---|" + "---:|" * (len(STEPS) + 5),
    ]
    for name, each in outcomes.items():
        within = [mean(one.seen and one.tokens <= step for one in each) for step in STEPS]
        cells = [f"{mean(one.seen for one in each):.2f}", *(f"{share:.2f}" for share in within)]
        cells += [f"{median(one.tokens for one in each):,.0f}", f"{mean(one.tokens for one in each):,.0f}"]
        cells += [f"{median(one.calls for one in each):.0f}", f"{mean(one.calls for one in each):.1f}"]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    pairs = list(zip(outcomes[SHELL], outcomes[OURS], strict=True))
    both = [(one.tokens, other.tokens) for one, other in pairs if one.seen and other.seen]
    if both:
        fewer = sum(other < one for one, other in both)
        rows.append(
            f"\nWhere both have seen all ({len(both)}): median tokens {median(a for a, _ in both):,.0f} and "
            f"{median(b for _, b in both):,.0f}; metatree's are fewer in {fewer}."
        )
    return rows


def _rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    main()
