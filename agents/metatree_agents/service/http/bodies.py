"""What the routes take and return, as the wire has it; the names are a contract."""

from __future__ import annotations

import json
import re
import unicodedata
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
)

from metatree_agents.service.queue.models import End as EndName
from metatree_agents.service.queue.recommendations import RecommendationType

MAX_TOPIC = 200
MAX_TEXT = 100_000
MAX_TITLE = 200
MAX_PARAGRAPHS = 2_000
MAX_PASSAGES = 100
"""Questions that stayed open, and passages close to them, of one answer."""
MOST_ERROR = 1_000
"""Letters of the error of a router, which an engine tells."""
MAX_NUMBER = 2**53
"""The largest number that every JSON reader keeps as it is."""

# PostgreSQL keeps no text with a NUL.
_NO_NUL = r"^[^\x00]*$"
TopicId = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_TOPIC, pattern=_NO_NUL),
    Field(examples=["backups"]),
]
LeaseName = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=_NO_NUL)]
Name = Annotated[
    str, StringConstraints(min_length=1, max_length=64, pattern=_NO_NUL), Field(examples=["ann"])
]
Text = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_TEXT, pattern=_NO_NUL),
    Field(examples=["How long is a backup kept?"]),
]
Remark = Annotated[str, StringConstraints(max_length=MAX_TEXT, pattern=_NO_NUL)]
Paragraphs = Annotated[
    list[Annotated[str, StringConstraints(max_length=MAX_TEXT)]], Field(max_length=MAX_PARAGRAPHS)
]


def _require_words(text: str) -> str:
    """Refuse a text of blanks and control characters alone, of which nothing could be remembered."""
    if all(char.isspace() or unicodedata.category(char) in ("Cc", "Cf") for char in text):
        raise ValueError("must have a character that can be seen")
    return text


Words = Annotated[Text, AfterValidator(_require_words)]


def _no_text(value: Any) -> Any:
    if isinstance(value, bool | str):
        raise ValueError("must be a number")
    return value


def _no_text_but(digits: str) -> BeforeValidator:
    def check(value: Any) -> Any:
        return value if isinstance(value, str) and re.fullmatch(digits, value) else _no_text(value)

    return BeforeValidator(check)


def _number_or(digits: str, *, least: int) -> WithJsonSchema:
    number = {"type": "integer", "minimum": least, "maximum": MAX_NUMBER}
    return WithJsonSchema({"anyOf": [number, {"type": "string", "pattern": f"^{digits}$"}]})


def _require_json(value: Any) -> Any:
    """Refuse NaN and infinity, which no answer can say again: who claims the query would get an error for ever."""
    json.dumps(value, allow_nan=False)  # a ValueError is what pydantic wants
    return value


JsonObject = Annotated[dict[str, Any], AfterValidator(_require_json)]
LineNumber = Annotated[int, Field(ge=1, le=MAX_NUMBER), BeforeValidator(_no_text)]
HowMany = Annotated[int, Field(ge=1, le=1000), BeforeValidator(_no_text)]
Distance = Annotated[float, Field(ge=0, le=2, allow_inf_nan=False), BeforeValidator(_no_text)]

# The keys of `Queries` are text, so some engines send them back as text.
_POSITIVE, _ANY = "[1-9][0-9]{0,14}", "[0-9]{1,15}"
Seq = Annotated[int, Field(ge=1, le=MAX_NUMBER), _no_text_but(_POSITIVE), _number_or(_POSITIVE, least=1)]
GivenSeq = Annotated[int, Field(ge=0, le=MAX_NUMBER), _no_text_but(_ANY), _number_or(_ANY, least=0)]


class Body(BaseModel):
    """A JSON object; keys that are not known are left alone, as clients of other versions may send more."""

    model_config = ConfigDict(extra="ignore")


class AskableTree(Body):
    """A tree of the service that has a name."""

    Name: str
    Title: str


class AddQuery(Body):
    Topic: TopicId
    User: Name
    Query: Words
    Modifiers: JsonObject = Field(default_factory=dict)
    Model: Annotated[str, StringConstraints(max_length=200, pattern=_NO_NUL), Field(examples=["default"])] = (
        "default"
    )
    Trees: Annotated[list[Name], Field(max_length=100)] | None = None


class LoggedIn(Body):
    User: str
    Role: str


class Added(Body):
    """Where a question stands; with `Searching` in the address whether an engine is connected for it."""

    Topic: str
    Seq: int
    Timestamp: str
    Searching: bool | None = None


