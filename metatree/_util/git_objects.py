"""Reading the objects of a repository of git without writing any there."""

from __future__ import annotations

import os
from pathlib import Path


def borrow(own: Path, objects: Path) -> None:
    """Have git read the objects of a repository through a folder of ours, which takes those that it writes.

    It writes some where an index is sparse, through whatever links lie in the repository.
    """
    (own / "info").mkdir(parents=True)
    # In quotes, in which git reads it whatever is in the path (gitrepository-layout).
    name = os.fsencode(objects).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    (own / "info" / "alternates").write_bytes(b'"' + name + b'"\n')
