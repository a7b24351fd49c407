"""Tool calls by tasks: validated, permitted, and not made twice.

What a tool that changes nothing has said is reused by agents, searches, runs and processes; one that changes something
is called once for each intent.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from metatree.errors import ToolFailed, UserError
from metatree.node import Node
from metatree.tools.call_log import CallLog, CallResult, call_of
from metatree.tools.tool import Tool
from metatree.trees.tree import Tree

Permit = Callable[[Tool, Mapping[str, Any]], "bool | Awaitable[bool]"]


async def call_tool(
    tool: Tool,
    arguments: Mapping[str, Any],
    *,
    tree: Tree | None,
    calls: CallLog | None,
    permit: Permit | None,
    key: str,
    run: str,
    intent: str = "",
    again: bool = False,
) -> CallResult:
    """Call an exploratory tool and return what it says; a call that was made before is not made again.

    Args:
        arguments: for its parameters; `node` names the node that it works on.
        key: idempotency key of the task.
        run: the agent.
        intent: the intent; the calls of a tool that changes something are distinguished by it.
        again: whether a call that was interrupted may be made again, though the tool is not repeatable.

    Returns:
        Its result, `{"text": …}`, and whether it is somebody else's.

    Raises:
        UserError: the arguments do not fit, or it changes something and is not permitted.
        ToolFailed: it raised or took too long.
        InDoubt: it was interrupted once, and is not repeatable.
    """
    given = dict(arguments)
    named = given.pop("node", None) if tool.on_node else None
    if tool.kind != "exploratory":
        raise UserError(f"tool {tool.id!r} adds nodes to a tree: tasks call exploratory tools")
    node = _node(tool, named, tree)
    fitting = tool.validated(given)
    if tool.changes:
        allowed = permit(tool, fitting) if permit is not None else False
        if not (await allowed if inspect.isawaitable(allowed) else allowed):
            raise UserError(
                f"tool {tool.id!r} may change something, and there is no permission for this call"
            )
    call = call_of(tool, fitting, node, within=intent if tool.changes else run)
    made = None
    if calls is not None:
        made = await calls.claim(call, key=key, run_id=run, tool=tool, again=again)
    if made is None:
        make = partial(_made, tool, fitting, node, tree)
        if calls is None:
            made = CallResult(await make(), False)
        else:
            made = await calls.make(call, make, key=key, tool=tool)
    if "failed" in made.result:  # a search has called it
        raise ToolFailed(made.result["failed"])
    return made


def _node(tool: Tool, named: Any, tree: Tree | None) -> Node:
    if not tool.on_node:
        return Node(id="", title="")
    if tree is None or named is None:
        raise UserError(
            f"tool {tool.id!r} works on a node: give a tree, and `node` among the arguments of the task"
        )
    node = tree.get(str(named))
    return replace(node, content=tree.content(node.id)) if node.has_content and node.content is None else node


async def _made(tool: Tool, arguments: Mapping[str, Any], node: Node, tree: Tree | None) -> dict[str, str]:
    given: dict[type, Any] = {Node: node} if tree is None else {Node: node, Tree: tree}
    return {"text": tool.text_of(await tool.run(tool.bound(arguments, given)))}
