"""OpenAPI descriptions as sources: operations as nodes, and as tools that call a real server on loopback."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from metatree_memory_tools import build_tree
from metatree_memory_tools.openapi import _document
from metatree_memory_tools.openapi._call import _is_private, variable_for
from metatree_memory_tools.openapi._document import Document
from metatree_memory_tools.openapi.source import OpenApi
from metatree_memory_tools.web.addresses import AddressRules

from metatree import Node, Tool, Tree, search
from metatree.errors import BadModelAnswer, FetchFailed, RefusedAddress, UserError
from metatree.protocols import RouteRequest
from metatree.testing._web_server import Asked, Reply, WebServer
from metatree.testing.parts import FunctionRouter
from metatree.tools.tool import ToolGroup
from metatree.trees.source_types import SourceRef
from metatree.trees.sources import known_source

pytestmark = pytest.mark.integration

DESCRIPTION = (Path(__file__).parent / "servers" / "shop.yaml").read_bytes()
JSON = "application/json"


def _order(asked: Asked) -> Reply:
    order = {"order": 1234, "state": "It left the warehouse on Tuesday.", "key": asked.headers.get("x-key")}
    return Reply("", 204) if asked.method == "DELETE" else Reply(json.dumps(order), kind=JSON)


@pytest.fixture
def shop() -> Iterator[WebServer]:
    routes: dict[str, Any] = {
        "/openapi.yaml": Reply(DESCRIPTION, kind="application/yaml", headers={"ETag": '"1"'}),
        "/api/orders/1234": _order,
        "/api/orders/7": Reply('{"error": "no such order"}', 404, kind=JSON),
        "/api/orders": Reply('{"order": 1235}', 201, kind=JSON),
        "/api/stock": Reply('["a red chair"]', kind=JSON),
        "/api/files/picture": Reply(b"\x89PNG", kind="image/png"),
    }
    with WebServer(routes) as server:
        yield server


@pytest.fixture
def tree(shop: WebServer, tmp_path: Path) -> Iterator[Tree]:
    source = SourceRef(f"{shop.url}/openapi.yaml", {"allow": [shop.host]}, "shop", "openapi")
    with build_tree(source, out=tmp_path / "tree") as built:
        yield built
    shop.asked.clear()


def _tools(tree: Tree) -> dict[str, Tool]:
    groups = OpenApi().tools_of(tree, tree.sources()[0])
    tools = [tool for group in groups if isinstance(group, ToolGroup) for tool in group.tools]
    return {tool.id.removeprefix("openapi:shop/"): tool for tool in tools if isinstance(tool, Tool)}


@pytest.fixture
def call(tree: Tree) -> Callable[..., Any]:
    tools = _tools(tree)

    def made(name: str, /, **arguments: object) -> Any:
        tool = tools[name]
        return tool.function(**tool.bound(tool.validated(arguments), {}))

    return made


def test_operations_become_nodes_by_tag(tree: Tree) -> None:
    (top,) = tree.children()
    assert (top.title, top.kind) == ("Little shop", "api")
    assert top.description == "Orders and stock of a little shop. Parts: orders, stock, files, pictures."
    assert top.attributes["version"] == "2024-05-01"
    orders = tree.get("shop/tags/orders")
    assert orders.description == "What customers ordered."
    assert [node.title for node in tree.children(orders)] == [
        "Show an order",
        "Cancel an order",
        "Place an order",
    ]
    node = tree.get("shop/getOrder")
    assert node.description.startswith("GET /orders/{order_id} — Say where an order is and what was ordered.")
    assert "order_id (integer, required): Number of the order." in tree.content(node)
    assert "404: There is none" in tree.content(node)
    assert "cannot be called" in tree.content("shop/addPicture")


def test_reading_operations_are_free_and_others_are_not(tree: Tree) -> None:
    tools = _tools(tree)
    assert {name: tool.changes for name, tool in tools.items()} == {
        "getOrder": False,
        "cancelOrder": True,
        "placeOrder": True,
        "listStock": False,
        "HEAD /stock": False,
        "getFile": False,
    }
    assert all(tool.kind == ("interactive" if tool.changes else "exploratory") for tool in tools.values())


def test_a_question_that_no_node_answers_is_answered_by_an_operation(tree: Tree) -> None:
    question = "Did order 1234 leave the warehouse?"
    assert search(question, tree=tree, own_tools=False, sure=0.4).ended == "exhausted"
    result = search(question, tree=tree, sure=0.4)
    assert "left the warehouse on Tuesday" in str(result.answer)
    events = [(entry.event, entry.node) for entry in result.trace if entry.event in ("tool", "read")]
    assert events[-2:] == [("tool", "shop/getOrder"), ("read", "shop/getOrder")]
    call = next(entry for entry in result.trace if entry.event == "tool")
    assert call.data["arguments"] == {"order_id": 1234}


def test_what_is_said_of_an_operation_does_not_answer_for_it(tree: Tree) -> None:
    question = "Where is order 1234?"
    alone = search(question, tree=tree, own_tools=False)
    assert alone.ended == "exhausted" and not any(answer.complete for answer in alone.answers)
    assert "left the warehouse on Tuesday" in str(search(question, tree=tree).answer)


def test_arguments_go_where_they_belong(shop: WebServer, call: Callable[..., Any]) -> None:
    call(
        "listStock",
        colour=["red", "blue"],
        filter={"size": "a&b"},
        ids=[1, 2],
        session="s;1",
        **{"X-Trace": "t"},
    )
    request = shop.asked[-1]
    assert request.path == "/api/stock?colour=red&colour=blue&filter%5Bsize%5D=a%26b&ids=1%2C2"
    assert request.headers["x-trace"] == "t" and request.headers["cookie"] == "session=s%3B1"
    assert "authorization" not in request.headers


def test_a_body_is_sent_as_json(shop: WebServer, call: Callable[..., Any]) -> None:
    made = call("placeOrder", body={"article": "chair", "amount": 2})
    assert isinstance(made, Node) and made.content == '{"order": 1235}'
    request = shop.asked[-1]
    assert (request.method, request.path, request.headers["content-type"]) == ("POST", "/api/orders", JSON)
    assert json.loads(request.body) == {"article": "chair", "amount": 2}


def test_a_path_cannot_be_left_by_an_argument(shop: WebServer, call: Callable[..., Any]) -> None:
    for name in ("..", ".", ""):
        with pytest.raises(UserError):
            call("getFile", name=name)
    for name in (
        "../../admin",
        "a/../../admin",
        "x?y=1",
        "x#y",
        "//evil.example/",
        "@evil.example",
        "%2e%2e",
    ):
        with pytest.raises(FetchFailed, match="404"):
            call("getFile", name=name)
        assert shop.asked[-1].path.startswith("/api/files/") and "/" not in shop.asked[-1].path[11:]


def test_headers_cannot_be_added_by_an_argument(shop: WebServer, call: Callable[..., Any]) -> None:
    call("listStock", **{"X-Trace": "a\r\nX-Evil: 1"})
    assert "x-evil" not in shop.asked[-1].headers


def test_arguments_are_checked(tree: Tree) -> None:
    tools = _tools(tree)
    for name, wrong in (
        ("getOrder", {}),
        ("getOrder", {"order_id": "x"}),
        ("getOrder", {"order_id": 1, "other": 2}),
        ("listStock", {"colour": ["green"]}),
        ("placeOrder", {"body": {"article": "chair"}}),
        ("placeOrder", {"body": {"article": "chair", "amount": 0}}),
    ):
        with pytest.raises(BadModelAnswer):
            tools[name].validated(wrong)
    tools["listStock"].validated({"session": None})


def test_a_pattern_of_the_description_is_not_run(tree: Tree) -> None:
    """`^(a+)+$` would take longer than the universe is old."""
    start = time.process_time()
    _tools(tree)["placeOrder"].validated({"body": {"article": "a" * 60 + "!", "amount": 1}})
    assert time.process_time() - start < 5


def test_errors_and_other_answers(call: Callable[..., Any]) -> None:
    with pytest.raises(FetchFailed, match=r"GET /orders/\{order_id\} answers 404: .*no such order"):
        call("getOrder", order_id=7)
    assert call("HEAD /stock").startswith("status 200\ncontent-type: application/json")
    assert call("getFile", name="picture") == "[image/png, 4 bytes]"


def test_credentials_come_from_the_environment_and_stay_out_of_what_is_kept(
    shop: WebServer, tree: Tree, call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("METATREE_AUTH_127_0_0_1", "s3cret-key")
    assert search("Did order 1234 leave the warehouse?", tree=tree).ended == "answered"
    assert (
        next(request for request in shop.asked if "orders" in request.path).headers["x-key"] == "s3cret-key"
    )
    monkeypatch.setenv("METATREE_AUTH_127_0_0_1", "me:passw0rd")
    call("cancelOrder", order_id=1234)
    packed = b64encode(b"me:passw0rd").decode()
    assert shop.asked[-1].headers["authorization"] == f"Basic {packed}"
    stored = b"".join(path.read_bytes() for path in (tmp_path / "tree").iterdir() if path.is_file())
    assert b"[secret]" in stored, "the server said the key in its answer"
    for secret in (b"s3cret-key", b"passw0rd", packed.encode()):
        assert secret not in stored


def test_an_error_does_not_tell_the_credentials(
    shop: WebServer, call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METATREE_AUTH_127_0_0_1", "s3cret-key")
    shop.routes["/api/orders/7"] = lambda asked: Reply(
        f"wrong key {asked.headers['x-key']}", 403, kind="text/plain"
    )
    with pytest.raises(FetchFailed, match=r"wrong key \[secret\]") as caught:
        call("getOrder", order_id=7)
    assert "s3cret" not in str(caught.value) and "s3cret" not in repr(caught.value.__dict__)


def test_no_two_hosts_share_a_variable() -> None:
    hosts = ["api.example.com", "api-example.com", "api.example-com", "apiexample.com", "api--example.com"]
    assert len({variable_for(host) for host in hosts}) == len(hosts)
    assert not any(map(variable_for, ["api_example.com", "apiéexample.com", "api..com", "-a.com", "::1", ""]))


def test_credentials_are_not_sent_as_plain_text_to_others() -> None:
    rules = AddressRules(allow=("wiki.lan:8080",))
    private = [
        "https://a.example.org",
        "http://127.0.0.1:8",
        "http://10.1.2.3",
        "http://localhost:8",
        "http://wiki.lan:8080",
    ]
    assert all(_is_private(base, rules) for base in private)
    assert not any(
        _is_private(base, rules) for base in ("http://a.example.org", "http://8.8.8.8", "http://lan")
    )


def test_named_credentials_do_not_go_to_another_host_than_that_of_the_description(
    shop: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", "s3cret-key")
    text = DESCRIPTION.replace(b'default: "/api"', b'default: "http://localhost:%d/api"' % shop.port)
    shop.routes["/openapi.yaml"] = Reply(text, kind="application/yaml")
    options: dict[str, Any] = {"allow_private": True, "auth": {"key": "$SHOP_KEY"}}
    source = SourceRef(f"{shop.url}/openapi.yaml", options, "shop", "openapi")
    error = "say with the option `server`"
    with build_tree(source, out=tmp_path / "other") as tree, pytest.raises(UserError, match=error):
        _tools(tree)["getOrder"].function(arguments={"order_id": 1234})
    source = SourceRef(source.location, {**options, "server": f"{shop.url}/api"}, "shop", "openapi")
    with build_tree(source, out=tmp_path / "named") as tree:
        assert "[secret]" in _tools(tree)["getOrder"].function(arguments={"order_id": 1234})


def test_named_credentials_do_not_go_where_a_file_says(
    shop: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file may come with a clone, and another one with the next pull."""
    monkeypatch.setenv("SHOP_KEY", "s3cret-key")
    file = tmp_path / "shop.yaml"
    file.write_bytes(DESCRIPTION.replace(b'default: "/api"', b'default: "%s/api"' % shop.url.encode()))
    options: dict[str, Any] = {"allow_private": True, "auth": {"key": "$SHOP_KEY"}}
    source = SourceRef(str(file), options, "shop", "openapi")
    count = len(shop.asked)
    error = "say with the option `server`"
    with build_tree(source, out=tmp_path / "tree") as tree, pytest.raises(UserError, match=error):
        _tools(tree)["getOrder"].function(arguments={"order_id": 1234})
    assert len(shop.asked) == count
    source = SourceRef(str(file), {**options, "server": f"{shop.url}/api"}, "shop", "openapi")
    with build_tree(source, out=tmp_path / "named") as tree:
        assert "[secret]" in _tools(tree)["getOrder"].function(arguments={"order_id": 1234})
        # What an index says of the server is not under its mark.
        text = "UPDATE node SET attributes = json_set(attributes, '$.server', 'https://evil.example')"
        assert tree.index.execute(f"{text} WHERE id = 'shop'")
        assert "[secret]" in _tools(tree)["getOrder"].function(arguments={"order_id": 1234})


