"""`metatree cache`: what is kept that can be made again, and clearing it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer

from metatree._util.cache_folder import cache_folder
from metatree.errors import UserError
from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FOUND

PARTS: Final = {
    "documents": "texts of PDF, HTML and Word files",
    "answers": "answers of models",
    "servers": "what servers of models can do",
    "copies": "copies of the trees of services",
}
"""The folders in the cache, and what is in each. Nothing else is cleared: METATREE_CACHE_DIR may name any folder."""


def cache(
    clear: Annotated[
        bool, typer.Option("--clear", help="Delete it; it is made again when it is needed.")
    ] = False,
    json: options.Json = False,
) -> int:
    """Say where what can be made again is kept, and how much it takes; --clear deletes it.

    Trees are not in it: each is in the .metatree of its folder, with what was remembered.

    \b
    Example: metatree cache --clear
    """
    folder = cache_folder()
    parts = {name: _bytes(folder / name) for name in PARTS if (folder / name).is_dir()}
    if links := [folder / name for name in parts if (folder / name).is_symlink()]:
        raise UserError(f"{str(links[0])!r} is a link, and is not used: remove it")
    if clear:
        for name in parts:
            shutil.rmtree(folder / name)
    if json:
        output.write_json("cache", {"folder": str(folder), "bytes": parts, "cleared": clear})
        return FOUND
    lines = [f"{output.visible(str(folder))}: {_megabytes(sum(parts.values()))}"]
    lines += [f"  {name:10} {_megabytes(size):>9}  {PARTS[name]}" for name, size in parts.items()]
    output.write([*lines, *(["cleared"] if clear else [])])
    return FOUND


def _bytes(folder: Path) -> int:
    """Return what the files in a folder take; links are not followed."""
    return sum(_sizes(folder))


def _sizes(folder: Path) -> Iterator[int]:
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                yield (Path(where) / name).lstat().st_size
            except OSError:  # deleted meanwhile
                continue


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
