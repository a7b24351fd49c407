"""What `ask`, `find` and `files` print for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from metatree.notes.notes import said_by
from metatree_agents.cli._output import counted, styled, visible
from metatree_agents.tools.closest import line_range, of_question, telling
from metatree_agents.tools.locations import NOT_IN_SOURCE, source_place
from metatree_agents.tools.question_notes import notes_of

if TYPE_CHECKING:
    from metatree import ClosestPassage, SearchResult, Tree
    from metatree.result import Usage
    from metatree_agents.code import FileToEdit

_QUOTE_LINES = 12
_PASSAGE_LINES = 6
_PASSAGE_CHARS = 800
_SILENT = "The sources do not say, as far as this search can tell"


def with_sources(result: SearchResult, k: int | None) -> SearchResult:
    """Return the result with at most `k` sources for each answer; None keeps them all."""
    answers = tuple(replace(answer, sources=answer.sources[:k]) for answer in result.answers)
    return replace(result, answers=answers)


def answer_lines(result: SearchResult, tree: Tree, *, verbose: bool = False) -> Iterator[str]:
    """Yield the answer, its sources with their quotes, and what stays open with the passages that come closest.

    Args:
        verbose: whether all of these passages is shown, and their scores.
    """
    for note in notes_of(result):
        yield styled(visible(note), "dim")
    if result.answer:
        yield from _text_lines(result.answer)
        yield from _doubts(result)
    elif result.ended != "exhausted" or not result.open_questions:
        yield _nothing(result, "no answer was found")
    sources = list(dict.fromkeys(source for answer in result.answers for source in answer.sources))
    if sources:
        yield ""
        yield styled("Sources", "bold")
    for source in sources:
        if not source.node:  # a person said it
            yield f"  {styled(visible(source.title), 'cyan')}"
            continue
        by = _said_by(tree, source.node)
        yield f"  {styled(visible(source_place(tree, source)), 'cyan')}  {visible(source.title)}{by}"
        # An answer in the words of its source needs no quote to prove it.
        quote = [] if source.quote.strip() in result.answer else source.quote.strip("\n").splitlines()
        yield from _quoted(quote[:_QUOTE_LINES])
        if len(quote) > _QUOTE_LINES:
            yield styled(f"  | … {len(quote) - _QUOTE_LINES} more lines", "dim")
    alone = len(result.open_questions) == 1 and not result.answer
    if result.open_questions and not alone and (result.answer or result.ended != "exhausted"):
        yield ""
    yield from open_question_lines(result, tree, verbose=verbose, alone=alone)


def _doubts(result: SearchResult) -> Iterator[str]:
    """Yield a line for each answer whose words are in no source."""
    for answer in result.answers:
        if not answer.verified:
            of = f": {visible(_first_line(answer.question))}" if len(result.answers) > 1 else ""
            yield styled(f"({NOT_IN_SOURCE}{of})", "bold")


def open_question_lines(
    result: SearchResult, tree: Tree, *, verbose: bool = False, alone: bool = False
) -> Iterator[str]:
    """Yield each question that stays open and the passages that come closest to it, with an empty line between them.

    Args:
        verbose: whether all of a passage is shown, and its score.
        alone: whether the question goes without saying.
    """
    for number, question in enumerate(result.open_questions):
        closest = of_question(result.closest, question)
        if number:
            yield ""
        if not alone:
            yield f"{styled('Still open:', 'bold')} {visible(_first_line(question))}"
        if result.ended == "exhausted":
            yield f"{_SILENT}. Closest passages:" if closest else _nothing_close(result)
        elif closest:
            yield "Closest passages:"
        for passage in closest:
            yield from _passage_lines(passage, tree, verbose=verbose)


def _passage_lines(passage: ClosestPassage, tree: Tree, *, verbose: bool) -> Iterator[str]:
    place = f"{visible(passage.place)}:{line_range(passage)}"
    score = f"  {passage.score:.2f}" if verbose else ""
    yield f"  {styled(place, 'cyan')}  {visible(passage.title)}{_said_by(tree, passage.node)}{score}"
    whole = passage.quote.strip("\n").splitlines()
    yield from _quoted(whole if verbose else telling(passage, lines=_PASSAGE_LINES, chars=_PASSAGE_CHARS))


def _quoted(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines of a source, each behind a mark: what they say cannot be taken for what the command says."""
    for line in lines:
        yield styled(f"  | {visible(line.expandtabs(4))}".rstrip(), "dim")


