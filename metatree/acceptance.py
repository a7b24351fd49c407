"""Accepting a store that somebody else made, and taking that back; `metatree.trust` says what it is for."""

from __future__ import annotations

from pathlib import Path

from metatree.errors import UserError
from metatree.store import Store
from metatree.trust import acceptance, check_files, mark_key, sign, signed_facts


def accept(file: Path) -> None:
    """Accept a store that somebody else made, with the sources that it names now.

    Raises:
        UserError: it cannot be read, or there is no place to keep that it was accepted.
    """
    check_files(file)
    with Store.open(file, create=False, trust=True) as store:
        if not store.read_only:
            sign(store)
            return
        facts = signed_facts(store)
    kept = acceptance(file, facts)
    if kept is None:
        raise UserError(
            "there is no home to keep it in: set METATREE_CONFIG_DIR to a folder, or METATREE_TRUST"
        )
    try:
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept.touch(mode=0o600)
    except OSError as exc:
        raise UserError(
            f"cannot write in {str(kept.parent)!r}: {exc.strerror}; set METATREE_CONFIG_DIR to a folder of yours"
        ) from exc


def revoke(file: Path) -> bool:
    """Take this user's marks off a store, and return whether there were any."""
    check_files(file)
    with Store.open(file, create=False, trust=True) as store:
        kept = acceptance(file, signed_facts(store))
        gone = 0 if store.read_only else store.execute("DELETE FROM meta WHERE key = ?", (mark_key(),))
    if kept is not None and kept.exists():
        kept.unlink()
        gone += 1
    return bool(gone)