class GivenPassage(Body):
    """A passage that comes close to a question that nothing answers; `Lines` are its first and last, from 1.

    One of a document has no lines that a reader of its file could count, but `Pages`, where there are any.
    """

    Question: Remark
    Node: Remark | None = None
    Title: Remark = ""
    Place: Remark = ""
    SaidBy: Remark = ""
    Lines: Annotated[list[LineNumber], Field(min_length=2, max_length=2)] | None = None
    Pages: Annotated[list[LineNumber], Field(min_length=2, max_length=2)] | None = None
    Quote: Remark
    Score: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), BeforeValidator(_no_text)] | None = None
    Tree: Remark | None = None

    def on_wire(self) -> dict[str, Any]:
        """Return it as it is kept and shown; without a tree where trees have no names, and pages where none are."""
        return self.model_dump(exclude={name for name in ("Tree", "Pages") if getattr(self, name) is None})


class Answered(Body):
    """A query with its answer, null while there is none; what follows `Think` is our own.

    `End` is `closest` or `nothing` for a question that stayed open, null when the engine did not say.
    """

    Query: str
    Topic: str
    Seq: int
    Answer: list[str] | None
    Think: list[str] | None
    Status: str
    Sources: list[dict[str, Any]] | None = None
    Asked: list[dict[str, Any]] = Field(default_factory=list)
    End: EndName | None = None
    Open: list[str] = Field(default_factory=list)
    Closest: list[dict[str, Any]] = Field(default_factory=list)
    Notes: list[str] = Field(default_factory=list)


class AddLookup(Body):
    Topic: TopicId
    Seq: Seq
    Fragment: Text
    Count: HowMany = 5
    Threshold: Distance = 1.0


class LookupAdded(Body):
    Fingerprint: str
    Timestamp: str


class LookupsOf(Body):
    Topic: str
    Lookups: list[dict[str, Any]]


class Recommend(Body):
    Topic: TopicId
    OnBehalfOf: Name
    Query: Words
    Fragment: Words
    Comment: Remark = ""
    Type: RecommendationType
    Tree: Name | None = None


class Withdraw(Body):
    """The number of a recommendation, as `POST /api/recommend` answers it."""

    OnBehalfOf: Name
    Number: Seq


class Rename(Body):
    Topic: TopicId
    OnBehalfOf: Name
    Title: Annotated[str, StringConstraints(max_length=MAX_TITLE, pattern=_NO_NUL)]


class Stamped(Body):
    Timestamp: str


class Recommended(Stamped):
    Number: int


class WantedLookup(Body):
    Fragment: str
    Fingerprint: str
    Count: int
    Threshold: float
    Trees: list[str] | None = None


class GiveMatches(Body):
    Fingerprint: Annotated[str, StringConstraints(pattern="^[0-9a-f]{12}$")]
    Matches: Paragraphs


class NewQueries(Body):
    """A batch of one topic, or null; what follows `Queries` is more than is documented."""

    Topic: str | None
    Queries: list[dict[str, str]] | None
    Lease: str | None = None
    LeaseSeconds: float | None = None
    Model: dict[str, str] | None = None
    Modifiers: dict[str, dict[str, Any]] | None = None
    Asked: dict[str, list[dict[str, Any]]] | None = None
    Runs: dict[str, str] | None = None
    Trees: list[str] | None = None


class NameUntil(Body):
    """A name that the database of the service had, and the last recommendation that came under it."""

    Id: str
    Until: int


class NameNow(Body):
    """What tells the database of the service from all others."""

    Id: str
    Before: list[NameUntil]


class GiveAnswer(Body):
    Query: Text
    Topic: TopicId
    Seq: GivenSeq | None = None
    Think: Paragraphs = Field(default_factory=list)
    Answer: Paragraphs
    Sources: Annotated[list[JsonObject], Field(max_length=1000)] = Field(default_factory=list)
    End: EndName | None = None
    Open: Annotated[list[Remark], Field(max_length=MAX_PASSAGES)] = Field(default_factory=list)
    Closest: Annotated[list[GivenPassage], Field(max_length=MAX_PASSAGES)] = Field(default_factory=list)
    Notes: Annotated[list[Remark], Field(max_length=MAX_PASSAGES)] = Field(default_factory=list)


class Problem(Body):
    detail: str


def stamp(at: float) -> str:
    """Return a time as the wire has it: UTC, `YYYY-MM-DDTHH:MM:SS`.

    Example:
        >>> stamp(1742650549.9)
        '2025-03-22T13:35:49'
    """
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def inlined(schema: Any, parts: Any = None) -> Any:
    """Return a JSON schema without references; those of a part do not hold inside a larger document."""
    if isinstance(schema, list):
        return [inlined(each, parts) for each in schema]
    if not isinstance(schema, dict):
        return schema
    parts = schema.get("$defs", parts)
    if "$ref" in schema:
        return inlined(parts[schema["$ref"].rpartition("/")[2]], parts)
    return {name: inlined(value, parts) for name, value in schema.items() if name != "$defs"}