def _said_by(tree: Tree, node_id: str) -> str:
    node = tree.find(node_id)
    return f" ({visible(author)})" if node is not None and (author := said_by(node)) else ""


def node_lines(result: SearchResult) -> Iterator[str]:
    """Yield one line for each node that was found: its score, its id, and why."""
    if not result.nodes:
        yield _nothing(result, "no node was found")
    width = min(60, max((len(node.id) for node in result.nodes), default=0))
    for node in result.nodes:
        why = visible(_first_line(node.reason))
        yield f"{node.score:.2f}  {styled(f'{visible(node.id):{width}}', 'cyan')}  {why}".rstrip()


def file_lines(files: Sequence[FileToEdit], result: SearchResult) -> Iterator[str]:
    """Yield one line for each file to edit, and below it the lines of its definitions."""
    if not files:
        yield _nothing(result, "no file to edit was found", hint="try other words")
    names = [file.node if file.source else file.path for file in files]
    width = min(60, max(map(len, names), default=0))
    for name, file in zip(names, files, strict=True):
        why = visible(_first_line(file.reason))
        yield f"{file.score:.2f}  {styled(f'{visible(name):{width}}', 'cyan')}  {why}".rstrip()
        for definition in file.definitions:
            yield f"        {definition.start_line:5}-{definition.end_line:<5}  {visible(definition.name)}"


def summary(result: SearchResult) -> str:
    """Return one line on how the run ended and what it cost."""
    detail = "" if warning(result) else result.detail
    ended = f"{result.ended} ({detail})" if detail else result.ended
    run = f"run {result.run_id}: " if result.run_id else ""
    return f"{run}{ended}; {usage_text(result.usage)}"


def warning(result: SearchResult) -> str:
    """Return what went wrong in a search that came to its end all the same, such as a router out of reach."""
    return result.detail if result.ended in ("answered", "exhausted") else ""


def failed_fallbacks(result: SearchResult) -> list[str]:
    """Return why fallbacks of a search gave nothing, such as a search engine that is out of reach."""
    failures = (
        e.reason for e in result.trace if e.event == "fallback" and e.reason.startswith("it failed: ")
    )
    return list(
        dict.fromkeys(f"a fallback of the search failed: {r.removeprefix('it failed: ')}" for r in failures)
    )


def usage_text(usage: Usage) -> str:
    """Return what a run has used, in words; what was not used is left out."""
    parts = [counted(usage.router_calls, "choice"), counted(usage.reads, "read")]
    if usage.model_calls:
        parts.append(counted(usage.model_calls, "model call"))
        parts.append(f"{usage.tokens_in + usage.tokens_out:,} tokens")
    if usage.tool_calls:
        parts.append(counted(usage.tool_calls, "tool call"))
    if usage.cost_usd is not None:
        parts.append(f"${usage.cost_usd:.4f}")
    parts.append(f"{usage.seconds:.2f} s")
    return ", ".join(parts)


def _text_lines(text: str) -> Iterator[str]:
    for line in text.strip("\n").splitlines():
        yield visible(line.expandtabs(4))


def _nothing(result: SearchResult, what: str, *, hint: str = "try other words, or a --start node") -> str:
    match result.ended:
        case "limit":
            return f"{what} before a limit was reached: {result.detail}"
        case "waiting":
            return f"{what} yet: waiting for a person ({result.detail})"
        case "failed" | "cancelled":  # the last line on standard error says why
            return f"{what}: the search {'failed' if result.ended == 'failed' else 'was cancelled'}"
        case _:
            return f"{what}: {hint}; `metatree show` lists what there is"


def _nothing_close(result: SearchResult) -> str:
    return _nothing(result, f"{_SILENT}, and no passage comes close")


def _first_line(text: str) -> str:
    stripped = text.strip()
    first, newline, _ = stripped.partition("\n")
    return first + " …" if newline else first
