"""Markdown becomes a tree of headings; every line lies in one leaf."""

from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from metatree_memory_tools.text.descriptions import MOST_HEADINGS
from metatree_memory_tools.text.markdown import Markdown, plain
from metatree_memory_tools.text.unique_names import slug

from metatree.trees.source_types import Outline, OutlinePart, SourceFile


def outline(text: str) -> Outline:
    return Markdown().outline(SourceFile("docs/a.md", text.encode()))


def shape(parts: Sequence[OutlinePart]) -> list[Any]:
    return [
        (part.id, (part.start_line, part.end_line)) if not part.parts else (part.id, shape(part.parts))
        for part in parts
    ]


def leaves(parts: Sequence[OutlinePart]) -> Iterator[OutlinePart]:
    for part in parts:
        yield from leaves(part.parts) if part.parts else [part]


def test_headings_nest_and_one_title_is_no_level_of_its_own() -> None:
    text = (
        "# Guide\n\nIntro here. More.\n\n## Install\n\nUse pip.\n\n### Linux\n\napt.\n\n## Use\n\nCall it.\n"
    )
    result = outline(text)
    assert shape(result.parts) == [
        ("#<intro>", (1, 4)),
        ("#install", [("#install.<intro>", (5, 8)), ("#linux", (9, 12))]),
        ("#use", (13, 15)),
    ]
    assert result.description == "Guide: Intro here. Sections: Install, Use."
    assert result.attributes["title"] == "Guide"
    assert result.parts[1].description == "Use pip. Sections: Linux."
    assert result.parts[0].title == "Guide (introduction)"


def test_a_heading_with_nothing_below_it_has_no_introduction() -> None:
    assert shape(outline("# A\n## B\ntext\n## C\ntext\n").parts) == [("#b", (2, 3)), ("#c", (4, 5))]
    underlined = "Two\nlines\n===\n\nB\n-\n\ntext\n\nC\n-\ntext\n"
    assert shape(outline(underlined).parts) == [("#b", (5, 9)), ("#c", (10, 12))]


def test_equal_headings_get_ids_of_their_own() -> None:
    result = outline("## Usage\na\n## Usage\nb\n## Usage-1\nc\n## !!!\nd\n")
    assert [part.id for part in result.parts] == ["#usage", "#usage-1", "#usage-1-1", "#section"]


def test_number_signs_in_code_quotes_and_lists_are_no_headings() -> None:
    text = "## A\n\n```sh\n# not\n```\n\n~~~\n## not\n~~~\n\n    # not\n"
    text += "\n> # not\n\n- # not\n\n<!--\n# not\n-->\n\n## B\n"
    assert [part.id for part in outline(text).parts] == ["#a", "#b"]


def test_front_matter_is_text_and_facts() -> None:
    text = '---\ntitle: "My page"\nsummary: What it is for.\n# not a heading\n---\n## A\nx\n## B\ny\n'
    result = outline(text)
    assert shape(result.parts) == [("#<intro>", (1, 5)), ("#a", (6, 7)), ("#b", (8, 9))]
    assert result.description == "My page: What it is for. Sections: A, B."


def test_a_file_without_sections_is_one_leaf() -> None:
    assert outline("# Only\n\nThis **is** [it](x). More.\n").parts == ()
    assert outline("# Only\n\nThis **is** [it](x). More.\n").description == "Only: This is it."
    assert outline("just text\n").parts == ()
    assert outline("").description == "An empty file."
    assert outline("---\n---\n").parts == ()


def test_badges_tables_and_images_are_no_prose() -> None:
    text = "# T\n\n[![Build](b.svg)](x) ![logo](y)\n\n| a | b |\n|---|---|\n\nReal words.\n\n## A\n\n## B\n"
    assert outline(text).description == "T: Real words. Sections: A, B."


def test_headings_lose_their_marks() -> None:
    result = outline("## The `run` **command** [here](x)\n\na\n\n## snake_case_name <a name='x'></a>\n\nb\n")
    assert [part.title for part in result.parts] == ["The run command here", "snake_case_name"]
    assert slug("The `run` command") == "the-run-command"


def test_ends_of_lines_of_any_kind() -> None:
    text = "# A\r\n\r\n## B\r\nx\r\n## C\ry\n"
    assert [part.id for part in outline(text).parts] == ["#b", "#c"]


def every(parts: Sequence[OutlinePart]) -> Iterator[OutlinePart]:
    for part in parts:
        yield part
        yield from every(part.parts)


markdown = st.lists(
    st.sampled_from(
        [
            "# A",
            "## B",
            "### C",
            "#### A",
            "text",
            "",
            "```",
            "~~~",
            "A\n===",
            "B\n---",
            "- item",
            "> # q",
            "    # code",
            "---",
            "<div>",
            "</div>",
            "# ",
            "#x",
            "\f",
            "\u2028",
        ]
    ),
    max_size=25,
)


@example(["\f", "    # code", "A\n===", "## B"])
@given(markdown)
def test_every_line_lies_in_one_leaf(lines: list[str]) -> None:
    text = "\n".join(lines)
    file = SourceFile("a.md", text.encode())
    result = Markdown().outline(file)
    if not result.parts:
        return
    owners = [n for part in leaves(result.parts) for n in range(part.start_line, part.end_line + 1)]
    assert len(owners) == len(set(owners))
    titles = " ".join([str(result.attributes.get("title")), *(part.title for part in every(result.parts))])
    for number in set(range(1, len(file.lines) + 1)) - set(owners):
        # What lies in no leaf is blank, an underline, or a heading that is the title of a node.
        words = file.lines[number - 1].strip(" #=-\f\u2028")
        assert words in titles, (number, words)
    assert len({part.id for part in leaves(result.parts)}) == len(list(leaves(result.parts)))


def test_of_an_endless_line_only_the_beginning_is_described() -> None:
    assert len(plain("*a **b [" * 50_000)) <= 1_000


def test_the_sections_of_a_file_are_bounded() -> None:
    text = "# a\n\n" * (MOST_HEADINGS + 5)
    result = outline(text)
    assert len(result.parts) == MOST_HEADINGS
    assert result.parts[-1].end_line == len(text.split("\n")) - 1
    assert "first 10,000 headings" in result.attributes["note"]
    assert "note" not in outline("# a\n\n" * 10).attributes


def test_labels_of_myst_and_attributes_say_nothing() -> None:
    text = (
        "{.hide-header}\n# Welcome\n\nRead on.\n\n(steps)=\n## Steps\n\n(more)=\n\nOpen the (box)=\nfirst.\n"
    )
    result = outline(text)
    assert result.description == "Welcome: Read on. Sections: Steps."
    assert [part.description for part in leaves(result.parts)][-1] == "Open the (box)= first."