def test_calls_go_to_the_server_that_a_file_had_when_it_was_named(shop: WebServer, tmp_path: Path) -> None:
    """Not to that which a pull brings, nor to that of a source which an index has that was accepted."""
    file = tmp_path / "shop.yaml"
    file.write_bytes(DESCRIPTION.replace(b'default: "/api"', b'default: "%s/api"' % shop.url.encode()))
    given = SourceRef(str(file), {"allow_private": True}, "", "openapi")
    with build_tree(given, out=tmp_path / "tree") as tree:
        file.write_bytes(DESCRIPTION.replace(b'default: "/api"', b'default: "http://127.0.0.1:9/api"'))
        tree.refresh()
        assert "warehouse" in _tools_of(tree)["openapi:shop.yaml/getOrder"].function(
            arguments={"order_id": 1234}
        )
    kept = known_source(SourceRef(str(file), {"allow_private": True}, "shop", "openapi"))
    with build_tree(kept, out=tmp_path / "kept") as tree, pytest.raises(UserError, match="option `server`"):
        _tools_of(tree)["openapi:shop/getOrder"].function(arguments={"order_id": 1234})
    with_key = SourceRef(str(file), {"auth": {"key": "$SHOP_KEY"}}, "", "openapi")
    assert dict(OpenApi().kept_options(with_key)) == {"auth": {"key": "$SHOP_KEY"}}


