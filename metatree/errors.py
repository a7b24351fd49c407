"""Every error that metatree raises on purpose, as one tree.

    MetatreeError
    ├── UserError              fix the input and call again
    │   ├── UnknownNode        no node has this id (`node_id`, `suggestions`)
    │   ├── BrokenStore        a file is not a metatree store, or is damaged (`path`, `reason`)
    │   ├── UntrustedStore     somebody else made this store: `metatree trust` accepts it (`path`)
    │   ├── RunExists          this `run_id` was used before: resume it (`run_id`)
    │   ├── UnknownRun         no run has this id (`run_id`)
    │   ├── UnknownItem        a blackboard has no such item (`item_id`)
    │   ├── BadItem            a blackboard cannot hold this item or image
    │   └── RefusedAddress     an address may not be fetched from
    ├── TransientError         the same call may work later (`retry_after_s`)
    │   └── RouterUnavailable  a model could not be reached
    ├── BadModelAnswer         a router, reader or tool caller answered out of form; it gets the error, is asked again
    ├── StaleSource            a source changed after its node was built: refresh the tree (`node_id`)
    ├── FetchFailed            what is at an address could not be fetched (`url`, `status`)
    ├── ToolFailed             a tool raised, timed out or said too much; the search sees it as a result
    ├── Conflict               a blackboard or an item changed meanwhile (`expected`, `found`): read and try again
    ├── StorageFull            a file system has no room left (`path`, `free_bytes`): make room and call again
    ├── StoreReplaced          a store was deleted or replaced while it was open (`path`): open it again
    ├── LeaseLost              another process is at work on this run (`run_id`)
    └── MissingExtra           an optional package is not installed (`extra`)

Errors store their fields and do nothing else. They survive pickling.
"""

from __future__ import annotations

from typing import Any


class MetatreeError(Exception):
    """The root of all errors raised by metatree."""

    def __init__(self, message: str, **data: Any) -> None:
        super().__init__(message)
        self.__dict__.update(data)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), str(self), self.__dict__))


def _rebuild(cls: type[MetatreeError], message: str, data: dict[str, Any]) -> MetatreeError:
    error = cls.__new__(cls)
    MetatreeError.__init__(error, message, **data)
    return error


class UserError(MetatreeError):
    """The input cannot be used as it is; the message says what to do."""


class UnknownNode(UserError):
    """No node of the tree has this id."""

    node_id: str
    suggestions: tuple[str, ...]

    def __init__(self, node_id: str, *, suggestions: tuple[str, ...] = ()) -> None:
        near = ", ".join(map(repr, suggestions))
        hint = f"; did you mean {near}?" if near else "; `metatree find` looks for it by words"
        super().__init__(f"no node {node_id!r} in this tree{hint}", node_id=node_id, suggestions=suggestions)


class BrokenStore(UserError):
    """A file is not a metatree store, is damaged, or was written by a newer version."""

    path: str
    reason: str
    """`damaged`, `foreign` (a file of another program), `newer` (written by a newer version), or `begun` (an index
    whose first build got nowhere)."""

    def __init__(self, message: str, *, path: str, reason: str = "damaged") -> None:
        super().__init__(message, path=path, reason=reason)


class UntrustedStore(UserError):
    """A store was made by somebody else, or elsewhere, and was not accepted; see `metatree.storage.trust`."""

    path: str

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(message, path=path)


class RunExists(UserError):
    """A run with this id is already in the journal."""

    run_id: str

    def __init__(self, run_id: str) -> None:
        super().__init__(f"run {run_id!r} exists: use resume({run_id!r}) or another run_id", run_id=run_id)


class UnknownRun(UserError):
    """The journal holds no run with this id."""

    run_id: str

    def __init__(self, run_id: str) -> None:
        super().__init__(f"no run {run_id!r} in this journal; `metatree runs` lists them", run_id=run_id)


class UnknownItem(UserError):
    """The blackboard has no item with this id, or none that may be seen from here."""

    item_id: str

    def __init__(self, item_id: str) -> None:
        super().__init__(
            f"no item {item_id!r} on this board, or none that may be seen from here", item_id=item_id
        )


class BadItem(UserError):
    """A blackboard cannot hold this item or image; the message says what is wrong with which value."""


class RefusedAddress(UserError):
    """An address may not be fetched from: its scheme, its host or the address it resolves to is not allowed."""


class FetchFailed(MetatreeError):
    """What is at an address could not be fetched: no answer, an error, too much, too late, or of no use."""

    url: str
    status: int | None

    def __init__(self, message: str, *, url: str, status: int | None = None) -> None:
        super().__init__(message, url=url, status=status)


class TransientError(MetatreeError):
    """The same call may succeed later."""

    retry_after_s: float | None

    def __init__(self, message: str, *, retry_after_s: float | None = None, **data: Any) -> None:
        super().__init__(message, retry_after_s=retry_after_s, **data)


class RouterUnavailable(TransientError):
    """A model behind a router, reader or tool caller could not be reached."""


class NotWorthAsking(MetatreeError):
    """A model was wrong too often to be asked: the embedded parts do its work."""


class BadModelAnswer(MetatreeError):
    """An answer was out of form; the message is shown to the model when it is asked again."""


class StaleSource(MetatreeError):
    """A source changed after its node was built, so its line ranges may be wrong."""

    node_id: str

    def __init__(self, node_id: str) -> None:
        super().__init__(
            f"the source of {node_id!r} changed after the tree was built: refresh the tree", node_id=node_id
        )


class ToolFailed(MetatreeError):
    """A tool raised, timed out, or returned what it may not."""


class Conflict(MetatreeError):
    """A conditional write came too late: what it was made from has changed."""

    expected: int | None
    found: int | None

    def __init__(self, message: str, *, expected: int | None = None, found: int | None = None) -> None:
        super().__init__(message, expected=expected, found=found)


class StorageFull(MetatreeError):
    """There is no room left where a file of a tree, a journal or a board lies; what was kept before is kept."""

    path: str
    free_bytes: int | None
    """What is free on its file system; None when that is not known."""

    def __init__(self, message: str, *, path: str, free_bytes: int | None = None) -> None:
        super().__init__(message, path=path, free_bytes=free_bytes)


class StoreReplaced(MetatreeError):
    """A store was deleted, moved or replaced while it was open, so nothing that is written to it would be kept."""

    path: str

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(message, path=path)


class LeaseLost(MetatreeError):
    """Another process holds this run, so nothing may be written to it from here."""

    run_id: str

    def __init__(self, run_id: str) -> None:
        super().__init__(
            f"another process is at work on run {run_id!r}: wait until it is done, or cancel it there",
            run_id=run_id,
        )


class MissingExtra(MetatreeError):
    """An optional package is needed and not installed."""

    extra: str

    def __init__(self, extra: str, *, what: str) -> None:
        super().__init__(
            f"{what} needs an extra: pip install 'metatree-memory[{extra}]' (in a clone: '.[{extra}]')",
            extra=extra,
        )
