"""`metatree rules`: run a program of facts, productions, schedule and resolver, and look into what it does."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metatree._util.private import write_whole
from metatree._util.process import memory_bound
from metatree.errors import MetatreeError, UserError
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FAILED, FOUND, LIMIT, NOTHING
from metatree_agents.cli._inputs import imported, text_of
from metatree_agents.cli._options import Json, option, path

if TYPE_CHECKING:
    from metatree.rules import Program, ShellReport, WorkingMemory
    from metatree_agents.cli.schemas.search import AgendaOutput, RulesOutput


def rules(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The program; - for standard input.")],
    step: Annotated[
        bool, typer.Option("--step", help="Wait for Enter after each cycle; q and Enter ends the run.")
    ] = False,
    cycles: Annotated[int, typer.Option("--cycles", min=1, metavar="N", help="At most N cycles.")] = 1000,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", metavar="N", help="Seed of resolvers that draw at random; that of the program."
        ),
    ] = None,
    why_not: Annotated[
        str | None,
        option("--why-not", "NAME", "After the run, say why this production cannot fire."),
    ] = None,
    query: Annotated[
        str | None,
        option("--query", "CONDITIONS", "After the run, print how these are met."),
    ] = None,
    trace: Annotated[
        Path | None, option("--trace", "FILE", "Write the trace there, as JSON.", parser=path)
    ] = None,
    functions: Annotated[
        str | None,
        option(
            "--functions",
            "MODULE:NAME",
            "Functions that the rules may call: a dict of names and pure Python functions.",
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        option("--picture", "FILE", "Write the automaton: .dot for Graphviz, .mmd for Mermaid.", parser=path),
    ] = None,
    memory: Annotated[
        int, typer.Option("--memory", min=1, metavar="MB", help="Use at most MB megabytes for what matches.")
    ] = 2000,
    as_json: Json = False,
) -> int:
    """Run a program of facts and productions, under its schedule and resolver.

    Prints what fires in each cycle, then the facts. A program without a schedule and a resolver is only matched: the
    tokens of its productions are printed, and the facts, if productions assert any. A file that ends in .toml is read
    as TOML. docs/rules.md describes the language.

    \b
    Example: metatree rules river.rules --why-not "start trip"
    """
    from metatree.rules import Program

    text = text_of(file if file == "-" else f"@{file}", what="program", whole=True)
    own = None if functions is None else _functions(functions)
    try:
        read = Program.from_toml if file.lower().endswith(".toml") else Program.parse
        program = read(text, functions=own)
    except UserError as exc:
        raise UserError(f"{'standard input' if file == '-' else file}: {exc}") from exc
    if picture is not None:
        _draw(program, picture)
    try:
        with memory_bound(memory * 1_000_000):
            report, facts = _run(program, cycles, seed, step, quiet=as_json)
            explanation = _explained(facts, why_not) if why_not is not None else None
            answers = _query_rows(facts, query) if query is not None else None
    except MemoryError:
        output.note(
            f"metatree: what matches takes more than {memory:,} MB: conditions that share no variable are met by each"
            " combination of facts; --memory allows more"
        )
        return LIMIT
    if trace is not None:
        _write(trace, json.dumps(_trace(report), indent=2))
    if as_json:
        output.write_json("rules", _as_output(report, facts, explanation, answers))
    else:
        output.write(_lines(report, facts, explanation, answers))
    return _exit_code(report, facts)


def _run(
    program: Program, cycles: int, seed: int | None, step: bool, *, quiet: bool
) -> tuple[ShellReport | None, WorkingMemory]:
    from metatree.rules import ShellLimits
    from metatree.rules.shell.control import ending_lines, trace_lines

    if not program.controlled:
        return None, program.memory()
    steps = _Steps(step)

    def tell(entry: dict[str, Any]) -> None:
        if not quiet:
            output.write([output.visible(line) for line in trace_lines(entry)])
        steps.wait()

    report = program.shell().run(
        program.facts,
        seed=seed if seed is not None else program.seed,
        limits=ShellLimits(cycles=cycles),
        on_entry=tell,
    )
    if not quiet:
        output.write([output.visible(line) for line in ending_lines(report)])
    return report, report.memory


def _functions(name: str) -> Mapping[str, Callable[..., Any]]:
    found = imported(name, "--functions", "shop.pricing:FUNCTIONS")
    if not isinstance(found, Mapping):
        raise UserError(f"--functions {name!r} is no dict of names and functions, but {type(found).__name__}")
    return found


class _Steps:
    """Waits for Enter between cycles."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled

    def wait(self) -> None:
        if not self._enabled:
            return
        output.note("-- Enter: the next cycle; q: the end --")
        line = sys.stdin.readline()
        if not line:
            self._enabled = False  # nobody is there any more: go on to the end
        elif line.strip().lower().startswith("q"):
            raise MetatreeError("ended after this cycle")


