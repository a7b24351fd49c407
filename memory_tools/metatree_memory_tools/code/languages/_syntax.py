"""Nodes of a syntax tree: their names, bodies and lines, and what comments say."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from textwrap import dedent
from typing import TYPE_CHECKING

from metatree_memory_tools.text.descriptions import shorten, unmarked_by

if TYPE_CHECKING:
    import tree_sitter

_BODY_NODES = (
    "body statement_block block class_body interface_body declaration_list field_declaration_list "
    "compound_statement enum_body enum_class_body function_body template_body body_statement "
    "enumerator_list enum_member_declaration_list protocol_body object_type enum_declaration_list "
    "field_list"
)
BODIES = frozenset(_BODY_NODES.split())
ABOVE = frozenset({"attribute_item", "decorator", "attribute_list", "attribute_declaration", "annotation"})
"""Nodes beside comments that belong to the definition below them."""

COMMENTS = (
    *("comment", "line_comment", "block_comment", "multiline_comment", "html_comment"),
    *("haddock", "marginalia"),
)

_WAY_NODES = (
    "variable_declarator assignment_expression struct_specifier union_specifier enum_specifier type_spec"
)
_ON_THE_WAY = frozenset(_WAY_NODES.split())
_MOST_DEPTH = 1_000
"""Real code, generated code among it, is some hundred deep at most."""
_MOST_WIDTH = 20_000
_SAMPLES = 16
_MOST_ROWS = 500
_MOST_CHARS = 1_000
_SIGN = re.compile(
    r"^\s*(?:/\*+!?|\*+/|\(\*+|\*(?!/)|//[/!]?<?|#+!?|(?:--+|\{-)(?:\s*[|^](?=\s))?|;+|<!--)\s?|\s*(?:\*+[/)]|-->|-\})\s*$"
)
_POD = re.compile(r"=[a-z]\w*")
_MARKUP = re.compile(r"(?:</?[A-Za-z][^<>]*>)+|\{@\w+\s+([^}]*)\}|\[`?([\w:.()]+)`?\](?:\([^)]*\))?")
_TAG = re.compile(r"\s*(?:[@\\](?!brief\b)\w+|:param\b|#\s|-+$|=+$)")
_TO_TOOLS = re.compile(
    r"(?:swiftlint|eslint|tslint|rubocop|noinspection|nolint|@ts-|istanbul|prettier|clang-)", re.I
)
_SCOPE = re.compile(r"<.*>|\[.*\]|^[*&\s]+|\s+|\bmut\b|'\w+")


def text_of(node: tree_sitter.Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def plain_scope(text: str) -> str:
    """Return a type without pointers, lifetimes and parameters."""
    return shorten(_SCOPE.sub("", text).replace("::", "."), 80)


def declared_name(node: tree_sitter.Node) -> str:
    """Return the name in a declarator of C or C++, below pointers, references and parameters."""
    at: tree_sitter.Node | None = node
    for _ in range(20):
        if at is None:
            return ""
        if "identifier" in at.type or at.type in ("destructor_name", "operator_name", "operator_cast"):
            name = text_of(at).split("(")[0] if at.type == "operator_cast" else text_of(at)
            return re.sub(r"<[^<>]*>", "", name)
        at = at.child_by_field_name("declarator") or next(
            (
                child
                for child in at.named_children
                if "declarator" in child.type or "identifier" in child.type
            ),
            None,
        )
    return ""


def body_of(node: tree_sitter.Node, bodies: frozenset[str] = frozenset()) -> tree_sitter.Node | None:
    """Return the body of a definition, that of the function or class that it assigns included.

    Args:
        node: the definition.
        bodies: nodes that are bodies in its language, beside those that are in many.
    """
    level = [node]
    for _ in range(4):
        for item in level:
            body = item.child_by_field_name("body")
            if body is not None:
                return body
            for child in item.named_children:
                if child.type in BODIES or child.type in bodies:
                    return child
        level = [
            child
            for item in level
            for child in item.named_children
            if child.end_byte == item.end_byte or child.type in _ON_THE_WAY
        ]
    return None


def last_row(node: tree_sitter.Node) -> int:
    """Return the row that a node ends on; some nodes end at the beginning of the line below."""
    row, column = node.end_point
    return row - 1 if column == 0 and row > node.start_point[0] else row


def first_error(root: tree_sitter.Node) -> int:
    node = root
    for _ in range(200):
        if node.is_error or node.is_missing:
            return node.start_point[0] + 1
        below = next((child for child in node.children if child.has_error or child.is_missing), None)
        if below is None:
            return node.start_point[0] + 1
        node = below
    return node.start_point[0] + 1


def is_comment_kind(kind: str) -> bool:
    return "comment" in kind or kind in COMMENTS


def documentation(node: tree_sitter.Node) -> list[str]:
    """Return the lines of a text that documents, without their indentation.

    A first paragraph that is all indented is a signature, as Julia has it, and is left empty.
    """
    first, *rest = text_of(node).split("\n")
    lines = [first.strip(), *dedent("\n".join(rest)).split("\n")]
    for number, line in enumerate(lines):
        if line.strip() and not line.startswith("    ") and number:
            break
        if line.startswith("    "):
            lines[number] = ""
    return lines


def is_comment(line: str) -> bool:
    return line.lstrip().startswith(
        ("//", "/*", "*", "#", "--", "<!--", "(*", "{-")
    ) and not line.lstrip().startswith(("#[", "#i", "#d"))


def prose(rows: Iterable[str]) -> str:
    """Return what comment lines say, up to the first tag."""
    lines: list[str] = []
    for row in islice(rows, _MOST_ROWS):
        if row.startswith(("#!", "{-#")):
            continue
        row = row[:_MOST_CHARS]  # the patterns take the square of it for signs that nothing closes
        text = _SIGN.sub("", _SIGN.sub("", row)).strip()
        if lines and _TAG.match(text):
            break
        text = re.sub(r"^[@\\]brief\s+", "", text)
        if text and not any(map(str.isalnum, text)):
            text = ""
        if text.startswith(("@", "\\")) or _TO_TOOLS.match(text) or _POD.match(text):
            continue
        lines.append(unmarked_by(_MARKUP, text))
    return "\n".join(lines).strip()


def is_wreck(root: tree_sitter.Node) -> bool:
    """Say whether a syntax tree is so deep, or has so wide an error, that nothing can be read from it in good time.

    Queries take time that grows with the square of either. The depth is looked at in a few places: only many deep
    nodes cost much.
    """
    cursor, count = root.walk(), root.descendant_count
    for sample in range(_SAMPLES):
        cursor.goto_descendant((2 * sample + 1) * count // (2 * _SAMPLES))
        if cursor.depth > _MOST_DEPTH:
            return True
    if not root.has_error:
        return False
    errors = [root, *root.children[:_SAMPLES]] if root.child_count < _MOST_WIDTH else [root]
    return any(node.is_error and node.child_count > _MOST_WIDTH for node in errors)
