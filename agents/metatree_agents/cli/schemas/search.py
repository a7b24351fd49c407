"""The JSON of commands about searches, trees and what is installed."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field, model_validator

from metatree_agents.cli.schemas._basis import BasisOutput
from metatree_agents.cli.schemas._model import Output, Score, Seconds, Time

Run = Annotated[str, Field(validation_alias=AliasChoices("run", "run_id"))]


class UsageOutput(Output):
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
    seconds: Seconds


class SourceOutput(Output):
    """Where an answer comes from: a node and its exact words; `number` is that of the `[1]` in `cited`.

    `place` is the path of the file, or the id of the node; `lines` are the first and last of the quote there, from 1,
    null where a text has none; `pages` are those of the node where its file has pages.
    """

    node: str
    title: str
    quote: str
    number: int
    place: str
    lines: list[int] | None
    pages: list[int] | None


class EarlierOutput(Output):
    """What a source said before, where the answer is from a later one that says otherwise.

    `at` is the day that it is of, as in 2025-03-02, or the version; `place` and `lines` are as those of a source.
    """

    node: str
    title: str
    at: str
    quote: str
    place: str
    lines: list[int] | None


class AnswerOutput(Output):
    """The answer to one question; `cited` is the answer with the numbers of its sources.

    `verified` is false where the words that a model gave for it are in no source. `earlier` has what was said before
    and no longer holds, the latest first.
    """

    question: str
    answer: str
    sources: list[SourceOutput]
    confidence: Score | None
    verified: bool
    cited: str
    earlier: list[EarlierOutput]


class ClosestOutput(Output):
    """A passage that comes close to a question that nothing has answered; `score` is how likely it answers.

    `place` is the path of its file, or the id of its node; `lines` are its first and last there, from 1.
    """

    question: str
    node: str
    title: str
    place: str
    lines: list[int]
    quote: str
    score: Score


class NoteOutput(Output):
    """How a question was read, where that is not as it stands.

    `read_as` is the question with the words corrected that no text has; `language` is its language where no text is in
    it, and `tree_languages` are those of the texts; `unknown` is the name that the question is, where nothing has it.
    What does not apply is empty.
    """

    question: str
    read_as: str
    language: str
    tree_languages: list[str]
    unknown: str


class WishOutput(Output):
    """What somebody wants always, which can apply to the questions: beside what was found, and no part of it.

    `node` is the wish, `source` the turn or the memory that it stands in; `about` is what it is for, empty for
    everything; `what` is `rule` or `preference`. `file` is the file that says so, whoever wrote it; null for what the
    tree was told.
    """

    node: str
    text: str
    what: str
    about: str
    who: str
    at: str
    source: str
    file: str | None


class AskOutput(Output):
    """`metatree ask --json`; `empty` says why there is neither an answer nor a passage that comes close."""

    answer: str
    cited: str
    answers: list[AnswerOutput]
    notes: list[NoteOutput]
    closest: list[ClosestOutput]
    wishes: list[WishOutput]
    open_questions: list[str]
    empty: str
    basis: BasisOutput
    ended: str
    usage: UsageOutput
    run: Run


class FoundNodeOutput(Output):
    """A node that was found; `score` is in [0, 1].

    `path` is that of its file, relative to the source, and `lines` are its first and last there, from 1; both are null
    where there are none.
    """

    id: str
    title: str
    score: Score
    reason: str
    path: str | None
    lines: list[int] | None


class FindOutput(Output):
    """`metatree find --json`; `empty` says why no node was found: what was looked for, and which names are near."""

    nodes: list[FoundNodeOutput]
    wishes: list[WishOutput]
    empty: str
    basis: BasisOutput
    usage: UsageOutput
    run: Run


class DefinitionOutput(Output):
    """A definition inside a file; lines count from 1, both included."""

    name: str
    start_line: int
    end_line: int


class FileOutput(Output):
    """A file to edit; `path` is relative to the source, with `/`; `score` is in [0, 1].

    In a tree of several sources, `source` is the folder that the path is relative to, and `node` the id of the file.
    """

    path: str
    score: Score
    reason: str
    definitions: list[DefinitionOutput]
    source: str = ""
    node: str = ""

    @model_validator(mode="after")
    def _without_source(self) -> FileOutput:
        """Print no source and no node in a tree of one folder, whose files have none."""
        if not self.source:
            self.model_fields_set.difference_update(("source", "node"))
        return self


class FilesOutput(Output):
    """`metatree files --json`; `empty` says why no file was found."""

    files: list[FileOutput]
    empty: str
    basis: BasisOutput
    usage: UsageOutput


class BuiltSourceOutput(Output):
    """One of several sources of a tree; `mount` is the id of its top node; `note` says why it could not be read."""

    mount: str
    type: str
    location: str
    note: str | None


class BuiltOutput(Output):
    """A tree that was built; `kinds` counts its nodes by kind; `sources` lists them unless it is of one folder."""

    source: str
    tree: str
    nodes: int
    kinds: dict[str, int]
    omitted: int
    seconds: Seconds
    sources: list[BuiltSourceOutput] = Field(default_factory=list)


class BuildOutput(Output):
    """`metatree build --json`."""

    trees: list[BuiltOutput]


class NodeOutput(Output):
    """`metatree show --json`; `path` is null for a node that was built from no file or folder.

    `start_line` and `end_line` are null for a node that is no part of a file.
    `children` is null where `--depth` ended the listing and the node has children.
    `content` is the text of the node that was named; it is there with `--content` alone. `links` are the ids of what
    that node links to or imports, `linked_from` of what links to it.
    """

    id: str
    title: str
    description: str
    kind: str
    path: str | None
    start_line: int | None
    end_line: int | None
    children: list[NodeOutput] | None
    content: str = ""
    links: list[str] = Field(default_factory=list)
    linked_from: list[str] = Field(default_factory=list)


class OmissionOutput(Output):
    """Something that was left out of the tree."""

    path: str
    reason: str


class OmittedOutput(Output):
    """`metatree show --omitted --json`."""

    omitted: list[OmissionOutput]


class WishesOutput(Output):
    """`metatree memories --wishes --json`."""

    wishes: list[WishOutput]


class EntryOutput(Output):
    """One decision of a run."""

    step: int
    frame: int
    event: str
    node: str | None
    reason: str
    data: dict[str, Any]


class TraceOutput(Output):
    """`metatree trace --json`."""

    run: Run
    ended: str
    detail: str
    answer: str
    open_questions: list[str]
    usage: UsageOutput
    trace: list[EntryOutput]


class RunOutput(Output):
    """A run in the journal; `ended` is null while it can go on; times are ISO 8601 in UTC."""

    run: Run
    machine: str
    questions: list[str]
    ended: str | None
    began_at: Time
    updated_at: Time


class RunsOutput(Output):
    """`metatree runs --json`."""

    runs: list[RunOutput]


class QuestionOutput(Output):
    """A question that nobody has answered; the time is ISO 8601 in UTC."""

    id: str
    question: str
    run: str
    asked_at: Time


class QuestionsOutput(Output):
    """`metatree questions --json`."""

    questions: list[QuestionOutput]


class CheckOutput(Output):
    """One thing that `doctor` looked at."""

    name: str
    ok: bool
    detail: str


class DoctorOutput(Output):
    """`metatree doctor --json`, and `metatree service check --json` without a backup."""

    ok: bool
    checks: list[CheckOutput]


class PluginOutput(Output):
    """One entry point; `error` says why it cannot be used, null when it can."""

    group: str
    name: str
    object: str
    package: str
    version: str
    provides: str
    tools: list[str]
    error: Annotated[str | None, BeforeValidator(lambda error: error or None)]


class PluginsOutput(Output):
    """`metatree plugins --json`."""

    plugins: list[PluginOutput]


class PermissionOutput(Output):
    """A tool that may change something without asking, as it was when somebody said so; the time is ISO 8601 in UTC."""

    tool: str
    title: str
    version: str
    fingerprint: str
    who: str
    at: str


class PermissionsOutput(Output):
    """`metatree plugins --permissions --json`; with `--revoke`, those that were taken back."""

    permissions: list[PermissionOutput]


class AgendaOutput(Output):
    """A production with the tokens that hold, how many of them were not dealt with, and how many are to be removed."""

    production: str
    tokens: list[str]
    to_add: int
    to_remove: int


class InferredFact(Output):
    """A fact that holds because productions justify it, and the tokens that do."""

    fact: str
    by: list[str]


class RulesOutput(Output):
    """`metatree rules --json`; `ended` is `matched` for a program without a schedule, whose `state` is null.

    Facts, tokens and values are in the text form of the rules. `why_not` and `answers` are null when nobody asked.
    """

    ended: str
    detail: str
    state: int | None
    cycles: int
    facts: list[str]
    inferred: list[InferredFact]
    productions: list[AgendaOutput]
    expected: list[str]
    why_not: str | None
    answers: list[dict[str, str]] | None
    trace: list[dict[str, Any]]


class StoreOutput(Output):
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


class CacheOutput(Output):
    """`metatree cache --json`."""

    folder: str
    bytes: dict[str, int]
    """By the name of the folder inside."""
    cleared: bool


class TrustOutput(Output):
    """`metatree trust --json`."""

    tree: str
    stores: list[StoreOutput]
    settings: list[str] = Field(default_factory=list)
    """The settings of the folder that need to be accepted: the file and whether they are, then each."""
