"""Ids and kinds of nodes that one room makes and another looks for."""

from __future__ import annotations

from typing import Final

NOTED_CONVERSATIONS: Final = "conversations:"
"""Id of the node that the conversations which agents note lie below."""

HISTORY_KIND: Final = "history"
"""Kind of the node of a file's history."""

HISTORY_SUFFIX: Final = "::@history"
"""What the id of a file's history ends in; no name in code begins with `@`."""