def _draw(program: Program, picture: Path) -> None:
    if program.schedule is None:
        raise UserError("the program has no schedule, so there is no automaton to draw")
    match picture.suffix:
        case ".dot" | ".gv":
            text = program.schedule.graphviz()
        case ".mmd" | ".mermaid":
            text = program.schedule.mermaid()
        case other:
            raise UserError(f"cannot draw to {other or 'a file without an ending'!r}: use .dot or .mmd")
    _write(picture, text)


def _write(file: Path, text: str) -> None:
    """Write a text to a file; no link is followed that a folder has for its name, but those of the system are.

    Nor one for a folder below the current one, which may be somebody else's as a whole.
    """
    links = [part for part in (file, *file.parents) if part.is_symlink()]
    if links and not file.absolute().is_relative_to("/dev") and (links[0] == file or not file.is_absolute()):
        raise UserError(
            f"{str(links[0])!r} is a link and is not followed: remove it, or name what it leads to"
        )
    data = (text + "\n").encode()
    if file.absolute().is_relative_to("/dev"):
        file.write_bytes(data)
    else:
        write_whole(file, data)


def _explained(memory: WorkingMemory, name: str) -> str:
    from metatree.rules import why_not

    return str(why_not(memory, name))


def _query_rows(memory: WorkingMemory, query: str) -> list[dict[str, str]]:
    from metatree.rules.language.values import value_text

    return [{name: value_text(value) for name, value in binding.items()} for binding in memory.query(query)]


def _trace(report: ShellReport | None) -> dict[str, Any]:
    if report is None:
        return {"run": None, "trace": []}
    return {"run": report.run_id, "ended": report.ended, "state": report.state, "trace": list(report.trace)}


def _agendas(memory: WorkingMemory) -> Iterator[AgendaOutput]:
    from metatree_agents.cli.schemas.search import AgendaOutput

    for name in memory.productions:
        agenda = memory.agenda(name)
        yield AgendaOutput(
            production=name,
            tokens=[str(token) for token in agenda.tokens()],
            to_add=len(agenda.to_add),
            to_remove=len(agenda.to_remove),
        )


def _as_output(
    report: ShellReport | None,
    memory: WorkingMemory,
    explanation: str | None,
    answers: list[dict[str, str]] | None,
) -> RulesOutput:
    from metatree.rules.language.values import value_text
    from metatree_agents.cli.schemas.search import InferredFact, RulesOutput

    return RulesOutput(
        ended=report.ended if report is not None else "matched",
        detail=report.detail if report is not None else "",
        state=report.state if report is not None else None,
        cycles=report.cycles if report is not None else 0,
        facts=[value_text(fact) for fact in memory],
        inferred=[
            InferredFact(
                fact=value_text(fact), by=[f'"{t.production}" {t}' for t in memory.justifications(fact)]
            )
            for fact in memory
            if memory.is_derived(fact)
        ],
        productions=list(_agendas(memory)),
        expected=[str(one) for one in report.expected] if report is not None else [],
        why_not=explanation,
        answers=answers,
        trace=list(report.trace) if report is not None else [],
    )


def _lines(
    report: ShellReport | None,
    memory: WorkingMemory,
    explanation: str | None,
    answers: list[dict[str, str]] | None,
) -> Iterator[str]:
    if report is None:
        for agenda in _agendas(memory):
            count = len(agenda.tokens)
            name = output.visible(agenda.production)
            yield output.styled(f'"{name}": {count} token{"" if count == 1 else "s"}', "bold")
            yield from (output.visible(f"  {token}") for token in agenda.tokens)
    if explanation is None and answers is None and (report is not None or _asserts(memory)):
        yield ""
        yield from (output.visible(line) for line in memory.text().splitlines())
    if explanation is not None:
        yield output.visible(explanation)
    if answers is not None:
        yield from (output.visible(" ".join(f"<{k}>={v}" for k, v in binding.items())) for binding in answers)
        yield f"{len(answers)} way{'' if len(answers) == 1 else 's'}"


def _asserts(memory: WorkingMemory) -> bool:
    return any(production.actions for production in memory.productions.values())


def _exit_code(report: ShellReport | None, memory: WorkingMemory) -> int:
    if report is None:
        return FOUND if any(len(memory.agenda(name)) for name in memory.productions) else NOTHING
    match report.ended:
        case "accepted":
            return FOUND
        case "limit":
            return LIMIT
        case "failed" | "cancelled":
            return FAILED
        case _:
            return NOTHING
