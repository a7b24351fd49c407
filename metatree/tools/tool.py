"""Tools: typed functions that a search may call on a node whose content and children did not answer."""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

from metatree.errors import BadModelAnswer, ToolFailed, UserError
from metatree.node import Node
from metatree.protocols import GivenToTools, ToolSpec

if TYPE_CHECKING:
    from metatree.trees.tree import Tree

Kind = Literal["exploratory", "interactive"]
Reuse = Literal["forever", "run"] | float
"""By whom the result of a call is reused: by all runs, by the run (or the intent of an agent) that made it alone, or
by all runs for so many seconds."""


@dataclass(frozen=True)
class Tool:
    """A function with what a search must know of it. Calling it calls the function.

    Parameters annotated `Node`, `Tree` or `Blackboard` are given by the search: the node that the tool works on, with
    its content, the tree, and the board (that of the tree's own memory when the search has none). All others are
    filled in by the tool caller and validated against the signature.
    """

    function: Callable[..., Any]
    id: str
    title: str
    description: str
    kind: Kind
    version: str = "1"
    """Raise it when the tool would give another result for the same arguments: earlier calls are then not reused."""
    kinds: frozenset[str] | None = None
    """Kinds of nodes it works on; None for all."""
    reuse: Reuse | None = None
    """How long a result may be reused: `forever`, within one `run`, or for so many seconds. None: within one run when
    the tool changes something, so that another run does so again; for ever when it does not."""
    timeout_s: float = 60.0
    max_chars: int = 20_000
    """Longer results are cut, and say so."""
    changes: bool = False
    """Whether it changes anything outside the memory, or might; it is then called only with permission."""
    repeatable: bool | None = None
    """False: a call that was interrupted by a crash is not made again unless a person says so. None: False when the
    tool changes something."""
    when: Callable[[Node], bool] | None = None
    """Says of a node of these kinds whether the tool works on it; None for all of them. Quick, must not raise."""
    about: Callable[[Node, Sequence[str]], str] | None = None
    """Says in a few words what the tool has to offer on a node for some questions (which links a page has); it is shown
    behind the description where the tool is offered. Quick, must not raise."""

    answers_outside_tree: bool = False
    """Whether it may answer what no text of the tree says, as a call of a server does: its nodes are then offered by
    what they say, also where a word that a question turns on is nowhere in the tree."""
    first_on: Callable[[Tree, str], Iterable[Node]] | None = None
    """Says on which nodes of a tree it may answer a question by itself, such as the table that has what is asked for: a
    search by rules calls it there before it reads any text. Quick; when it raises, there are none."""

    def __post_init__(self) -> None:
        kinds: object = self.kinds
        if isinstance(kinds, str):
            raise UserError(
                f"tool {self.id!r}: kinds={kinds!r}: give a collection, such as kinds=[{kinds!r}]"
            )
        reuse: object = self.reuse
        seconds = type(reuse) in (int, float) and isfinite(reuse) and reuse > 0  # type: ignore[arg-type,operator]
        if not (seconds or reuse is None or (isinstance(reuse, str) and reuse in ("forever", "run"))):
            raise UserError(
                f"tool {self.id!r}: reuse={reuse!r}: use 'forever', 'run' or a number of seconds above 0"
            )

    def check(self) -> None:
        """Say before the first call why arguments of the function could not be filled in.

        Raises:
            UserError: a parameter has no name of its own, no type, or a type that its module does not know.
        """
        hints = self._hints
        for name, parameter in _parameters(self.function).items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise UserError(
                    f"tool {self.id!r}: parameter {name!r} must have a name of its own to be filled in"
                )
            if name not in hints:
                raise UserError(
                    f"tool {self.id!r}: parameter {name!r} has no type: write {name}: str, or another"
                )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @property
    def lifetime(self) -> Reuse:
        """How long a result may be reused."""
        return ("run" if self.changes else "forever") if self.reuse is None else self.reuse

    @property
    def is_repeatable(self) -> bool:
        """Whether a call that was interrupted may be made again unasked."""
        return not self.changes if self.repeatable is None else self.repeatable

    @cached_property
    def spec(self) -> ToolSpec:
        """What a tool caller gets."""
        return ToolSpec(
            self.id, self.title, self.description, self.kind, self._model.model_json_schema(), self.version
        )

    def described(self, node: Node, questions: Sequence[str]) -> str:
        """Return the description for a node, with what the tool has to offer there."""
        extra = "" if self.about is None else self.about(node, questions)
        return f"{self.description} {extra}" if extra else self.description

    def works_on(self, node: Node) -> bool:
        """Say whether this tool can be offered for a node."""
        return (self.kinds is None or node.kind in self.kinds) and (self.when is None or self.when(node))

    def validated(self, arguments: object) -> dict[str, Any]:
        """Return arguments in their canonical JSON form, defaults filled in.

        Raises:
            BadModelAnswer: they do not fit; the message names each argument and what is wrong with it.
        """
        from pydantic import ValidationError

        if not isinstance(arguments, Mapping):
            raise BadModelAnswer(f"arguments must be an object, not {type(arguments).__name__}")
        try:
            model = self._model.model_validate(dict(arguments))
        except ValidationError as exc:
            wrong = "; ".join(
                f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}" for e in exc.errors()
            )
            raise BadModelAnswer(wrong) from exc
        dumped: dict[str, Any] = model.model_dump(mode="json")
        return dumped

    def bound(self, arguments: Mapping[str, Any], given: Mapping[type, Any]) -> dict[str, Any]:
        """Return keyword arguments for the function: validated values, and what the search gives by type."""
        model = self._model.model_validate(dict(arguments))
        values = {name: getattr(model, name) for name in type(model).model_fields}
        return values | {name: given[kind] for name, kind in self._injected.items() if kind in given}

    async def run(self, parameters: Mapping[str, Any]) -> Any:
        """Call the function with what `bound` gives, in its time, and return what it returns.

        Raises:
            ToolFailed: it raised, or took too long and may be called again.
            InDoubt: it took too long and is not repeatable.
        """
        # Here, since `import metatree` loads this module, and these load asyncio.
        from metatree._util.threads import GaveUp, called, within
        from metatree.durable import InDoubt

        try:
            return await within(partial(called, self.function, parameters), self.timeout_s)
        except GaveUp as exc:
            late = f"{self.id!r} gave nothing within {self.timeout_s:g} s"
            raise (ToolFailed(late) if self.is_repeatable else InDoubt(late)) from exc
        except Exception as exc:
            raise ToolFailed(f"{type(exc).__name__}: {exc}") from exc

    def text_of(self, result: object) -> str:
        """Return what an exploratory tool returned as a text of bounded length; JSON of what is none."""
        text = result if isinstance(result, str) else "" if result is None else _as_json(result)
        if len(text) > self.max_chars:
            text = f"{text[: self.max_chars]}\n… cut: {len(text) - self.max_chars} more characters"
        return text

    @cached_property
    def on_node(self) -> bool:
        """Whether a node is among its parameters, so that node and content distinguish its calls."""
        return Node in self._injected.values()

    @property
    def stands_alone(self) -> bool:
        """Whether all its parameters are filled in by who calls it: it is given no node, no tree and no board."""
        return not self._injected

    @cached_property
    def on_board(self) -> bool:
        """Whether a blackboard is among its parameters."""
        return any(issubclass(kind, GivenToTools) for kind in self._injected.values())

    @property
    def _hints(self) -> dict[str, Any]:
        try:
            return _hints_of(self.function)
        except NameError as exc:
            raise UserError(
                f"tool {self.id!r}: the type {exc.name!r} of a parameter is not known in {self.function.__module__}:"
                " import or define it at the level of the module, not in a function or under TYPE_CHECKING"
            ) from exc

    @cached_property
    def _injected(self) -> dict[str, type]:
        from metatree.trees.tree import Tree

        hints = self._hints
        return {
            name: hint
            for name in _parameters(self.function)
            if (hint := _plain(hints.get(name))) in (Node, Tree)
            or (isinstance(hint, type) and issubclass(hint, GivenToTools))
        }

    @cached_property
    def _model(self) -> Any:
        from pydantic import ConfigDict, create_model

        hints = self._hints
        fields: dict[str, Any] = {}
        for name, parameter in _parameters(self.function).items():
            if name in self._injected:
                continue
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[name] = (hints[name], default)
        return create_model(f"{self.id}_arguments", __config__=ConfigDict(extra="forbid"), **fields)


