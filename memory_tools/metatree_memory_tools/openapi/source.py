"""The type of source: an OpenAPI description's operations as nodes by tag, and the tool tree that calls them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from metatree._util.named_file import read_named, typed_path
from metatree._util.secret_text import masked
from metatree.errors import UserError
from metatree.node import Node, Source
from metatree.tools.tool import Tool, ToolGroup
from metatree.trees.layer import ROOT, Layer
from metatree.trees.source_types import Progress, SourceRef
from metatree.trees.tree import Tree
from metatree_memory_tools.openapi._call import call
from metatree_memory_tools.openapi._document import MAX_BYTES, Document, text_of
from metatree_memory_tools.openapi._operation import READS, described, text_about
from metatree_memory_tools.schema_tool import SchemaTool, built_nodes, only_on, with_origin
from metatree_memory_tools.text.descriptions import cut_masked, first_sentence, shorten_masked, with_names
from metatree_memory_tools.web.addresses import AddressRules
from metatree_memory_tools.web.fetch import FetchLimits, fetch
from metatree_memory_tools.web.freshness import page_fingerprint

KIND = "api operation"
CALL_S = 30.0
MAX_CHARS = 20_000
_MOST_OPERATIONS = 10_000


class OpenApi:
    """An OpenAPI description, version 3.0 or 3.1, JSON or YAML: `openapi:FILE` or `openapi:https://…`.

    Options: `server` for another address than the description names; `auth`, an object with the variable of the
    environment for each security scheme, `{"apiKey": "$SHOP_KEY"}`; `seconds` for one call; `allow_private` and
    `allow` as for web pages.
    """

    name = "openapi"
    version = "2"
    file_or_address = True

    def recognises(self, location: str) -> bool:
        """Whether a location begins with `openapi:`."""
        return location.lower().startswith("openapi:")

    def kept_options(self, source: SourceRef) -> Mapping[str, Any]:
        """Return options with the server of a file that is named, as it is named there now.

        The next pull may bring another one. Nor do credentials go where a file says.
        """
        place = _place(source)
        if _is_url(place) or "server" in source.options or source.options.get("auth"):
            return source.options
        try:
            server = _server(source, Document(_read(place, source), repr(place)), place)
        except UserError:  # the build says so
            return source.options
        return {**source.options, "server": server} if server else source.options

    def known_options(self, source: SourceRef) -> Mapping[str, Any]:
        """Return options with no server for a file of which none is kept: its operations are not called."""
        return source.options if _is_url(_place(source)) else {"server": "", **source.options}

    def fingerprint(self, source: SourceRef) -> str | None:
        """Return what changes with the file, or what the server says of its version; None when it says nothing."""
        place = _place(source)
        if _is_url(place):
            return page_fingerprint(place, rules=AddressRules.of(source.options), robots=None)
        try:
            state = typed_path(place).stat()
        except OSError as exc:
            raise UserError(f"cannot read the description {place!r}: {exc.strerror}") from exc
        return f"{state.st_size} {state.st_mtime_ns}"

    def nodes(
        self, source: SourceRef, *, progress: Progress | None = None
    ) -> Iterator[tuple[Node, str | None]]:
        """Yield the interface, its tags, and its operations."""
        place = _place(source)
        document = Document(_read(place, source), repr(place))
        base = _server(source, document, place)
        info = document.resolved(document.data.get("info"))
        included = [
            (described(document, method, path, operation, parameters), operation)
            for method, path, operation, parameters in islice(document.operations(), _MOST_OPERATIONS)
        ]
        left_out = document.operation_count() - len(included)
        description = text_of(info, "description") or text_of(info, "summary")
        title = shorten_masked(text_of(info, "title"), 100) or "OpenAPI description"
        names = _tags(document, [operation for _, operation in included], [made for made, _ in included])
        attributes: dict[str, Any] = {
            "operations": len(included),
            "server": base,
            "version": text_of(info, "version"),
            "schemes": _schemes(document),
        }
        if left_out:
            attributes["note"] = f"{left_out:,} further operations were left out"
        first = first_sentence(masked(description)[0]) or f"An interface with {len(included)} operations."
        top = Node(
            ROOT,
            title,
            with_names(first, "Parts", names),
            "\n\n".join([title, description]) if description else None,
        )
        yield _with(top, "api", attributes), None
        for name, about in names.items():
            yield (
                Node(
                    f"tags/{name}", shorten_masked(name, 100), first_sentence(masked(about)[0]), kind="group"
                ),
                ROOT,
            )
        used: set[str] = set()
        for number, (made, operation) in enumerate(included, start=1):
            yield _node(document, made, operation, used), f"tags/{_tag(operation, made)}"
            if progress is not None:
                progress(number, len(included), made["path"])

    def content(self, source: SourceRef, ref: Source) -> str:
        """Raise an error: the texts of all nodes are kept in the tree."""
        raise UserError(f"nothing is read from {source.location!r} when it is needed: refresh the tree")

    def tools_of(self, tree: Tree, source: SourceRef) -> Sequence[Tool | ToolGroup]:
        """Return a tool for each operation that can be called, in the groups of the description."""
        top = Layer(tree.index).node(source.mount or ROOT)
        groups: dict[str, list[Tool]] = {}
        for node in built_nodes(tree, source, KIND):
            if top is not None and not node.attributes["call"]["note"]:
                groups.setdefault(tree.parent(node) or "", []).append(_tool(source, top, node))
        tool_groups: list[Tool | ToolGroup] = []
        for parent, tools in groups.items():
            title = tree.get(parent).title
            tool_groups.append(ToolGroup(f"openapi:{parent}", title, f"Operations on {title}", tools))
        return tool_groups


def _tool(source: SourceRef, top: Node, node: Node) -> Tool:
    made = node.attributes["call"]
    reads = made["method"] in READS
    where = f"{source.location} {_called_server(source, top.attributes)} {made['method']} {made['path']}"
    return SchemaTool(
        with_origin(
            partial(_called if reads else _called_for_node, source, dict(top.attributes), made), where
        ),
        f"openapi:{node.id}",
        node.title,
        shorten_masked(node.content or node.description, 1_000),
        "exploratory" if reads else "interactive",
        reuse="run",
        timeout_s=_seconds(source) + 5.0,
        max_chars=MAX_CHARS,
        changes=not reads,
        repeatable=made["method"] in (*READS, "PUT", "DELETE", "OPTIONS"),
        schema=made["schema"],
        when=only_on(node.id),
        answers_outside_tree=True,
        needs="openapi",
    )


def _called_server(source: SourceRef, top: Mapping[str, Any]) -> str:
    """Return where calls go: the option first, since what the tree says of the server is not under its mark.

    What a file says of it does not count: see `OpenApi.kept_options`.
    """
    named = top["server"] if _is_url(_place(source)) else ""
    return str(source.options.get("server") or named)


def _called(
    source: SourceRef, top: Mapping[str, Any], made: Mapping[str, Any], arguments: dict[str, Any]
) -> str:
    auth = source.options.get("auth") or {}
    if not isinstance(auth, Mapping) or not all(str(value).startswith("$") for value in auth.values()):
        raise UserError("auth must map names of security schemes to variables of the environment, as '$NAME'")
    place, server = _place(source), _called_server(source, top)
    if not server and top["server"]:
        raise UserError(
            f"the description is a file, which names {top['server']!r} as its server: say with the option `server`"
            " what may be called, or name the file to a build again"
        )
    where = urlsplit(place).hostname
    if auth and server and where != urlsplit(server).hostname and not source.options.get("server"):
        raise UserError(
            f"the description is on {where!r} and names {server!r} as its server: say with the option `server` where"
            " the credentials may be sent"
        )
    if not server:
        raise UserError("the description names no server with a full address: give it as the option `server`")
    return call(
        server,
        made,
        arguments,
        schemes=top["schemes"],
        auth=auth,
        rules=AddressRules.of(source.options),
        seconds=_seconds(source),
    )


def _called_for_node(
    source: SourceRef, top: Mapping[str, Any], made: Mapping[str, Any], arguments: dict[str, Any]
) -> Node:
    """Call an operation that changes something; what it answers becomes a node."""
    text = _called(source, top, made, arguments)
    if len(text) > MAX_CHARS:
        text = f"{cut_masked(text, MAX_CHARS)}\n… cut: {len(text) - MAX_CHARS:,} more characters"
    return Node(
        "", f"{made['method']} {made['path']}", shorten_masked(text, 200), kind="tool result", content=text
    )


def _node(document: Document, made: dict[str, Any], operation: Mapping[str, Any], used: set[str]) -> Node:
    named = masked(text_of(operation, "operationId"))[0]  # ids and tags are kept as they are
    node_id = named if named and named not in used else f"{made['method']} {made['path']}"
    used.add(node_id)
    first = first_sentence(masked(text_of(operation, "description") or text_of(operation, "summary"))[0])
    title = shorten_masked(text_of(operation, "summary") or named or node_id, 100)
    old = " Deprecated." if operation.get("deprecated") is True else ""
    arguments = list(made["schema"].get("properties") or {})
    line = f"{made['method']} {made['path']}" + (f" — {first}" if first else "") + old
    node = Node(
        node_id,
        title,
        with_names(line, "Arguments", arguments),
        cut_masked(text_about(document, operation, made), MAX_CHARS),
    )
    return _with(node, KIND, {"call": made})


def _with(node: Node, kind: str, attributes: Mapping[str, Any]) -> Node:
    return Node(node.id, node.title, node.description, node.content, kind, attributes=attributes)


def _tag(operation: Mapping[str, Any], made: Mapping[str, Any]) -> str:
    tags = operation.get("tags")
    first = (
        tags[0] if isinstance(tags, list) and tags and isinstance(tags[0], str) and tags[0].strip() else ""
    )
    return masked(first.strip())[0] or next(
        (part for part in made["path"].split("/") if part and "{" not in part), "other"
    )


def _tags(
    document: Document, operations: Sequence[Mapping[str, Any]], made: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    """Return the tags in use with what is said of them; those that the description lists come first."""
    used: dict[str, list[str]] = {}
    for operation, each in zip(operations, made, strict=True):
        summary = masked(text_of(operation, "summary"))[0]  # before a sign stands behind a key
        used.setdefault(_tag(operation, each), []).append(summary or each["path"])
    listed = document.data.get("tags")
    known = {
        text_of(tag, "name"): text_of(tag, "description")
        for tag in (listed if isinstance(listed, list) else ())
        if isinstance(tag, Mapping)
    }
    order = [name for name in known if name in used] + [name for name in used if name not in known]
    return {name: known.get(name) or with_names("", "Operations", used[name]) for name in order}


_VARIABLE = re.compile(r"\{([^{}]{1,100})\}")
_MOST_URL = 2_000
"""Characters of an address, and of what stands for a variable in it."""


def _schemes(document: Document) -> dict[str, list[str]]:
    components = document.resolved(document.data.get("components"))
    listed = document.resolved(components.get("securitySchemes"))
    schemes = {}
    for name, each in listed.items():
        scheme = document.resolved(each)
        schemes[str(name)] = [masked(text_of(scheme, part))[0] for part in ("type", "scheme", "in", "name")]
        schemes[str(name)][1] = schemes[str(name)][1].lower()
    return schemes


def _server(source: SourceRef, document: Document, place: str) -> str:
    """Return the address of the server, '' when nothing says it in full."""
    given = source.options.get("server")
    if given is not None and not isinstance(given, str):
        raise UserError(f"server={given!r}: give the address of the server")
    url = given or ""
    if not url:
        listed = document.data.get("servers")
        first = listed[0] if isinstance(listed, list) and listed else {}
        first = first if isinstance(first, Mapping) else {}
        url = text_of(first, "url") or "/"
        variables = first.get("variables")
        url = _with_defaults(url, variables if isinstance(variables, Mapping) else {})
        if _is_url(place):
            url = urljoin(place, url)
    try:
        parts = urlsplit(url)
    except ValueError as exc:
        if given:
            raise UserError(f"server={given!r} is not a valid address: {exc}") from exc
        return ""
    if not given:  # the description's password is not kept; the option `auth` names one
        url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    is_kept = _is_url(url) and not parts.query and (given or not masked(url)[1])
    return url.rstrip("/") if is_kept else ""


def _with_defaults(url: str, variables: Mapping[Any, Any]) -> str:
    """Return the address of a server with the defaults of its variables, '' where it is too long for one.

    A default holds no variable (OpenAPI 3.1, 4.8.6), and is not looked at for one: they could double each other.
    """

    def default(name: re.Match[str]) -> str:
        variable = variables.get(name[1])
        return str(variable.get("default", ""))[:_MOST_URL] if isinstance(variable, Mapping) else name[0]

    filled = _VARIABLE.sub(default, url) if len(url) <= _MOST_URL else ""
    return filled if len(filled) <= _MOST_URL else ""


def _place(source: SourceRef) -> str:
    text = source.location
    if Path(text).is_absolute():
        return text  # to the letter: it is what was looked at
    return (text[8:] if text.lower().startswith("openapi:") else text).strip()


def _is_url(text: str) -> bool:
    return text.lower().startswith(("http://", "https://"))


def _read(place: str, source: SourceRef) -> bytes:
    if _is_url(place):
        limits = FetchLimits(max_bytes=MAX_BYTES)
        return fetch(place, rules=AddressRules.of(source.options), limits=limits, robots=None).body
    if "://" in place:
        raise UserError(
            f"{place!r} is refused: an OpenAPI description is a file or at an http or https address"
        )
    try:
        path = typed_path(place)
        if path.stat().st_size > MAX_BYTES:
            raise UserError(f"{place!r} is larger than {MAX_BYTES:,} bytes")
        return read_named(path)
    except OSError as exc:
        raise UserError(f"cannot read the description {place!r}: {exc.strerror}") from exc


def _seconds(source: SourceRef) -> float:
    seconds = source.options.get("seconds", CALL_S)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= 600:
        raise UserError(f"seconds={seconds!r}: give a number of seconds, at most 600")
    return float(seconds)
