"""The text of a document by its bytes: from memory, from the cache folder, or from the process that reads documents.

Documents of strangers are read by one process of ours, with a limit of time and memory, which ends when it has nothing
to do. Lost: threads (nothing stops native code), a process for each document (0.2 s each).
"""

from __future__ import annotations

import atexit
import json
import threading
from collections import OrderedDict
from hashlib import blake2b

from metatree._util.cache_folder import cache_part
from metatree._util.secret_text import SHAPES_VERSION
from metatree_memory_tools.documents._converted import CONVERTED
from metatree_memory_tools.documents._document_text import Extracted
from metatree_memory_tools.documents._text_cache import KeptTexts
from metatree_memory_tools.reading.own_process import (
    GRACE_S,
    MEMORY_BYTES,
    OwnProcess,
    ReadingFailed,
)

LIMITS_S = {"pdf": 60.0, "docx": 30.0, "html": 20.0, "man": 20.0} | dict.fromkeys(CONVERTED, 60.0)
"""How long one document may take; of a PDF, what is read by then is kept."""

_MOST_IN_MEMORY = 2


class Extractor:
    """Reads documents in a process of its own, which is started when it is needed. One call at a time.

    Args:
        kept: where texts are kept between processes; None for nowhere.
        limit_s: how long one document may take; None for what its format is allowed.
        grace_s: how much longer the process may live, to hand over what it has.
        memory_bytes: how much memory the process may take, where the system can limit it.
    """

    _main = "from metatree_memory_tools.documents._worker import main; main(int(sys.argv[1]))"

    def __init__(
        self,
        cache: KeptTexts | None = None,
        limit_s: float | None = None,
        grace_s: float = GRACE_S,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self._cache = cache
        self._limit_s = limit_s
        self.reader = OwnProcess(lambda: self._main, memory_bytes, grace_s)
        self._lock = threading.Lock()
        self._recent: OrderedDict[str, Extracted] = OrderedDict()

    def extracted(self, kind: str, version: str, data: bytes, *, secrets: bool = False) -> Extracted:
        """Return the text of a document; what cannot be read has a `problem`. Never raises for what the bytes are.

        Args:
            kind: the format, as `worker.extract` knows it.
            version: another one reads again what is kept.
            data: the file.
            secrets: leave what looks like a secret as it is; else `*` stand in its place.
        """
        with self._lock:
            form = f"{kind}-{version}{'+' if secrets else '-'}{SHAPES_VERSION}"
            key = f"{form}-{blake2b(data, digest_size=16).hexdigest()}"
            result = self._recent.get(key) or (self._cache.get(key) if self._cache else None)
            if result is None:
                result, cacheable = self._ask(kind, data, secrets)
                if cacheable and self._cache:
                    self._cache.put(key, result)
            self._recent[key] = result
            self._recent.move_to_end(key)
            while len(self._recent) > _MOST_IN_MEMORY:
                self._recent.popitem(last=False)
            return result

    def close(self) -> None:
        """End the process, if there is one; another is started when a document is asked for."""
        self.reader.close()

    def _ask(self, kind: str, data: bytes, secrets: bool) -> tuple[Extracted, bool]:
        """Return the text, and whether it is kept: what takes too long is read once, and in part."""
        limit_s = LIMITS_S[kind] if self._limit_s is None else self._limit_s
        try:
            line = self.reader.ask([kind, limit_s, secrets], data, limit_s)
        except ReadingFailed as exc:
            return Extracted(problem=str(exc)), False
        return Extracted.of_json(json.loads(line)), True


_shared: Extractor | None = None
_making = threading.Lock()


def extracted(kind: str, version: str, data: bytes, *, secrets: bool) -> Extracted:
    """Return the text of a document, by the extractor that this process shares; see `Extractor.extracted`."""
    global _shared
    with _making:
        if _shared is None:
            _shared = Extractor(KeptTexts(cache_part("documents")))
            atexit.register(_shared.close)
    return _shared.extracted(kind, version, data, secrets=secrets)
