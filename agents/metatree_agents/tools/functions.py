"""The tools of a tree as function schemas, for any framework that calls functions the way OpenAI models do."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import BaseModel, ValidationError

from metatree import Limits, Tree
from metatree._util.secret_text import shapes_masked
from metatree._util.threads import run_apart
from metatree.errors import MetatreeError
from metatree_agents.tools._models import Answer
from metatree_agents.tools._registry import MORE, TOOLS, AgentTool
from metatree_agents.tools.toolkit import Toolkit

NAMES = tuple(tool.name for tool in TOOLS)


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """One tool: a schema for the model, and what is called with the arguments that the model gives."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of the arguments, an object."""
    function: Callable[..., Awaitable[Answer]]
    _model: type[BaseModel]

    @property
    def schema(self) -> dict[str, Any]:
        """The tool as chat completions take it in `tools`."""
        about = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": about}

    @property
    def response_schema(self) -> dict[str, Any]:
        """The tool as the Responses API takes it in `tools`."""
        return {"type": "function", "strict": False, **self.schema["function"]}

    async def acall(self, arguments: str | Mapping[str, Any] = "{}") -> str:
        """Call the tool and return JSON for the model; what is wrong is said in it too, as `{"error": …}`.

        Args:
            arguments: what the model gave, as JSON or as an object.
        """
        try:
            values = json.loads(arguments or "{}") if isinstance(arguments, str) else dict(arguments)
            given = self._model.model_validate(values)
            result = await self.function(**{name: getattr(given, name) for name in self._model.model_fields})
        except ValidationError as exc:
            wrong = "; ".join(
                f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}" for e in exc.errors()
            )
            error = f"the arguments of {self.name} are wrong: {wrong}"
        except ValueError as exc:
            error = f"the arguments of {self.name} are no JSON: {exc}"
        except MetatreeError as exc:
            error = shapes_masked(str(exc))
        else:
            return json.dumps(result.as_json(), ensure_ascii=False, separators=(",", ":"))
        return json.dumps({"error": error}, ensure_ascii=False)

    def call(self, arguments: str | Mapping[str, Any] = "{}") -> str:
        """Do what `acall` does, and wait for it; works inside a running event loop too."""
        return run_apart(lambda: self.acall(arguments))

    def __call__(self, **arguments: Any) -> str:
        return self.call(arguments)


def function_tools(
    tree: Tree | Callable[[], Tree],
    *,
    only: Sequence[str] = NAMES,
    prefix: str = "",
    who: str = "an agent",
    parts: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
) -> list[FunctionTool]:
    """Return the tools of a tree, those of `metatree mcp`; `forget` too when it is named in `only`.

    Args:
        tree: the tree, or a function that opens it when it is first needed.
        only: the names of those that are wanted; leave `remember` out for agents that may only look.
        prefix: put before each name, for example `handbook_` when an agent has several trees.
        who: who says what is remembered.
        parts: router, reader and so on, as `search` takes them.
        limits: of each search.

    Example:
        >>> from metatree import Node, Tree
        >>> tree = Tree.create(":memory:")
        >>> _ = tree.add(Node("tea", "Tea", content="Tea is served at four."))
        >>> ask, read = function_tools(tree, only=["ask", "read"])
        >>> ask.schema["function"]["name"], list(ask.parameters["properties"])
        ('ask', ['questions', 'under', 'context', 'max_tokens'])
        >>> json.loads(read(node="tea"))["text"]
        'Tea is served at four.'
    """
    kit = Toolkit(tree, who=who, parts=parts, limits=limits)
    tools = {tool.name: tool for tool in (*TOOLS, *MORE)}
    unknown = [name for name in only if name not in tools]
    if unknown:
        from metatree import UserError

        raise UserError(f"there is no tool {unknown[0]!r}: choose from {', '.join(tools)}")
    return [_tool(tools[name], kit, prefix) for name in only]


def _tool(tool: AgentTool, kit: Toolkit, prefix: str) -> FunctionTool:
    arguments = tool.arguments()
    schema = arguments.model_json_schema()
    schema.pop("title", None)
    for about in schema["properties"].values():
        about.pop("title", None)
    function = partial(tool.method, kit)
    return FunctionTool(prefix + tool.name, tool.description, schema, function, arguments)
