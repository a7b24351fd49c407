"""The JSON of `metatree service`."""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices, AliasGenerator, ConfigDict, Field
from pydantic.alias_generators import to_pascal

from metatree_agents.cli.schemas._model import Output

# The administrator's overview names its fields as the wire of the service does: `LastSeen`.
_WIRE = ConfigDict(
    alias_generator=AliasGenerator(validation_alias=to_pascal), validate_by_name=True, validate_by_alias=True
)


class UserAddedOutput(Output):
    """`metatree service users add --json`; the secret is shown this once."""

    name: str
    role: str
    secret: str


class UserLoginOutput(Output):
    """`metatree service users login --json`; `code` is what the link has behind `#code=`, for so many seconds, once."""

    name: str
    link: str
    code: str
    seconds: int


class UserOutput(Output):
    """Somebody who may call the service; `role` is `frontend`, `engine`, `user` or `admin`."""

    name: str
    role: str


class UsersOutput(Output):
    """`metatree service users list --json`."""

    users: list[UserOutput]


class NamedTreeOutput(Output):
    """A tree of a service; `may` are those who may ask it besides administrators: names, `group:NAME`, `everybody`."""

    name: str
    title: str
    may: list[str]


class TreesOutput(Output):
    """`metatree service trees list --json`; `groups` has the members of each."""

    trees: list[NamedTreeOutput]
    groups: dict[str, list[str]]


class ServiceAnswerOutput(Output):
    """`metatree ask --service --json`: what `check-query` of the service says (docs/service.md).

    Each source, passage and question that is asked has the names of the wire (`Node`, `SaidBy`) and the same in small
    letters (`node`, `said_by`), as `ask --json` has them; a source and a passage also have `place`, and `link`, where
    the node is on the page. `cited` is the answer with the numbers of its sources; `notes` say how the question was
    read, where that is not as it stands.
    """

    topic: str
    seq: int
    status: str
    question: str
    answer: list[str]
    cited: str
    end: str | None
    open: list[str]
    notes: list[str]
    sources: list[dict[str, Any]]
    closest: list[dict[str, Any]]
    asked: list[dict[str, Any]]


class KeyAddedOutput(Output):
    """`metatree service keys add --json`; the key is shown this once."""

    name: str
    key: str


class KeyOutput(Output):
    """An API key by its id, and what it is for; times are UTC, and null for one that was never used."""

    id: str
    name: str
    label: str
    made: str
    used: str | None


class KeysOutput(Output):
    """`metatree service keys list --json`."""

    keys: list[KeyOutput]


class QueuedOutput(Output):
    """A query that is not answered; `status` is `Open`, `Pending`, `Waiting` (for a person) or `Failed`, `engine` who
    has or had it.
    """

    model_config = _WIRE

    topic: str
    seq: int
    query: str
    owner: str
    status: str
    attempts: int
    asked: str
    engine: str | None


class LeaseOutput(Output):
    """A topic that an engine has; `ended` when it has not kept its lease, and the next engine gets the topic."""

    model_config = _WIRE

    topic: str
    engine: str
    since: str | None
    until: str
    ended: bool


class SeenOutput(Output):
    """A user, and when it was last seen, to the minute."""

    model_config = _WIRE

    name: str
    role: str
    added: str
    last_seen: str | None
    keys: int


class EngineOutput(Output):
    """An engine: how many topics it has, and whether it is connected."""

    model_config = _WIRE

    name: str
    topics: int
    last_seen: str | None
    connected: bool


class ServiceOutput(Output):
    """`metatree service queue status --json`; times are UTC, queries oldest first and at most 1,000."""

    model_config = _WIRE

    at: str
    open: int
    pending: int
    waiting: int
    failed: int
    oldest_open_s: float = Field(validation_alias="OldestOpenSeconds")
    queries: list[QueuedOutput]
    leases: list[LeaseOutput]
    users: list[SeenOutput]
    engines: list[EngineOutput]


class BackupOutput(Output):
    """`metatree service backup --json`, `check`, `restore`: the file, and the number of rows of each table.

    `memories` are the sizes of the memories in it by the names of their trees, "" for one without a name.
    """

    file: str
    made: str = Field(validation_alias=AliasChoices("made", "made_at"))
    bytes: int
    # `BaseModel.schema` is a function.
    schema_version: int = Field(validation_alias="schema", serialization_alias="schema")
    tables: dict[str, int]
    memory_bytes: int | None
    memories: dict[str, int]
