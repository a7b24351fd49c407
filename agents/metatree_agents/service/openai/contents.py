"""An answer as Markdown, for chats and for exports."""

from metatree_agents.service.openai._inert import inert_said
from metatree_agents.service.openai._models import content_of

__all__ = ["content_of", "inert_said"]
