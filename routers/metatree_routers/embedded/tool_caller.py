"""The embedded tool caller: fills in arguments from the question's own words, without a model."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from metatree._util.threads import off_loop
from metatree.errors import BadModelAnswer
from metatree.protocols import ToolCaller, ToolRequest, Traits
from metatree_routers.query.terms import STOP_WORDS, raw_tokens, terms

_QUOTED = re.compile(
    r"`([^`\n]{1,200})`|\"([^\"\n]{1,200})\"|“([^”\n]{1,200})”|(?<!\w)'([^'\n]{2,200})'(?!\w)"
)
_CODE_NAME = re.compile(r"\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|\b\w*_\w+|\b[a-z]+[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*")
_URL = re.compile(r"https?://[^\s<>\"')\]]+")
_PATH = re.compile(
    r"(?<![\w/])(?:[\w.~-]*/)+[\w.-]+|\b[\w-]+\.(?:py|md|rst|txt|js|ts|json|toml|ya?ml|csv|html?|cfg|ini|sql)\b"
)
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\d)")
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?\b")
_COMMIT = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b")
_EMAIL = re.compile(r"\b[\w.+-]+@[\w-]+\.[\w.]+\b")

_PROPER_NAMES = re.compile(r"\b[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)*")

_WORDS_OF = {
    "pattern": ("pattern", "regex", "regexp", "grep"),
    "url": ("url", "uri", "link", "href", "website"),
    "path": ("path", "file", "filename", "folder", "directory", "dir"),
    "date": ("date", "day", "since", "until", "after", "before", "time"),
    "email": ("email", "mail"),
    "commit": ("commit", "revision", "sha", "rev"),
    "name": (
        "name",
        "symbol",
        "identifier",
        "function",
        "class",
        "method",
        "definition",
        "table",
        "column",
        "key",
    ),
    "word": ("keywords", "keyword", "terms", "term", "words", "word"),
    "query": ("query", "question", "search", "text", "prompt", "topic", "q"),
}
_LIMITS = ("max", "limit", "count", "top", "k", "n", "lines", "results", "size")
_DEFAULT_LIMIT = 20


# Rows of databases are looked up by `find_rows`, which takes a question; SQL is for models.
class EmbeddedToolCaller(ToolCaller):
    """Fills in a tool's arguments by the names and types in its schema.

    Patterns and names get what the questions quote, the identifiers in them, or their rarest words; queries get the
    question; paths, links and dates get those that the questions, the context or the node name. Each time that it is
    told of an error, the next candidate is tried. No text of a question is given to two arguments: `Set "port" to
    "9000"` has one for each, `Set "port" to 9000` none for the second, and the tool is not called.
    """

    traits = Traits(any_loop=True, by_rules=True)

    @off_loop
    def fill(self, request: ToolRequest) -> dict[str, Any]:
        """Return the required arguments, and those optional ones that the question names outright.

        Raises:
            BadModelAnswer: a required argument cannot be guessed, or all candidates were tried.
        """
        schema = request.tool.schema
        required = set(schema.get("required", ()))
        arguments: dict[str, Any] = {}
        candidates = 1
        asked = "\n".join(request.questions)
        for name, property_ in schema.get("properties", {}).items():
            if name not in required:
                continue
            values = [
                value
                for value in _values(name, _resolved(property_, schema), request)
                if not (isinstance(value, str) and value in arguments.values() and value in asked)
            ]
            if not values:
                raise BadModelAnswer(
                    f"no value for the argument {name!r} of {request.tool.id!r} is in the questions"
                )
            candidates = max(candidates, len(values))
            arguments[name] = values[min(len(request.errors), len(values) - 1)]
        if request.errors and len(request.errors) >= candidates:
            raise BadModelAnswer(f"all values that the questions offer for {request.tool.id!r} were tried")
        return arguments


def _resolved(property_: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a reference inside the schema, and take the first alternative that is not null."""
    for _ in range(5):
        if "$ref" in property_:
            target: Any = schema
            for step in str(property_["$ref"]).lstrip("#/").split("/"):
                target = target.get(step, {}) if isinstance(target, Mapping) else {}
            property_ = target
        else:
            choices = property_.get("anyOf") or property_.get("oneOf") or property_.get("allOf")
            if not choices:
                break
            property_ = next((c for c in choices if c.get("type") != "null"), {})
    return property_


def _values(name: str, property_: Mapping[str, Any], request: ToolRequest) -> Iterator[Any]:
    """Yield candidates for one argument, the likeliest first, each once."""
    seen: list[Any] = []
    for value in _candidates(name, property_, request):
        if value not in seen:
            seen.append(value)
            yield value


