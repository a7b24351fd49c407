"""Knowledge sources for the control shell that answer questions: one searches a tree, one asks a model.

Both react to a question without an answer, whoever asks it: a fact `(q question "…")`, or a question on a blackboard,
which reads the same. What they find becomes facts:

    (q answer "…")   (q source node)   (q answered-by name)     or     (q unanswered-by name)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from metatree.errors import BadModelAnswer, UserError
from metatree.node import Node
from metatree.protocols import ToolRequest, ToolSpec
from metatree.rules import Firing, KnowledgeSource
from metatree.rules.language.values import value_text

if TYPE_CHECKING:
    from metatree import Limits, Tree
    from metatree.durable import Policy
    from metatree.protocols import ToolCaller

_SOURCES_KEPT: Final = 5


def unanswered(name: str) -> str:
    """Return the production that matches a question without an answer that a source has not looked into."""
    return f'((<q> question <text>) -{{(<q> answer <a>)}} -{{(<q> unanswered-by {value_text(name)})}} -> "{name}")'


class _Answerer(KnowledgeSource, ABC):
    """Answers questions, several at the same time."""

    def __init__(self, name: str, production: str | None, policy: Policy | None) -> None:
        super().__init__(name, production or unanswered(name))
        (only,) = self.rules()
        self.fires(only, each=True, policy=policy)(self._answer)

    async def _answer(self, firing: Firing) -> None:
        token = firing.to_add[0]
        question = str(token["text"])
        answer, sources, why = await self._find(question, firing.key)
        firing.commit(token)
        if not answer:
            firing.add(token["q"], "unanswered-by", self.name)
            firing.note(why)
            return
        firing.add(token["q"], "answer", answer)
        firing.add(token["q"], "answered-by", self.name)
        for node in sources[:_SOURCES_KEPT]:
            firing.add(token["q"], "source", node)
        firing.note(f"{question} {answer}")

    @abstractmethod
    async def _find(self, question: str, key: str) -> tuple[str, Sequence[str], str]:
        """Return the answer, the ids of the nodes that it comes from, and, where there is none, why."""


class TreeSearcher(_Answerer):
    """Answers questions by searching a tree; several at the same time.

    A search is a run of its own, named after the firing: after a crash it goes on where it was.

    Args:
        tree: what is searched.
        name: of the source and of its production.
        router, limits: as `search` takes them; with no router, the embedded one.
        production: another production than `unanswered(name)`; it must give values to `<q>` and `<text>`.
        options: more arguments of `asearch`, such as `reader`, `evidence` or `context`.
    """

    def __init__(
        self,
        tree: Tree,
        *,
        name: str = "search",
        router: Any = None,
        limits: Limits | None = None,
        production: str | None = None,
        policy: Policy | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(name, production, policy)
        self._tree = tree
        self._options = {"router": router, "limits": limits, **(options or {})}

    async def _find(self, question: str, key: str) -> tuple[str, Sequence[str], str]:
        from metatree import aresume, asearch
        from metatree.errors import RunExists

        run_id = key.replace(":", "-")
        try:
            result = await asearch([question], tree=self._tree, run_id=run_id, **self._options)
        except RunExists:
            result = await aresume(run_id, tree=self._tree, **self._options)
        nodes = [node.id for node in result.nodes]
        return result.answer or "", nodes, f"Nothing found for {question!r}: {result.ended}"


class ModelAnswerer(_Answerer):
    """Answers questions from what a model knows, as structured output.

    Args:
        tool_caller: fills in a schema; that of any suite.
        name, production: as in `TreeSearcher`.
    """

    def __init__(
        self,
        tool_caller: ToolCaller,
        *,
        name: str = "model",
        production: str | None = None,
        policy: Policy | None = None,
    ) -> None:
        super().__init__(name, production, policy)
        self._ask = Structured(tool_caller)

    async def _find(self, question: str, key: str) -> tuple[str, Sequence[str], str]:
        values = await self._ask(
            question,
            {"known": {"type": "boolean"}, "answer": {"type": "string"}},
            "Answer the question in a sentence, or say that the answer is not known.",
        )
        answer = str(values["answer"]).strip() if values["known"] else ""
        return answer, (), f"The model does not know: {question!r}"


class Structured:
    """Asks a model for values that fit a JSON schema, through the tool caller of a suite."""

    def __init__(self, tool_caller: ToolCaller) -> None:
        self._tool_caller = tool_caller

    async def __call__(
        self, question: str, properties: Mapping[str, Mapping[str, Any]], instruction: str
    ) -> dict[str, Any]:
        """Return an object with these properties, all of them required.

        Raises:
            BadModelAnswer: a property is missing, or has another type, three times in a row.
        """
        schema = {
            "type": "object",
            "properties": dict(properties),
            "required": list(properties),
            "additionalProperties": False,
        }
        spec = ToolSpec("answer", "answer", instruction, "exploratory", schema)
        node = Node(id="question", title=question[:200], description=instruction)
        errors: tuple[str, ...] = ()
        for _ in range(3):
            try:
                values = await self._tool_caller.fill(ToolRequest(spec, node, (question,), "", errors))
                return _fitting(values, properties)
            except BadModelAnswer as error:
                errors = (*errors, str(error))
        raise BadModelAnswer(errors[-1])


_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def _fitting(values: Mapping[str, Any], properties: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    for name, schema in properties.items():
        if name not in values:
            raise BadModelAnswer(f"the property {name!r} is missing")
        wanted = _KINDS[str(schema["type"])]
        value = values[name]
        if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
            raise BadModelAnswer(f"{name!r} is {value!r}, which is no {schema['type']}")
    return dict(values)


Splitter = Callable[[str], "Awaitable[Sequence[str]] | Sequence[str]"]
"""Takes a request apart into questions; may be a coroutine function."""


class RequestSplitter(KnowledgeSource):
    """Takes each request, `(r request "…")`, apart into questions: `(q question "…")` and `(q part-of r)`."""

    def __init__(self, split: Splitter, *, name: str = "split request") -> None:
        super().__init__(name, f'((<r> request <text>) -{{(<q> part-of <r>)}} -> "{name}")')
        self._split = split
        self.fires(name)(self._ask)

    async def _ask(self, firing: Firing) -> None:
        token = firing.to_add[0]
        found = self._split(str(token["text"]))
        questions = found if isinstance(found, Sequence) else await found
        if not questions:
            raise UserError(f"the request {token['text']!r} was split into no question at all")
        firing.commit(token)
        for question in questions:
            asked = firing.new_id("question")
            firing.add(asked, "part-of", token["r"])
            firing.add(asked, "question", question)
            firing.note(f"To find out: {question}")