def test_the_server_that_a_description_names_is_held_to_the_address_rules(tmp_path: Path) -> None:
    for server in ("http://127.0.0.1:9/api", "http://169.254.169.254/", "file:///etc", "ftp://example.org"):
        file = tmp_path / "shop.yaml"
        file.write_bytes(DESCRIPTION.replace(b'default: "/api"', f'default: "{server}"'.encode()))
        with build_tree(f"openapi:{file}", out=tmp_path / "tree") as tree:
            tool = next(tool for name, tool in _tools_of(tree).items() if name.endswith("getOrder"))
            with pytest.raises((RefusedAddress, UserError)):
                tool.function(arguments={"order_id": 1})


def _tools_of(tree: Tree) -> dict[str, Tool]:
    groups = OpenApi().tools_of(tree, tree.sources()[0])
    return {
        t.id: t
        for group in groups
        if isinstance(group, ToolGroup)
        for t in group.tools
        if isinstance(t, Tool)
    }


def test_what_changes_something_needs_permission(shop: WebServer, tree: Tree) -> None:
    def cancel(request: RouteRequest) -> str | None:
        ids = [option.id for option in request.options]
        return next((each for end in ("cancelOrder", "orders") for each in ids if each.endswith(end)), None)

    class Caller:
        async def fill(self, request: object) -> dict[str, object]:
            return {"order_id": 1234}

    refused = search("Is Zanzibar free?", tree=tree, router=FunctionRouter(cancel), tool_caller=Caller())
    assert any("permission" in entry.reason for entry in refused.trace if entry.event == "tool")
    assert all(sent.method in ("GET", "HEAD") for sent in shop.asked)
    search(
        "Is Zanzibar free?",
        tree=tree,
        router=FunctionRouter(cancel),
        tool_caller=Caller(),
        permit=lambda *_: True,
    )
    assert [sent.path for sent in shop.asked if sent.method == "DELETE"] == ["/api/orders/1234"]