def _candidates(name: str, property_: Mapping[str, Any], request: ToolRequest) -> Iterator[Any]:
    if "const" in property_:
        yield property_["const"]
        return
    if property_.get("enum"):
        yield from _chosen(property_["enum"], request, property_.get("default"))
        return
    kind = property_.get("type", "string")
    kind = next((k for k in kind if k != "null"), "string") if isinstance(kind, list) else kind
    if kind in ("integer", "number"):
        yield from _numbers(name, property_, request, whole=kind == "integer")
    elif kind == "boolean":
        yield property_.get("default", False)
    elif kind == "array":
        items = list(
            _values(name.rstrip("s"), _resolved(property_.get("items", {}), request.tool.schema), request)
        )
        if items:
            yield items[: property_.get("maxItems", 5)]
    elif kind == "object":
        if not property_.get("required"):
            yield property_.get("default", {})
    else:
        yield from _strings(name, property_, request)


def _chosen(choices: Iterable[Any], request: ToolRequest, default: Any) -> Iterator[Any]:
    choices = list(choices)
    question_terms = set(terms(" ".join(request.questions)))
    yield from (choice for choice in choices if set(terms(str(choice))) & question_terms)
    if default in choices:
        yield default
    yield from choices


def _numbers(
    name: str, property_: Mapping[str, Any], request: ToolRequest, *, whole: bool
) -> Iterator[float | int]:
    low, high = property_.get("minimum", -math.inf), property_.get("maximum", math.inf)
    if "default" in property_:
        yield property_["default"]
    for match in _NUMBER.finditer(" ".join(request.questions)):
        number = float(match.group())
        if low <= number <= high and (not whole or number.is_integer()):
            yield int(number) if whole else number
    if set(_words(name)) & set(_LIMITS):
        limit = min(max(_DEFAULT_LIMIT, low), high)
        yield int(limit) if whole else float(limit)


def _strings(name: str, property_: Mapping[str, Any], request: ToolRequest) -> Iterator[str]:
    questions = [question.strip() for question in request.questions if question.strip()]
    wording = "\n".join(questions)
    text = f"{wording}\n{request.context}"
    meaning = _meaning(name, property_)
    match meaning:
        case "url":
            yield from _URL.findall(text)
        case "date":
            yield from _DATE.findall(text)
        case "commit":
            yield from _COMMIT.findall(text)
        case "email":
            yield from _EMAIL.findall(text)
        case "path":
            yield from _PATH.findall(text)
            if request.node.path:
                yield request.node.path
        case "pattern":
            yield from (re.escape(word) for word in _words_to_look_for(wording))
        case "name" | "word":
            yield from _words_to_look_for(wording)
        case "query":
            yield from questions
            yield from _words_to_look_for(wording)
        case _:
            yield from _quoted(wording)
            yield from _CODE_NAME.findall(wording)
            yield from _proper_names(questions)
    if "default" in property_ and isinstance(property_["default"], str):
        yield property_["default"]


def _meaning(name: str, property_: Mapping[str, Any]) -> str:
    """Say what an argument is for: by its name, else by its format, else by its description."""
    formats = {"uri": "url", "date": "date", "date-time": "date", "email": "email"}
    if property_.get("format") in formats:
        return formats[property_["format"]]
    for label in (_words(name), _words(f"{property_.get('title', '')} {property_.get('description', '')}")):
        for meaning, words in _WORDS_OF.items():
            if set(words) & set(label):
                return meaning
    return ""


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower())


def _quoted(text: str) -> list[str]:
    return [next(group for group in match.groups() if group) for match in _QUOTED.finditer(text)]


def _proper_names(questions: Iterable[str]) -> Iterator[str]:
    """Yield words with a capital inside a question, those in a row together: `New York`."""
    for question in questions:
        for match in _PROPER_NAMES.finditer(question):
            if question[: match.start()].strip(" ¿¡\"'(") and match.group().lower() not in STOP_WORDS:
                yield match.group()


def _words_to_look_for(text: str) -> Iterator[str]:
    """Yield what is quoted, identifiers, then single words: names and long words first."""
    yield from _quoted(text)
    yield from _CODE_NAME.findall(text)
    words = [word for word in raw_tokens(text) if word.lower() not in STOP_WORDS and len(word) > 2]
    first = words[0] if words else ""
    yield from sorted(
        dict.fromkeys(words), key=lambda word: (not (word[0].isupper() and word != first), -len(word), word)
    )
