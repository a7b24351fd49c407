"""The tools of a tree as function schemas, for any framework that calls functions the way OpenAI models do."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from metatree import Limits, Tree
from metatree._util.threads import run_apart
from metatree.errors import MetatreeError
from metatree_agents.tools._models import (
    Context,
    HowMany,
    MaxChars,
    MemorySource,
    MemoryText,
    MemoryTitle,
    MemoryUnder,
    NodeId,
    Offset,
    Query,
    Questions,
    Under,
    Who,
)
from metatree_agents.tools.toolkit import Toolkit

NAMES = ("search", "ask", "read", "browse", "remember", "forget")


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """One tool: a schema for the model, and what is called with the arguments that the model gives."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of the arguments, an object."""
    function: Callable[..., Awaitable[BaseModel]]
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
            said = json.loads(arguments or "{}") if isinstance(arguments, str) else dict(arguments)
            given = self._model.model_validate(said)
            result = await self.function(**{name: getattr(given, name) for name in self._model.model_fields})
        except ValidationError as exc:
            wrong = "; ".join(
                f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}" for e in exc.errors()
            )
            return json.dumps(
                {"error": f"the arguments of {self.name} are wrong: {wrong}"}, ensure_ascii=False
            )
        except ValueError as exc:
            return json.dumps(
                {"error": f"the arguments of {self.name} are no JSON: {exc}"}, ensure_ascii=False
            )
        except MetatreeError as exc:
            return json.dumps({"error": str(exc)}, ensure_ascii=False)
        return result.model_dump_json()

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
    """Return the tools of a tree: search, ask, read, browse, remember, forget.

    Args:
        tree: the tree, or a function that opens it when it is first needed.
        only: the names of those that are wanted; leave `remember` and `forget` out for agents that may only look.
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
        ('ask', ['questions', 'under', 'context'])
        >>> json.loads(read(node="tea"))["text"]
        'Tea is served at four.'
    """
    kit = Toolkit(tree, who=who, parts=parts, limits=limits)
    functions = {each.__name__: each for each in _functions(kit)}
    unknown = [name for name in only if name not in functions]
    if unknown:
        from metatree import UserError

        raise UserError(f"there is no tool {unknown[0]!r}: choose from {', '.join(functions)}")
    return [_tool(functions[name], prefix + name) for name in only]


def _functions(kit: Toolkit) -> tuple[Callable[..., Awaitable[BaseModel]], ...]:
    async def search(query: Query, k: HowMany = 10, under: Under = None) -> BaseModel:
        """Find the parts of the memory that are about something: files, definitions, sections, notes; best first."""
        return await kit.search(query, k=k, under=under)

    async def ask(questions: Questions, under: Under = None, context: Context = "") -> BaseModel:
        """Answer questions from the memory, each answer with its sources and their exact words."""
        return await kit.ask(questions, under=under, context=context)

    async def read(node: NodeId, offset: Offset = 0, max_chars: MaxChars = 20_000) -> BaseModel:
        """Read the text of a node: a definition, a section, a whole file, a memory."""
        return await kit.read(node, offset=offset, max_chars=max_chars)

    async def browse(node: NodeId = ".", offset: Offset = 0, limit: HowMany = 100) -> BaseModel:
        """List what lies directly below a node of the memory; `.` is the root."""
        return await kit.browse(node, offset=offset, limit=limit)

    async def remember(
        text: MemoryText,
        title: MemoryTitle = None,
        source: MemorySource = None,
        under: MemoryUnder = None,
        who: Who = None,
    ) -> BaseModel:
        """Keep a fact, decision or preference in the memory, where the next search finds it.

        It is marked with who said it and when. The same text is kept once. Never remember passwords or keys.
        """
        return await kit.remember(text, title=title, source=source, under=under, who=who)

    async def forget(node: NodeId) -> BaseModel:
        """Take back a memory, or another node that was added; what was built from a source cannot be forgotten."""
        return await kit.forget(node)

    return search, ask, read, browse, remember, forget


def _tool(function: Callable[..., Awaitable[BaseModel]], name: str) -> FunctionTool:
    import inspect
    from typing import get_type_hints

    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {
        parameter.name: (
            hints[parameter.name],
            ... if parameter.default is parameter.empty else parameter.default,
        )
        for parameter in inspect.signature(function).parameters.values()
    }
    model = create_model(f"{name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)
    schema = model.model_json_schema()
    schema.pop("title", None)
    for about in schema["properties"].values():
        about.pop("title", None)
    return FunctionTool(name, inspect.getdoc(function) or "", schema, function, model)
