"""An answer as Markdown, for chats and for exports, and where its sources are on the page."""

from metatree_agents.service.openai._inert import inert_said
from metatree_agents.service.openai._models import content_of, node_link

__all__ = ["content_of", "inert_said", "node_link"]