def test_a_description_is_read_again_when_it_changes(shop: WebServer, tree: Tree) -> None:
    tree.refresh()
    assert [request.method for request in shop.asked] == ["GET", "HEAD"] or shop.asked[-1].method == "HEAD"
    assert not tree.stale()
    changed = DESCRIPTION.replace(b"Show an order", b"Look an order up")
    shop.routes["/openapi.yaml"] = Reply(changed, kind="application/yaml", headers={"ETag": '"2"'})
    assert tree.stale()
    tree.refresh()
    assert tree.get("shop/getOrder").title == "Look an order up"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b"{", "is neither JSON nor YAML|is no JSON"),
        (b"a: [1", "is neither JSON nor YAML"),
        (b"[]", "holds no object"),
        (b'{"swagger": "2.0"}', "Swagger 2"),
        (b'{"openapi": 3}', "no OpenAPI description of version 3"),
        (b"[" * 100_000, "nested too deep"),
        (b"openapi: 3.1.0\n? [1, 2]\n: 3", "no YAML that can be read|neither JSON nor YAML"),
        (b"!!python/object/apply:os.system ['echo']", "neither JSON nor YAML"),
    ],
)
def test_what_is_no_description_is_an_error(text: bytes, error: str) -> None:
    with pytest.raises(UserError, match=error):
        Document(text, "'it'")