# A search makes its tools anew, from the same functions.
@lru_cache(maxsize=1000)
def _hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    return typing.get_type_hints(function, include_extras=True)


@lru_cache(maxsize=1000)
def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


def _plain(hint: Any) -> Any:
    """Return a type without what `Annotated` says of it."""
    return hint.__origin__ if typing.get_origin(hint) is typing.Annotated else hint


@dataclass(frozen=True)
class ToolGroup:
    """Tools and groups of tools under one title: an inner node of a tool tree."""

    id: str
    title: str
    description: str
    tools: Sequence[Tool | ToolGroup] = field(default_factory=tuple)


def tool(
    *,
    kind: Kind,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    version: str = "1",
    kinds: Collection[str] | None = None,
    reuse: Reuse | None = None,
    timeout_s: float = 60.0,
    max_chars: int = 20_000,
    changes: bool = False,
    repeatable: bool | None = None,
    when: Callable[[Node], bool] | None = None,
    about: Callable[[Node, Sequence[str]], str] | None = None,
    answers_outside_tree: bool = False,
    first_on: Callable[[Tree, str], Iterable[Node]] | None = None,
) -> Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function with a typed signature; see `Tool` for the arguments.

    Args:
        kind: `exploratory` returns information; `interactive` returns a `Node` to add under the node it worked on.

    Example:
        >>> @tool(kind="exploratory")
        ... def grep(node: Node, pattern: str, max_lines: int = 20) -> str:
        ...     "Find the lines of a node that hold a text."
        ...     return "\\n".join(line for line in (node.content or "").splitlines() if pattern in line)
        >>> grep.validated({"pattern": "TTL"})
        {'pattern': 'TTL', 'max_lines': 20}
    """
    if kind not in ("exploratory", "interactive"):
        raise UserError(f"kind={kind!r}: use 'exploratory' or 'interactive'")
    if isinstance(kinds, str):
        raise UserError(f"kinds={kinds!r}: give a collection, such as kinds=[{kinds!r}]")

    def make(function: Callable[..., Any]) -> Tool:
        doc = inspect.getdoc(function) or ""
        tool_id = name or function.__name__
        return Tool(
            function,
            tool_id,
            title or tool_id.replace("_", " "),
            description or doc.partition("\n\n")[0].replace("\n", " ") or tool_id.replace("_", " "),
            kind,
            version,
            None if kinds is None else frozenset(kinds),
            reuse,
            timeout_s,
            max_chars,
            changes,
            repeatable,
            when,
            about,
            answers_outside_tree,
            first_on,
        )

    return make


class ToolTree:
    """All tools that a search may use, by id, in their groups.

    Raises:
        UserError: two tools or groups share an id, or arguments of a tool could not be filled in.
    """

    def __init__(self, tools: Sequence[Tool | ToolGroup | Callable[..., Any]]) -> None:
        self._entries: dict[str, Tool | ToolGroup] = {}
        self._children: dict[str, list[str]] = {"": []}
        for entry in tools:
            if not isinstance(entry, Tool | ToolGroup):
                raise UserError(f"{entry!r} is not a tool: decorate it with @tool(kind=…)")
            self._add(entry, "")

    def _add(self, entry: Tool | ToolGroup, group_id: str) -> None:
        if entry.id in self._entries or not entry.id:
            raise UserError(f"two tools are called {entry.id!r}: give one another name")
        if isinstance(entry, Tool):
            entry.check()
        self._entries[entry.id] = entry
        self._children[group_id].append(entry.id)
        if isinstance(entry, ToolGroup):
            self._children[entry.id] = []
            for inner in entry.tools:
                self._add(inner, entry.id)

    def __bool__(self) -> bool:
        return bool(self._entries)

    def find(self, entry_id: str) -> Tool | ToolGroup | None:
        """Return a tool or group by its id, None when there is none."""
        return self._entries.get(entry_id)

    def tool(self, tool_id: str) -> Tool:
        """Return a tool (not a group) by its id.

        Raises:
            UserError: there is none, for example because a run is resumed without its tools.
        """
        entry = self._entries.get(tool_id)
        if not isinstance(entry, Tool):
            raise UserError(f"there is no tool {tool_id!r}: give the tools that the run was begun with")
        return entry

    def tools(self) -> Iterator[Tool]:
        """Yield every tool, in order."""
        return (entry for entry in self._entries.values() if isinstance(entry, Tool))

    def viable(self, at: str, node: Node, *, may_create: bool = True) -> list[Tool | ToolGroup]:
        """Return what can be offered for a node at one place of the tree: tools that work on it, groups with such."""
        entries: list[Tool | ToolGroup] = []
        for entry_id in self._children.get(at, ()):
            entry = self._entries[entry_id]
            if isinstance(entry, ToolGroup):
                if self.viable(entry_id, node, may_create=may_create):
                    entries.append(entry)
            elif entry.works_on(node) and (may_create or entry.kind == "exploratory"):
                entries.append(entry)
        return entries


def _as_json(result: object) -> str:
    return json.dumps(result, ensure_ascii=False, indent=1, default=str)
