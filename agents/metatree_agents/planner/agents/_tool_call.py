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

from metatree._util.threads import GaveUp, called, within
from metatree.durable import InDoubt
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
        try:
            made = CallResult({"text": await _called(tool, fitting, node, tree)}, False)
            if calls is not None:
                calls.keep(call, made.result, key=key, tool=tool)
        except BaseException as exc:
            if calls is not None:
                cut_off = isinstance(exc, InDoubt) or not isinstance(exc, Exception)
                (calls.unconfirmed if cut_off and not tool.is_repeatable else calls.drop)(call, key=key)
            raise
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


async def _called(tool: Tool, arguments: Mapping[str, Any], node: Node, tree: Tree | None) -> str:
    given: dict[type, Any] = {Node: node} if tree is None else {Node: node, Tree: tree}
    bound = tool.bound(arguments, given)
    try:
        value = await within(partial(called, tool.function, bound), tool.timeout_s)
    except GaveUp as exc:
        late = f"{tool.id!r} gave nothing within {tool.timeout_s:g} s"
        raise (ToolFailed(late) if tool.is_repeatable else InDoubt(late)) from exc
    except Exception as exc:
        raise ToolFailed(f"{type(exc).__name__}: {exc}") from exc
    text = "" if value is None else str(value)
    if len(text) > tool.max_chars:
        text = f"{text[: tool.max_chars]}\n… cut: {len(text) - tool.max_chars} more characters"
    return text
