"""What the routes take and return, as the wire has it; the names are a contract."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

MAX_TOPIC = 200
MAX_TEXT = 100_000
MAX_PARAGRAPHS = 2_000

TopicId = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TOPIC)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)]
Paragraphs = Annotated[
    list[Annotated[str, StringConstraints(max_length=MAX_TEXT)]], Field(max_length=MAX_PARAGRAPHS)
]
Seq = Annotated[int, Field(ge=1, le=2**53)]


class Body(BaseModel):
    """A JSON object; keys that are not known are left alone, as clients of other versions may send more."""

    model_config = ConfigDict(extra="ignore")


class AddQuery(Body):
    Topic: TopicId
    User: Name
    Query: Text
    Modifiers: dict[str, Any] = Field(default_factory=dict)
    Model: Annotated[str, StringConstraints(max_length=200)] = "default"


class Added(Body):
    Topic: str
    Seq: int
    Timestamp: str


class Answered(Body):
    """A query with its answer, null while there is none; `Status`, `Sources` and `Asked` are our own."""

    Query: str
    Topic: str
    Seq: int
    Answer: list[str] | None
    Think: list[str] | None
    Status: str
    Sources: list[dict[str, Any]] | None = None
    Asked: list[dict[str, Any]] = Field(default_factory=list)


class AddLookup(Body):
    Topic: TopicId
    Seq: Seq
    Fragment: Text
    Count: Annotated[int, Field(ge=1, le=1000)] = 5
    Threshold: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] = 1.0


class LookupAdded(Body):
    Fingerprint: str
    Timestamp: str


class LookupsOf(Body):
    Topic: str
    Lookups: list[dict[str, Any]]


class Recommend(Body):
    Topic: TopicId
    OnBehalfOf: Name
    Query: Text
    Fragment: Text
    Comment: Annotated[str, StringConstraints(max_length=MAX_TEXT)] = ""
    Type: Literal[
        "Suggest Improvement",
        "Promote Answer",
        "Make Correction",
        "Add Missing Info",
        "Clarify Phrasing",
        "Flag as Off Topic",
    ]


class Stamped(Body):
    Timestamp: str


class WantedLookup(Body):
    Fragment: str
    Fingerprint: str
    Count: int
    Threshold: float


class GiveMatches(Body):
    Fingerprint: Annotated[str, StringConstraints(pattern="^[0-9a-f]{12}$")]
    Matches: Paragraphs


class NewQueries(Body):
    """A batch of one topic, or null; `Lease`, `Model`, `Modifiers` and `Asked` are more than is documented."""

    Topic: str | None
    Queries: list[dict[str, str]] | None
    Lease: str | None = None
    Model: dict[str, str] | None = None
    Modifiers: dict[str, dict[str, Any]] | None = None
    Asked: dict[str, list[dict[str, Any]]] | None = None


class GiveAnswer(Body):
    Query: Text
    Topic: TopicId
    Seq: Annotated[int, Field(ge=0, le=2**53)] | None = None
    Think: Paragraphs = Field(default_factory=list)
    Answer: Paragraphs
    Sources: Annotated[list[dict[str, Any]], Field(max_length=1000)] = Field(default_factory=list)


class Problem(Body):
    detail: str


def stamp(at: float) -> str:
    """Return a time as the wire has it: UTC, `YYYY-MM-DDTHH:MM:SS`.

    Example:
        >>> stamp(1742650549.9)
        '2025-03-22T13:35:49'
    """
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S")
