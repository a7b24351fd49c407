"""Files to edit, with a router and evidence that say what they are told to say."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest
from metatree_agents import Definition, FileToEdit, files_to_edit
from metatree_agents.code import locate

from metatree import Node, Scored, Source, Tree, UserError
from metatree.testing.parts import FunctionRouter

ISSUE = "Payments are charged twice"


class FixedEvidence:
    """Gives the same scores to whatever is asked, for the nodes that are asked about."""

    def __init__(self, scores: dict[str, float]) -> None:
        self.scores = scores

    def score(
        self,
        questions: Sequence[str],
        *,
        under: str | None = None,
        among: Collection[str] | None = None,
        k: int = 10,
    ) -> list[Scored]:
        found = [
            Scored(node, score, f"line of {node}")
            for node, score in self.scores.items()
            if (under is None or under in (".", node) or node.startswith(under))
            and (among is None or node in among)
        ]
        return sorted(found, key=lambda scored: -scored.score)[:k]


@pytest.fixture
def tree() -> Tree:
    made = Tree.create(":memory:")
    made.add(Node(id="src", title="src", kind="folder"))
    for name in ("cart", "pay"):
        path = f"src/{name}.py"
        made.add(Node(id=path, title=f"{name}.py", kind="file", source=Source(path=path)), parent="src")
        for number, function in enumerate(("load", "save")):
            made.add(
                Node(
                    id=f"{path}::{function}",
                    title=function,
                    kind="definition",
                    source=Source(path=path, start_line=10 * number + 1, end_line=10 * number + 5),
                ),
                parent=path,
            )
        made.add(Node(id=f"{path}::*", title="rest", kind="code", source=Source(path=path)), parent=path)
    return made


EVIDENCE = FixedEvidence(
    {
        "src/pay.py": 0.9,
        "src/pay.py::*": 0.8,
        "src/pay.py::save": 0.7,
        "src/pay.py::load": 0.4,
        "src/cart.py": 0.2,
    }
)


def _into_pay(request: object) -> str | None:
    offered = [option.id for option in request.options]  # type: ignore[attr-defined]  # a RouteRequest
    return next((choice for choice in ("src/pay.py", "src/cart.py", "src") if choice in offered), None)


def test_files_come_with_their_definitions_best_first(tree: Tree) -> None:
    found = files_to_edit(ISSUE, tree, k=1, router=FunctionRouter(_into_pay), evidence=EVIDENCE)
    (file,) = found
    assert isinstance(file, FileToEdit)
    assert file.path == "src/pay.py"
    assert file.definitions == (Definition("save", 11, 15), Definition("load", 1, 5))
    assert 0 <= file.score <= 1


def test_at_most_k_files_are_listed(tree: Tree) -> None:
    for k in (1, 2, 5):
        found = files_to_edit(ISSUE, tree, k=k, router=FunctionRouter(_into_pay), evidence=EVIDENCE)
        assert [file.path for file in found] == ["src/pay.py", "src/cart.py"][:k]


def test_the_search_behind_is_returned_too(tree: Tree) -> None:
    entries: list[object] = []
    files, result = locate(
        ISSUE, tree, 1, router=FunctionRouter(_into_pay), evidence=EVIDENCE, on_event=entries.append
    )
    assert [file.path for file in files] == [node.id for node in result.nodes]
    assert result.usage.router_calls >= 1
    assert len(entries) == len(result.trace)


@pytest.mark.parametrize("issue", ["", " \n"])
def test_empty_issue_is_refused(tree: Tree, issue: str) -> None:
    with pytest.raises(UserError, match="the issue is empty"):
        files_to_edit(issue, tree)
