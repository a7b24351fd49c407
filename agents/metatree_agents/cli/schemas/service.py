"""The JSON that the commands for the service print, as types; docs/json.md is generated from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict


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
