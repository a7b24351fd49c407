"""The form of an archive: its members, and a line of JSON for each thing in them.

What looks like a secret is taken out by shape, in every text of every row; memories that are kept only warn.

Lost: a copy of the SQLite file (its free pages hold what was deleted, it binds the reader to one schema, and merging
reads rows anyway).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

from metatree.errors import UserError
from metatree.notes.feedback import FLAG
from metatree.storage.user_key import signature

FORMAT: Final = "metatree-memory"
VERSION: Final = 1
"""Raised when an older metatree could not read the file. Members and fields that are not known are passed over."""

MANIFEST: Final = "manifest.json"
LONGEST_MANIFEST: Final = 1_000_000
IMAGES: Final = "images/"
MEMBERS: Final = (
    "nodes",
    "overrides",
    "links",
    "facts",
    "runs",
    "journal",
    "mail",
    "calls",
    "boards",
    "items",
    "images",
    "rule_facts",
    "rule_tokens",
    "permissions",
)
"""Each is `NAME.jsonl`."""
MAX_LINE: Final = 64 * 1024 * 1024
_MOST_VALUES: Final = 3_000_000
"""Each takes up to a hundred times what it takes in a line; long texts have far fewer commas and brackets."""
_SEPARATORS: Final = (b",", b"[", b"{")

LEFT_OUT_TABLES: Final = frozenset(
    {"file", "omission", "rename", "gone", "board_waiter", "schedule", "sqlite_sequence"}
    | {"history_commit", "history_file", "history_name", "history_touch"}
)
"""Tables of a memory store that are not exported: of the built layer, or of this machine and this moment."""
EXPORTED_TABLES: Final = frozenset(
    {
        "meta",
        "node",
        "content",
        "override",
        "link",
        "run",
        "journal",
        "mail",
        "call",
        "board",
        "item",
        "image",
        "fact",
    }
    | {"rule_token"}
)
PERMISSION_FACTS: Final = "permission:"
SHARED_FACTS: Final = "shared-memory:"
"""How far a memory is in sync with that of a service."""
SHAREABLE_FACTS: Final = (FLAG, "files:")
"""How the keys of facts begin that are carried, and taken: what people flagged, and how lists of files are cut.

Any other is of one place alone, or says what may be read and done there.
"""

HERE: Final = ":this tree:"
"""Stands in a journal for the path of the tree, and of its memory, which is another one elsewhere."""


def mark_of(manifest: Mapping[str, Any]) -> str:
    """Return the mark that this user's key gives an export: over its manifest, which has a digest of each member.

    Lost: a signature that others can check, with a public key (whom to believe is no question of whose file it is),
    and a mark over the bytes of the zip (what packs it again would make it another's).
    """
    said = {key: value for key, value in manifest.items() if key != "mark"}
    return signature("export", json.dumps(said, sort_keys=True).encode())


def line_of(row: dict[str, Any]) -> bytes:
    """Return a row as a line."""
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"), default=_bytes).encode(
        "utf-8", "surrogatepass"
    )


def checked_line(line: bytes) -> bytes:
    """Return a line that can be read as JSON in a few hundred megabytes.

    Raises:
        UserError: it is too long, or has too many values.
    """
    if len(line) > MAX_LINE:
        raise UserError("the line is too long")
    if len(line) > _MOST_VALUES and sum(map(line.count, _SEPARATORS)) > _MOST_VALUES:
        raise UserError("it has too many values")
    return line


def row_of(line: bytes) -> dict[str, Any]:
    """Return the row of a line.

    Raises:
        UserError: it is no JSON object.
    """
    checked_line(line)
    try:
        row = json.loads(line.decode("utf-8", "surrogatepass"), object_hook=_plain)
    except (ValueError, RecursionError) as exc:
        raise UserError(f"no JSON: {exc}") from exc
    if not isinstance(row, dict):
        raise UserError("no JSON object")
    return row


def with_places(body: Any, tree: Mapping[str, str | None], board: Mapping[str, str | None]) -> Any:
    """Return the first record of a run with other paths: of the tree, and of the file of its board.

    Args:
        body: the record; what has no such paths is returned as it is.
        tree: path of the tree -> the one to put there.
        board: the same for the board.
    """
    given = body.get("given") if isinstance(body, dict) else None
    if not isinstance(given, dict):
        return body
    given = dict(given)
    if isinstance(path := given.get("tree"), str):
        given["tree"] = tree.get(path, path)
    place = given.get("board")
    if isinstance(place, dict) and isinstance(path := place.get("path"), str):
        given["board"] = {**place, "path": board.get(path, path)}
    return {**body, "given": given}


def _bytes(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    raise TypeError(f"JSON cannot hold {type(value).__name__}")


def _plain(value: dict[str, Any]) -> Any:
    if value.keys() == {"base64"} and isinstance(value["base64"], str):
        return base64.b64decode(value["base64"])
    return value
