"""Conversations as memory: sessions and turns, with dates and speakers, from exports and from an agent's own talk."""

from __future__ import annotations

from metatree_memory_tools.conversations._log import ConversationLog
from metatree_memory_tools.conversations._model import Turn

__all__ = ["ConversationLog", "Turn"]
