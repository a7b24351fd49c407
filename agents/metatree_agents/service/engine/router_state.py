"""Whether the router of an engine works: said in the log when that changes, and told to the service."""

from __future__ import annotations

import logging
import re
from typing import Final

from metatree.result import TraceEntry

_log = logging.getLogger("metatree.engine")
_WITH_ERROR: Final = re.compile(
    r"(?s)^(the router failed|the embedded reader reads it, since the model could not|it could not be read"
    r"|no usable answer to \d+ requests in a row): (.*?)(; the embedded one chooses from here)?$"
)


def without_error(reason: str) -> str:
    """Return why a step was taken, without the error of a part: it may name servers that are not an asker's to know.

    Example:
        >>> without_error("the router failed: http://10.1.2.3 cannot be reached; the embedded one chooses from here")
        'the router failed; the embedded one chooses from here'
    """
    return _WITH_ERROR.sub(r"\1\3", reason)


class RouterState:
    """Whether the router works, as the searches of an engine find it."""

    def __init__(self) -> None:
        self.error = ""
        """Its last error; empty while it works."""

    def failed(self, error: str) -> None:
        """Note that it failed; the first time since it worked is said in the log."""
        if not self.error:
            _log.warning("the router fails, and searches go on without it: %s", error)
        self.error = error

    def worked(self) -> None:
        """Note that a search used it, and it did not fail."""
        if self.error:
            _log.warning("the router works again")
        self.error = ""


class RouterUse:
    """What one search finds of the router."""

    def __init__(self, state: RouterState) -> None:
        self._state = state
        self._chose = self._without = False

    def see(self, entry: TraceEntry) -> None:
        """Take a step of the search."""
        if entry.event == "without_model":
            self._without = True
        elif entry.event == "route" and entry.data.get("by") == "nobody":
            self._without = True
            error = _WITH_ERROR.match(entry.reason)
            self._state.failed(error[2] if error else entry.reason)
        elif entry.event == "route" and entry.data.get("by") == "router":
            self._chose = True

    def ended(self) -> None:
        """Note how the search fared: what an embedded router chose in place of one that failed says nothing of it."""
        if self._chose and not self._without:
            self._state.worked()
