"""This user's key, which is kept outside of all trees, and what is signed with it.

It is where `METATREE_CONFIG_DIR` says, by default in `metatree` in the user's folder for settings.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import logging
import os
import secrets
import stat
import sys
from functools import lru_cache
from pathlib import Path
from typing import Final

from metatree._util.cache_folder import named_folder
from metatree._util.private import private_folder, publish
from metatree.errors import UserError

KEY_BYTES: Final = 32
_log = logging.getLogger("metatree")


def config_folder() -> Path | None:
    """Return the folder of this user's settings, None where there is no home."""
    own = named_folder("METATREE_CONFIG_DIR")
    if own is not None:
        return own
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if not home.is_absolute():  # it would be below the folder that is current
        return None
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or home / "AppData" / "Roaming") / "metatree"
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(folder) if folder.startswith("/") else home / ".config") / "metatree"


def user_key() -> bytes:
    """Return this user's key of 32 bytes, made at the first call.

    Where it can be kept nowhere it is good for this process, so what was built before is built again.
    """
    folder = config_folder()
    return _process_key() if folder is None else _stored_key(folder)


@lru_cache(maxsize=1)
def _process_key() -> bytes:
    if config_folder() is None:
        _log.warning(
            "this user has no home to keep a key in, so trees that are made now are not known again: set"
            " METATREE_CONFIG_DIR to a folder, or name theirs in METATREE_TRUST"
        )
    return secrets.token_bytes(KEY_BYTES)


@lru_cache(maxsize=8)
def _stored_key(folder: Path) -> bytes:
    file = folder / "trust.key"
    try:
        private_folder(folder)
        if not file.exists():
            _make_key(file)
        state = file.stat()
        key = file.read_bytes()
    except OSError as exc:
        _log.warning(
            "cannot keep a key in %s (%s), so trees that are made now are not known again: set METATREE_CONFIG_DIR"
            " to a folder that can be written",
            folder,
            exc.strerror,
        )
        return _process_key()
    if hasattr(os, "getuid") and state.st_uid not in (os.getuid(), 0):
        raise UserError(
            f"the key {str(file)!r} belongs to another user: remove it, or set METATREE_CONFIG_DIR to a folder of yours"
        )
    if len(key) != KEY_BYTES:
        raise UserError(
            f"the key {str(file)!r} is damaged: delete it, then accept your trees with `metatree trust`"
        )
    if os.name == "posix" and stat.S_IMODE(state.st_mode) & 0o077:
        with contextlib.suppress(OSError):
            file.chmod(0o600)
    return key


def _make_key(file: Path) -> None:
    """Write a key; of several processes that do so at the same time one is first, and all use that one."""
    part = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(secrets.token_bytes(KEY_BYTES))
            stream.flush()
            os.fsync(stream.fileno())
        publish(part, file)
    finally:
        part.unlink(missing_ok=True)


def signature(what: str, content: bytes) -> str:
    """Return this user's mark for something that is no store, such as an export; `what` says the kind of thing."""
    return hmac.digest(user_key(), f"{what}:".encode() + content, hashlib.sha256).hex()
