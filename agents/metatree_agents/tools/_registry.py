"""The tools of a tree, each written once: functions and MCP, over stdio and HTTP, are made of these.

Lost: functions written out for the MCP server, since its SDK reads schemas from signatures, and again for function
schemas: the words for models stood twice and differed. The server now gets functions with a signature that is made.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model

from metatree_agents.tools._models import Answer
from metatree_agents.tools.toolkit import Toolkit


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool: a method of the toolkit, whose name, docstring and arguments are those of the tool."""

    method: Callable[..., Awaitable[Answer]]
    title: str
    read_only: bool = True
    destructive: bool = False

    @property
    def name(self) -> str:
        return self.method.__name__

    @property
    def description(self) -> str:
        return " ".join((inspect.getdoc(self.method) or "").split())

    @property
    def takes_caller(self) -> bool:
        return "caller" in inspect.signature(self.method).parameters

    def parameters(self) -> list[inspect.Parameter]:
        """Return the arguments that a model gives, with their types."""
        hints = get_type_hints(self.method, include_extras=True)
        return [
            each.replace(annotation=hints[each.name])
            for each in inspect.signature(self.method).parameters.values()
            if each.name not in ("self", "caller")
        ]

    def arguments(self) -> type[BaseModel]:
        """Return a model of the arguments."""
        fields: dict[str, Any] = {
            each.name: (each.annotation, ... if each.default is each.empty else each.default)
            for each in self.parameters()
        }
        return create_model(f"{self.name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)


TOOLS: Final[Sequence[AgentTool]] = (
    AgentTool(Toolkit.ask, "Ask"),
    AgentTool(Toolkit.search, "Search"),
    AgentTool(Toolkit.files_to_edit, "Files to edit"),
    AgentTool(Toolkit.context, "Context"),
    AgentTool(Toolkit.read, "Read"),
    AgentTool(Toolkit.outline, "Outline"),
    AgentTool(Toolkit.grep, "Grep"),
    AgentTool(Toolkit.references, "References"),
    AgentTool(Toolkit.remember, "Remember", read_only=False),
    AgentTool(Toolkit.browse, "Browse"),
)
"""Those of MCP, and of functions where nobody names others."""
MORE: Final[Sequence[AgentTool]] = (AgentTool(Toolkit.forget, "Forget", read_only=False, destructive=True),)
"""Those that functions have when they are named. Lost: `forget` over MCP, an eleventh tool for what people do with
`metatree forget`."""