def test_a_description_that_lies_about_its_form_gives_nodes_all_the_same(tmp_path: Path) -> None:
    data = {
        "openapi": "3.1.0",
        "info": None,
        "tags": 7,
        "servers": "none",
        "security": {},
        "components": {"securitySchemes": [], "schemas": {"A": {"$ref": "#/components/schemas/A"}}},
        "paths": {
            "/a/{b}/{c}": {
                "get": {
                    "tags": [None],
                    "parameters": [None, {"name": 3}, {"$ref": "#/nowhere"}],
                    "responses": [],
                },
                "post": {
                    "requestBody": {
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}
                    }
                },
                "put": 7,
            },
            "/b": None,
        },
    }
    file = tmp_path / "lies.json"
    file.write_text(json.dumps(data))
    with build_tree(f"openapi:{file}", out=tmp_path / "tree") as tree:
        kinds = [node.kind for _, node in tree.walk()]
        assert kinds == ["folder", "api", "group", "api operation", "api operation"]
        call = tree.get("lies.json/GET /a/{b}/{c}").attributes["call"]
        assert call["schema"]["required"] == ["b", "c"]


def test_a_bomb_of_references_is_cut(tmp_path: Path) -> None:
    """Ten levels of schemas, each with the next one ten times: written out it would be 10^10 of them."""
    schemas = {
        f"S{n}": {"properties": {f"p{i}": {"$ref": f"#/components/schemas/S{n + 1}"} for i in range(10)}}
        for n in range(10)
    }
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/S0"}}}}
    data = {
        "openapi": "3.1.0",
        "paths": {"/x": {"post": {"requestBody": body}}},
        "components": {"schemas": schemas},
    }
    file = tmp_path / "bomb.json"
    file.write_text(json.dumps(data))
    with build_tree(f"openapi:{file}", out=tmp_path / "tree") as tree:
        assert len(json.dumps(dict(tree.get("bomb.json/POST /x").attributes))) < 60_000


def _built(tmp_path: Path, paths: dict[str, Any], **more: Any) -> list[str]:
    """Return the titles of the nodes of a description with these paths and one operation."""
    data = {"openapi": "3.1.0", "paths": {**paths, "/x": {"get": {"summary": "The tea."}}}, **more}
    file = tmp_path / "a.json"
    file.write_text(json.dumps(data))
    with build_tree(f"openapi:{file}", out=tmp_path / "tree") as tree:
        return [node.id for _, node in tree.walk()]


def test_variables_of_a_server_do_not_double_each_other(tmp_path: Path) -> None:
    variables = {f"v{n}": {"default": f"{{v{n + 1}}}{{v{n + 1}}}"} for n in range(40)}
    server = {"url": "https://{v0}.example.org/", "variables": variables}
    assert "a.json/GET /x" in _built(tmp_path, {}, servers=[server])


@pytest.mark.parametrize("url", ["https://[::1/", "https://{" + "a" * 5_000 + "}/", "https://" + "a" * 5_000])
def test_what_is_no_address_of_a_server_is_none(url: str, tmp_path: Path) -> None:
    assert "a.json/GET /x" in _built(tmp_path, {}, servers=[{"url": url}])


def test_a_long_reference_leads_nowhere_and_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = ["p"]

    def counted(text: str) -> str:
        steps.append(text)
        return unquote(text)

    monkeypatch.setattr(_document, "unquote", counted)
    paths = {f"/{n}": {"$ref": "#/p"} for n in range(50)}
    assert "a.json/GET /x" in _built(tmp_path, paths, p={"$ref": "#/" + "%41" * 2_000})
    assert max(map(len, steps)) < 1_000


def test_a_bomb_of_aliases_is_cut(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    operation = "paths: {/x: {get: {parameters: [{name: q, in: query, schema: {enum: *a9, default: *a9}}]}}}"
    file = tmp_path / "bomb.yaml"
    file.write_text("\n".join(["openapi: 3.1.0", *lines, operation]))
    with build_tree(f"openapi:{file}", out=tmp_path / "tree") as tree:
        assert "enum" not in str(tree.get("bomb.yaml/GET /x").attributes)
