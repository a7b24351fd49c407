"""What a search refuses of a tool before it calls it, in words that say what to write."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from metatree import Node, Tree, search, tool
from metatree.errors import UserError
from metatree.testing.parts import tree_of
from metatree.tools.tool import ToolTree


def test_kinds_as_a_text_are_refused() -> None:
    with pytest.raises(UserError, match=r"kinds='sec': give a collection, such as kinds=\['sec'\]"):
        tool(kind="exploratory", kinds="sec")


def test_a_parameter_without_a_type_is_refused_where_a_search_is_given_it() -> None:
    @tool(kind="exploratory")
    def count(node: Node, word) -> str:  # type: ignore[no-untyped-def]
        return "3"

    with pytest.raises(UserError, match=r"tool 'count': parameter 'word' has no type: write word: str"):
        search("How often?", tree=tree_of({"a": "b"}), tools=[count])


def test_a_type_that_is_known_in_a_function_alone_is_refused() -> None:
    class Size:
        pass

    @tool(kind="exploratory")
    def size(node: Node, size: Size) -> str:
        return "3"

    with pytest.raises(UserError, match=r"the type 'Size' of a parameter is not known in .*test_tool_checks"):
        ToolTree([size])


def test_a_node_is_given_whatever_else_its_type_says() -> None:
    @tool(kind="exploratory")
    def about(node: Annotated[Node, "to look at"], tree: Tree, word: Annotated[str, "a word"]) -> str:
        return word

    assert ToolTree([about]).tool("about").validated({"word": "a"}) == {"word": "a"}
    assert about.on_node


def test_a_search_takes_the_name_of_an_installed_router() -> None:
    tree: Any = tree_of({"Tea": "The kettle is in the cellar."})
    found = search("Where is the kettle?", tree=tree, router="embedded")
    assert found.answer == "The kettle is in the cellar."
