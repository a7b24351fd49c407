"""What `find` and `files` print for people, and how every search says that it ended."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from metatree_agents.cli._output import counted, styled, visible

if TYPE_CHECKING:
    from metatree import SearchResult
    from metatree.result import Usage, Wish
    from metatree_agents.code import FileToEdit

_CLAUSE_END = re.compile(r"; |: (?=['\"])")
"""Where the first clause of a reason ends: before the next one, or before the line that it quotes."""


def node_lines(result: SearchResult, *, verbose: bool = False) -> Iterator[str]:
    """Yield one line for each node that was found: its score, where it is, what it is called, and why.

    Args:
        verbose: whether to say all of why, and not the first clause alone.
    """
    if not result.nodes:
        yield nothing(result, "no node was found")
    places = [
        node.id if node.lines is None else f"{node.path}:{node.lines[0]}-{node.lines[1]}"
        for node in result.nodes
    ]
    width = min(60, max(map(len, places), default=0))
    for node, place in zip(result.nodes, places, strict=True):
        why = _why(node.reason, verbose=verbose)
        name = "" if node.lines is None and node.id.endswith(node.title) else f"{visible(node.title)}  "
        yield f"{node.score:.2f}  {styled(f'{visible(place):{width}}', 'cyan')}  {name}{why}".rstrip()
    yield from wish_lines(result.wishes)


def _why(reason: str, *, verbose: bool) -> str:
    return visible(first_line(reason if verbose else _CLAUSE_END.split(reason, maxsplit=1)[0]))


def wish_lines(wishes: Sequence[Wish]) -> Iterator[str]:
    """Yield what people want always, word for word, with who said it and where."""
    for number, wish in enumerate(wishes):
        if not number:
            yield ""
            yield styled("Standing wishes that can apply", "bold")
        said = f"{visible(wish.who)}{f', {visible(wish.at[:10])}' if wish.at else ''}"
        if wish.file is not None:
            said = f"a file names {said}"
        yield f"  {styled(visible(wish.source), 'cyan')}  ({said})"
        yield from quoted_lines([wish.text])


def quoted_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines of a source, each behind a mark: what they say cannot be taken for what the command says."""
    for line in lines:
        yield styled(f"  | {visible(line.expandtabs(4))}".rstrip(), "dim")


def file_lines(files: Sequence[FileToEdit], result: SearchResult, *, verbose: bool = False) -> Iterator[str]:
    """Yield one line for each file to edit, and below it the lines of its definitions.

    Args:
        verbose: whether to say all of why, and not the first clause alone.
    """
    if not files:
        yield nothing(result, "no file to edit was found")
    names = [file.node if file.source else file.path for file in files]
    width = min(60, max(map(len, names), default=0))
    for name, file in zip(names, files, strict=True):
        why = _why(file.reason, verbose=verbose)
        yield f"{file.score:.2f}  {styled(f'{visible(name):{width}}', 'cyan')}  {why}".rstrip()
        for definition in file.definitions:
            yield f"        {definition.start_line:5}-{definition.end_line:<5}  {visible(definition.name)}"


def summary(result: SearchResult) -> str:
    """Return one line on how the run ended and what it cost."""
    detail = "" if warning(result) else result.detail
    words = "searched to the end" if result.ended == "exhausted" else result.ended
    ended = f"{words} ({detail})" if detail else words
    run = f"run {result.run_id}: " if result.run_id else ""
    return f"{run}{ended}; {usage_text(result.usage)}"


def warning(result: SearchResult) -> str:
    """Return what went wrong in a search that came to its end all the same, such as a router out of reach."""
    return result.detail if result.ended in ("answered", "exhausted") else ""


def calls_that_changed(result: SearchResult) -> list[str]:
    """Return which tools that change something were called, with what and where, whatever the search then found."""
    changed = [entry for entry in result.trace if entry.event == "tool" and entry.data.get("changes")]
    given = (json.dumps(entry.data["arguments"], ensure_ascii=False) for entry in changed)
    return [
        f"{entry.data['tool']} was called with {each} at {entry.node}"
        for entry, each in zip(changed, given, strict=True)
    ]


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


def nothing(result: SearchResult, what: str) -> str:
    """Return why nothing was found, in the words of how the search ended; `why_empty` says what to try."""
    match result.ended:
        case "limit":
            return f"{what} before a limit was reached: {result.detail}"
        case "waiting":
            return f"{what} yet: waiting for a person ({result.detail})"
        case "failed" | "cancelled":  # the last line on standard error says why
            return f"{what}: the search {'failed' if result.ended == 'failed' else 'was cancelled'}"
        case _:
            return what


def first_line(text: str) -> str:
    """Return the first line of a text, with a mark where more follow."""
    stripped = text.strip()
    first, newline, _ = stripped.partition("\n")
    return first + " …" if newline else first
