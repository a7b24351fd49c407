"""The JSON that the commands print, as types; docs/json.md is generated from them."""

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


class SayingShape(TypedDict):
    """One time that something was said; the time is ISO 8601 in UTC, `source` null when it was not told."""

    who: str
    at: str
    source: str | None


class MemoryShape(TypedDict):
    """A memory, with the node that it lies under and each time that it was said."""

    id: str
    title: str
    text: str
    parent: str
    said: list[SayingShape]


class RememberShape(TypedDict):
    """`metatree remember --json`; `known` tells that the text was remembered before."""

    node: MemoryShape
    why: str
    known: bool
    warnings: list[str]


class MemoriesShape(TypedDict):
    """`metatree memories --json`."""

    memories: list[MemoryShape]


class FlagShape(TypedDict):
    """A flag: what a person says against a node for a question."""

    id: str
    node: str
    question: str
    why: str
    who: str
    source: str
    at: str


class FlagsShape(TypedDict):
    """`metatree memories --flags --json`."""

    flags: list[FlagShape]


class ForgetShape(TypedDict):
    """`metatree forget --json`; `undo` holds what `metatree remember` needs to bring it back."""

    forgotten: list[str]
    undo: dict[str, str | None]


class ExportShape(TypedDict):
    """`metatree export --json`; `counts` has the number of each kind of thing, `left_out` names tables."""

    file: str
    bytes: int
    counts: dict[str, int]
    secrets_left_out: int
    left_out: list[str]


class ConflictShape(TypedDict):
    """Something that the tree and the file say differently, and what was kept."""

    what: str
    id: str
    kept: str


class ImportShape(TypedDict):
    """`metatree import --json`."""

    added: dict[str, int]
    known: dict[str, int]
    conflicts: list[ConflictShape]
    permissions_left_out: int


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


class UserAddedShape(TypedDict):
    """`metatree users add --json`; the secret is shown this once."""

    name: str
    role: str
    secret: str


class UserLoginShape(TypedDict):
    """`metatree users login --json`; `code` is what the link has behind `#code=`, for so many seconds, once."""

    name: str
    link: str
    code: str
    seconds: int


class UserShape(TypedDict):
    """Somebody who may call the service; `role` is `frontend`, `engine`, `user` or `admin`."""

    name: str
    role: str


class UsersShape(TypedDict):
    """`metatree users list --json`."""

    users: list[UserShape]


class KeyAddedShape(TypedDict):
    """`metatree users key --json`; the key is shown this once."""

    name: str
    key: str


class KeyShape(TypedDict):
    """An API key by its id; times are UTC, and null for one that was never used."""

    id: str
    name: str
    made: str
    used: str | None


class KeysShape(TypedDict):
    """`metatree users keys --json`."""

    keys: list[KeyShape]


class QueuedShape(TypedDict):
    """A query that is not answered; `status` is `Open`, `Pending`, `Waiting` (for a person) or `Failed`, `engine` who
    has or had it.
    """

    topic: str
    seq: int
    query: str
    owner: str
    status: str
    attempts: int
    asked: str
    engine: str | None


class LeaseShape(TypedDict):
    """A topic that an engine has; `ended` when it has not kept its lease, and the next engine gets the topic."""

    topic: str
    engine: str
    since: str | None
    until: str
    ended: bool


class SeenShape(TypedDict):
    """A user, and when it was last seen, to the minute."""

    name: str
    role: str
    added: str
    last_seen: str | None
    keys: int


class ServiceShape(TypedDict):
    """`metatree service status --json`; times are UTC, queries oldest first and at most 1,000."""

    at: str
    open: int
    pending: int
    waiting: int
    failed: int
    oldest_open_s: float
    queries: list[QueuedShape]
    leases: list[LeaseShape]
    users: list[SeenShape]


class BackupShape(TypedDict):
    """`metatree backup --json` and `restore --json`: the file, and the number of rows of each table in it."""

    file: str
    made: str
    bytes: int
    schema: int
    tables: dict[str, int]
    memory_bytes: int | None


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


def service_shape(overview: Mapping[str, Any]) -> ServiceShape:
    """Return the administrator's overview as the command line has it."""
    return ServiceShape(
        at=overview["At"],
        open=overview["Open"],
        pending=overview["Pending"],
        waiting=overview["Waiting"],
        failed=overview["Failed"],
        oldest_open_s=overview["OldestOpenSeconds"],
        queries=[
            QueuedShape(
                topic=query["Topic"],
                seq=query["Seq"],
                query=query["Query"],
                owner=query["Owner"],
                status=query["Status"],
                attempts=query["Attempts"],
                asked=query["Asked"],
                engine=query["Engine"],
            )
            for query in overview["Queries"]
        ],
        leases=[
            LeaseShape(
                topic=lease["Topic"],
                engine=lease["Engine"],
                since=lease["Since"],
                until=lease["Until"],
                ended=lease["Ended"],
            )
            for lease in overview["Leases"]
        ],
        users=[
            SeenShape(
                name=user["Name"],
                role=user["Role"],
                added=user["Added"],
                last_seen=user["LastSeen"],
                keys=user["Keys"],
            )
            for user in overview["Users"]
        ],
    )
