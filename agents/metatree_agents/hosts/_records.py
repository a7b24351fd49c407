"""What was written into the files of hosts, and copies of what they held before, in the user's own folder of state.

What is read back is written into those files again, so it must be this user's: the folder of state may be named below a
checkout. The records carry the user's mark, and a copy has its checksum in its name.
"""

from __future__ import annotations

import hmac
import json
import secrets
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from metatree._util.cache_folder import xdg_folder
from metatree._util.private import private_folder, write_whole
from metatree.storage.user_key import signature


class Record(BaseModel):
    """A file that was written."""

    hosts: list[str]
    """Those that it was written for; it goes when the last one is taken back."""
    written: str
    """What it held then, as a checksum."""
    restorable: bool = True
    """Whether what it held before is known: not where it was changed between two writes."""
    copy_name: str = ""
    """File of the copy; empty where there was no file."""
    folders: list[str] = Field(default_factory=list)
    """Folders that were made for it, the deepest last."""


class Records:
    """The records, by the path of the file; kept as one JSON file with a mark, which its owner alone may read."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or _state_folder()
        self._file = self.folder / "files.json"

    def all(self) -> dict[str, Record]:
        """Return all records; those that cannot be read are none, and entries are then taken out of their files."""
        try:
            kept = json.loads(self._file.read_text(encoding="utf-8"))
            if not hmac.compare_digest(ascii(kept["mark"]), ascii(_mark(kept["files"]))):
                return {}
            return {path: Record.model_validate(row) for path, row in kept["files"].items()}
        except (OSError, ValueError, ValidationError, AttributeError, KeyError, TypeError):
            return {}

    def get(self, path: Path) -> Record | None:
        return self.all().get(str(path))

    def put(self, path: Path, record: Record | None) -> None:
        """Keep the record of a file, or drop it with its copy."""
        rows = self.all()
        old = rows.pop(str(path), None)
        if record is not None:
            rows[str(path)] = record
        private_folder(self.folder)
        files = {key: row.model_dump() for key, row in sorted(rows.items())}
        text = json.dumps({"mark": _mark(files), "files": files}, indent=2)
        write_whole(self._file, text.encode(), mode=0o600)
        if old is not None and old.copy_name and (record is None or record.copy_name != old.copy_name):
            with suppress(OSError):
                (self.folder / old.copy_name).unlink()

    def keep(self, path: Path, data: bytes) -> str:
        """Keep a copy and return its name."""
        private_folder(self.folder)
        name = f"{checksum(str(path).encode())[:12]}-{secrets.token_hex(4)}-{checksum(data)[:32]}-{path.name}"
        write_whole(self.folder / name, data, mode=0o600)
        return name

    def copy(self, record: Record) -> bytes | None:
        """Return what a file held before; None where there was none.

        Raises:
            OSError: the copy is gone, or is not what was kept.
        """
        if not record.copy_name:
            return None
        data = (self.folder / record.copy_name).read_bytes()
        if checksum(data)[:32] not in record.copy_name:
            raise OSError(f"{record.copy_name!r} is not what was kept")
        return data


def _mark(files: dict[str, Any]) -> str:
    return signature("hosts", json.dumps(files, sort_keys=True).encode())


def checksum(data: bytes) -> str:
    return sha256(data).hexdigest()


def _state_folder() -> Path:
    return xdg_folder("XDG_STATE_HOME", ".local/state") / "metatree" / "hosts"
