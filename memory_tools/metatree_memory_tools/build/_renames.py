"""Which file that appeared is one that is gone, under another path."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from metatree_memory_tools.build._index_writer import BuiltFile


class Renames:
    """Pairs files by what they hold; each is paired once, and empty files never."""

    def __init__(self, removed: Iterable[str], known: Mapping[str, BuiltFile]) -> None:
        """Take the paths that are gone, and what was recorded of each known file."""
        self._by_digest: dict[str, list[str]] = {}
        for path in removed:
            was = known[path]
            if was.size and was.digest:
                self._by_digest.setdefault(was.digest, []).append(path)
        self._pairs: list[tuple[str, str]] = []

    def source(self, path: str, digest: str, size: int) -> str | None:
        """Return the path that a file had before, None when it is not known; the pair is remembered."""
        candidates = self._by_digest.get(digest, []) if size else []
        name = path.rpartition("/")[2]
        same_name = [old for old in candidates if old.rpartition("/")[2] == name]
        if same_name:
            old = same_name[0]
        elif len(candidates) == 1:
            old = candidates[0]
        else:
            return None
        candidates.remove(old)
        self._pairs.append((old, path))
        return old

    def folders(self, removed: Collection[str], appeared: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield (old, new) for folders that are gone and whose files are in a folder that appeared."""
        seen: set[str] = set()
        for old, new in self._pairs:
            while "/" in old and "/" in new and old.rpartition("/")[2] == new.rpartition("/")[2]:
                old, new = old.rpartition("/")[0], new.rpartition("/")[0]
                if old in removed and new in appeared and old not in seen:
                    seen.add(old)
                    yield old, new
