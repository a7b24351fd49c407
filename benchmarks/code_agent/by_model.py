"""A model in the place of a script: it is shown the tools and chooses the calls."""

from __future__ import annotations

import inspect
import json
from typing import Any

from metatree_agents.tools.functions import function_tools

from benchmarks.code_agent.scripts import Script
from benchmarks.code_agent.tool_sets import Call, Metatree, Shell

PROMPT = (
    "Find all lines of this code base that must change for the issue below, and read them with the tools. "
    "Change nothing. Answer DONE when you have read them all.\n\n"
)


def by_model(issue: str, tools: Shell | Metatree, model: str) -> Script:
    """Ask a chat model behind OPENAI_BASE_URL for each call, and stop when it makes none."""
    from openai import OpenAI

    client = OpenAI()
    messages: list[Any] = [{"role": "user", "content": PROMPT + issue}]
    schemas: Any = schemas_of(tools)
    while True:
        made = client.chat.completions.create(model=model, messages=messages, tools=schemas, temperature=0)
        message: Any = made.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return
        for each in message.tool_calls:
            arguments = json.loads(each.function.arguments or "{}")
            shown = yield Call(each.function.name, arguments)
            messages.append({"role": "tool", "tool_call_id": each.id, "content": shown.text})


def schemas_of(tools: Shell | Metatree) -> list[dict[str, Any]]:
    """Return the tools as chat completions take them."""
    if isinstance(tools, Metatree):
        return [tool.schema for tool in function_tools(tools.kit.ready())]
    made = []
    for method in (tools.grep, tools.glob, tools.read):
        types = {"str": "string", "int": "integer"}
        arguments = {
            name: {"type": types[str(each.annotation)]}
            for name, each in inspect.signature(method).parameters.items()
        }
        about = {
            "name": method.__name__,
            "description": inspect.getdoc(method),
            "parameters": {"type": "object", "properties": arguments, "required": list(arguments)},
        }
        made.append({"type": "function", "function": about})
    return made
