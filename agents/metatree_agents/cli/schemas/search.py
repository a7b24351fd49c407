"""The JSON of commands about searches, trees and what is installed, as types; docs/json.md is generated from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

if TYPE_CHECKING:
    from metatree.result import NodeRef, SearchResult, Usage
    from metatree_agents.code import FileToEdit


class UsageShape(TypedDict):
    """What a run has used, failed attempts included."""

    router_calls: int
    reads: int
    model_calls: int
    tool_calls: int
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    cost_usd: float | None
    cache_hits: int
    failed_attempts: int
    seconds: float


class SourceShape(TypedDict):
    """Where an answer comes from: a node and its exact words."""

    node: str
    title: str
    quote: str


class AnswerShape(TypedDict):
    """The answer to one question."""

    question: str
    answer: str
    sources: list[SourceShape]


class AskShape(TypedDict):
    """`metatree ask --json`."""

    answer: str
    answers: list[AnswerShape]
    open_questions: list[str]
    ended: str
    usage: UsageShape
    run: str


class FoundNodeShape(TypedDict):
    """A node that was found; `score` is in [0, 1]."""

    id: str
    title: str
    score: float
    reason: str


class FindShape(TypedDict):
    """`metatree find --json`."""

    nodes: list[FoundNodeShape]
    usage: UsageShape
    run: str


class DefinitionShape(TypedDict):
    """A definition inside a file; lines count from 1, both included."""

    name: str
    start_line: int
    end_line: int


class FileShape(TypedDict):
    """A file to edit; `path` is relative to the source, with `/`; `score` is in [0, 1].

    In a tree of several sources, `source` is the folder that the path is relative to, and `node` the id of the file.
    """

    path: str
    score: float
    reason: str
    definitions: list[DefinitionShape]
    source: NotRequired[str]
    node: NotRequired[str]


class FilesShape(TypedDict):
    """`metatree files --json`."""

    files: list[FileShape]
    usage: UsageShape


class BuiltSourceShape(TypedDict):
    """One of several sources of a tree; `mount` is the id of its top node; `note` says why it could not be read."""

    mount: str
    type: str
    location: str
    note: str | None


class BuiltShape(TypedDict):
    """A tree that was built; `kinds` counts its nodes by kind; `sources` lists them unless it is of one folder."""

    source: str
    tree: str
    nodes: int
    kinds: dict[str, int]
    omitted: int
    seconds: float
    sources: NotRequired[list[BuiltSourceShape]]


class BuildShape(TypedDict):
    """`metatree build --json`."""

    trees: list[BuiltShape]


class NodeShape(TypedDict):
    """`metatree show --json`; `path` is null for a node that was built from no file or folder.

    `start_line` and `end_line` are null for a node that is no part of a file.
    `children` is null where `--depth` ended the listing and the node has children.
    `content` is the text of the node that was named; it is there with `--content` alone.
    """

    id: str
    title: str
    description: str
    kind: str
    path: str | None
    start_line: int | None
    end_line: int | None
    children: list[NodeShape] | None
    content: NotRequired[str]


class OmissionShape(TypedDict):
    """Something that was left out of the tree."""

    path: str
    reason: str


class OmittedShape(TypedDict):
    """`metatree show --omitted --json`."""

    omitted: list[OmissionShape]


class EntryShape(TypedDict):
    """One decision of a run."""

    step: int
    frame: int
    event: str
    node: str | None
    reason: str
    data: dict[str, Any]


class TraceShape(TypedDict):
    """`metatree trace --json`."""

    run: str
    ended: str
    detail: str
    answer: str
    open_questions: list[str]
    usage: UsageShape
    trace: list[EntryShape]


class RunShape(TypedDict):
    """A run in the journal; `ended` is null while it can go on; times are ISO 8601 in UTC."""

    run: str
    machine: str
    questions: list[str]
    ended: str | None
    began_at: str
    updated_at: str


class RunsShape(TypedDict):
    """`metatree runs --json`."""

    runs: list[RunShape]


class QuestionShape(TypedDict):
    """A question that nobody has answered; the time is ISO 8601 in UTC."""

    id: str
    question: str
    run: str
    asked_at: str


class QuestionsShape(TypedDict):
    """`metatree questions --json`."""

    questions: list[QuestionShape]


class CheckShape(TypedDict):
    """One thing that `doctor` looked at."""

    name: str
    ok: bool
    detail: str


class DoctorShape(TypedDict):
    """`metatree doctor --json`."""

    ok: bool
    checks: list[CheckShape]


class PluginShape(TypedDict):
    """One entry point; `error` says why it cannot be used, null when it can."""

    group: str
    name: str
    object: str
    package: str
    version: str
    provides: str
    tools: list[str]
    error: str | None


class PluginsShape(TypedDict):
    """`metatree plugins --json`."""

    plugins: list[PluginShape]


class PermissionShape(TypedDict):
    """A tool that may change something without asking, as it was when somebody said so; the time is ISO 8601 in UTC."""

    tool: str
    title: str
    version: str
    fingerprint: str
    who: str
    at: str


class PermissionsShape(TypedDict):
    """`metatree plugins --permissions --json`; with `--revoke`, those that were taken back."""

    permissions: list[PermissionShape]


class AgendaShape(TypedDict):
    """A production with the tokens that hold, how many of them were not dealt with, and how many are to be removed."""

    production: str
    tokens: list[str]
    to_add: int
    to_remove: int


class RulesShape(TypedDict):
    """`metatree rules --json`; `ended` is `matched` for a program without a schedule, whose `state` is null.

    Facts, tokens and values are in the text form of the rules. `why_not` and `answers` are null when nobody asked.
    """

    ended: str
    detail: str
    state: int | None
    cycles: int
    facts: list[str]
    productions: list[AgendaShape]
    expected: list[str]
    why_not: str | None
    answers: list[dict[str, str]] | None
    trace: list[dict[str, Any]]


def usage_shape(usage: Usage) -> UsageShape:
    """Return what a run has used as JSON."""
    return UsageShape(
        router_calls=usage.router_calls,
        reads=usage.reads,
        model_calls=usage.model_calls,
        tool_calls=usage.tool_calls,
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
        tokens_cached=usage.tokens_cached,
        cost_usd=None if usage.cost_usd is None else float(usage.cost_usd),
        cache_hits=usage.cache_hits,
        failed_attempts=usage.failed_attempts,
        seconds=round(usage.seconds, 3),
    )


def ask_shape(result: SearchResult) -> AskShape:
    """Return an answer with its sources as JSON."""
    return AskShape(
        answer=result.answer,
        answers=[
            AnswerShape(
                question=answer.question,
                answer=answer.answer,
                sources=[SourceShape(node=s.node, title=s.title, quote=s.quote) for s in answer.sources],
            )
            for answer in result.answers
        ],
        open_questions=list(result.open_questions),
        ended=result.ended,
        usage=usage_shape(result.usage),
        run=result.run_id,
    )


def find_shape(result: SearchResult) -> FindShape:
    """Return the nodes that were found as JSON."""
    return FindShape(
        nodes=[_found(node) for node in result.nodes], usage=usage_shape(result.usage), run=result.run_id
    )


def _found(node: NodeRef) -> FoundNodeShape:
    return FoundNodeShape(id=node.id, title=node.title, score=round(node.score, 4), reason=node.reason)


def files_shape(files: list[FileToEdit], usage: Usage) -> FilesShape:
    """Return the files to edit as JSON."""
    return FilesShape(files=[_file_shape(file) for file in files], usage=usage_shape(usage))


def _file_shape(file: FileToEdit) -> FileShape:
    shape = FileShape(
        path=file.path,
        score=round(file.score, 4),
        reason=file.reason,
        definitions=[
            DefinitionShape(name=d.name, start_line=d.start_line, end_line=d.end_line)
            for d in file.definitions
        ],
    )
    if file.source:
        shape |= {"source": file.source, "node": file.node}
    return shape


def trace_shape(result: SearchResult) -> TraceShape:
    """Return a whole trace as JSON."""
    return TraceShape(
        run=result.run_id,
        ended=result.ended,
        detail=result.detail,
        answer=result.answer,
        open_questions=list(result.open_questions),
        usage=usage_shape(result.usage),
        trace=[
            EntryShape(
                step=entry.step,
                frame=entry.frame,
                event=entry.event,
                node=entry.node,
                reason=entry.reason,
                data=_plain(entry.data),
            )
            for entry in result.trace
        ],
    )


def _plain(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping with tuples as lists and dataclasses as mappings, so that json can print it."""

    def plain(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {str(key): plain(item) for key, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [plain(item) for item in value]
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if hasattr(value, "__dataclass_fields__"):
            return plain(asdict(value))
        return str(value)

    return {str(key): plain(value) for key, value in data.items()}


class StoreShape(TypedDict):
    """A file of a tree, and what it would be trusted with; `sources` says what each source does.

    `problem` says why it cannot be accepted, "" where it can; `unnamed` how many there are besides those listed.
    """

    path: str
    trusted: bool
    problem: str
    sources: list[str]
    permissions: list[str]
    memories: int
    authors: list[str]
    runs: int
    users: list[str]
    held: dict[str, int]
    unnamed: dict[str, int]


class TrustShape(TypedDict):
    """`metatree trust --json`."""

    tree: str
    stores: list[StoreShape]
