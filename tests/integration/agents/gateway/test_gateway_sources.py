"""What else a gateway mounts: an OpenAPI service on loopback, and the tools of a plug-in."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from metatree_agents.gateway._upstreams import ToolList, ToolsUpstream

from metatree import Tree, UserError, plugins, tool
from metatree.tools.tool import ToolGroup
from tests.integration.agents.gateway.gateway_bench import Bench

pytestmark = pytest.mark.integration

Run = Callable[[Coroutine[Any, Any, None]], None]
ORDER = {
    "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
    "security": [{"key": []}],
    "responses": {"200": {"description": "ok"}},
}
DESCRIPTION = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "paths": {
        "/orders/{id}": {
            "get": {**ORDER, "operationId": "get_order", "summary": "Get an order of the shop"},
            "delete": {**ORDER, "operationId": "cancel_order", "summary": "Cancel an order of the shop"},
        }
    },
    "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
}


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[str]]]:
    """A service; gives its address, and what it was asked."""
    asked: list[str] = []
    monkeypatch.setenv("SHOP_KEY", "k3y-of-the-shop")

    class Shop(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.command} {self.path} {self.headers['X-Key']}")
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps({"item": "kettle", "key": self.headers["X-Key"]}).encode())

        def do_DELETE(self) -> None:
            self.do_GET()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


def said(result: dict[str, Any]) -> str:
    return "\n".join(part.get("text", "") for part in result["content"])


def test_operations_of_a_service_are_tools(bench: Bench, run: Run, shop: tuple[str, list[str]]) -> None:
    url, asked = shop
    file = bench.folder / "shop.json"
    file.write_text(json.dumps(DESCRIPTION))
    entry = {
        "openapi": str(file),
        "server": url,
        "auth": {"key": "$SHOP_KEY"},
        "allow_private": True,
        "reuse": 60,
    }

    async def main() -> None:
        async with bench.gateway(shop=entry) as gateway:
            found = await gateway.find("get an order of the shop", 1)
            assert found.startswith("shop/get_order\n") and '"id":{"type":"integer"}' in found
            wrong = await gateway.call("shop/get_order", {"id": "seven"})
            assert wrong["isError"] and "id (integer, required)" in said(wrong) and not asked
            for _ in range(2):
                got = await gateway.call("shop/get_order", {"id": 7})
                assert "kettle" in said(got) and "[secret]" in said(got) and "k3y" not in said(got)
            assert asked == ["GET /orders/7 k3y-of-the-shop"]
            refused = await gateway.call("shop/cancel_order", {"id": 7})
            assert refused["isError"] and len(asked) == 1
        async with bench.gateway(allow=["shop/*"], shop=entry) as gateway:
            for _ in range(2):
                assert not (await gateway.call("shop/cancel_order", {"id": 7}, key="k")).get("isError")
            assert len(asked) == 2

    run(main())


def test_arguments_within_others_are_named_where_they_do_not_fit(
    bench: Bench, run: Run, shop: tuple[str, list[str]]
) -> None:
    line = {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]}
    inside = {"item": {"type": "string"}, "lines": {"type": "array", "items": line}}
    order = {"type": "object", "properties": inside, "required": ["item"]}
    body = {"content": {"application/json": {"schema": order}}}
    place = {"operationId": "place_order", "requestBody": body, "responses": {"200": {"description": "x"}}}
    file = bench.folder / "shop.json"
    file.write_text(json.dumps({**DESCRIPTION, "paths": {"/orders": {"post": place}}}))

    async def main() -> None:
        entry = {"openapi": str(file), "server": shop[0], "allow_private": True}
        async with bench.gateway(allow=["*"], shop=entry) as gateway:
            wrong = said(await gateway.call("shop/place_order", {"item": "kettle"}))
            assert "item: there is no such argument" in wrong and "\nbody.item (string, required)" in wrong
            assert not shop[1]

    run(main())


def test_operations_are_called_at_the_server_that_a_description_had_first(
    bench: Bench, run: Run, shop: tuple[str, list[str]]
) -> None:
    """The file may come with a clone, and another one with the next pull."""
    plain = {"operationId": "get_order", "responses": {"200": {"description": "ok"}}}
    other = {"operationId": "list_orders", "responses": {"200": {"description": "ok"}}}
    file = bench.folder / "shop.json"
    entry = {"openapi": str(file), "allow_private": True}

    def describe(server: str) -> None:
        paths = {"/orders": {"get": plain}, "/all": {"get": other}}
        file.write_text(json.dumps({**DESCRIPTION, "paths": paths, "servers": [{"url": server}]}))

    async def main() -> None:
        for server, operation in ((shop[0], "get_order"), ("http://127.0.0.1:9", "list_orders")):
            describe(server)
            async with bench.gateway(shop=entry) as gateway:
                got = await gateway.call(f"shop/{operation}", {})
                assert not got.get("isError"), said(got)
        assert len(shop[1]) == 2

    run(main())


def test_operations_of_a_description_that_had_no_server_are_called_at_none(
    bench: Bench, run: Run, shop: tuple[str, list[str]]
) -> None:
    plain = {"operationId": "get_order", "responses": {"200": {"description": "ok"}}}
    file = bench.folder / "shop.json"
    entry = {"openapi": str(file), "allow_private": True}

    async def main() -> None:
        for server in ("/", shop[0]):
            text = {**DESCRIPTION, "paths": {"/orders": {"get": plain}}, "servers": [{"url": server}]}
            file.write_text(json.dumps(text))
            async with bench.gateway(shop=entry) as gateway:
                assert "get_order" in await gateway.browse("shop")
                got = await gateway.call("shop/get_order", {})
                assert "the option `server`" in said(got)
        assert not shop[1]

    run(main())


def test_nothing_is_kept_where_a_link_leads_that_comes_in_the_place_of_its_folder(
    bench: Bench, shop: tuple[str, list[str]]
) -> None:
    plain = {"operationId": "get_order", "responses": {"200": {"description": "ok"}}}
    file = bench.folder / "shop.json"
    text = {**DESCRIPTION, "paths": {"/orders": {"get": plain}}, "servers": [{"url": shop[0]}]}
    file.write_text(json.dumps(text))
    kept, other = bench.folder / "kept", bench.folder / "other"
    for folder in (kept, other):
        folder.mkdir()

    async def ignore(tools: ToolList) -> None: ...

    (entry,) = bench.entries(shop={"openapi": str(file), "allow_private": True})
    upstream = ToolsUpstream(entry, ignore, folder=kept)
    kept.rmdir()
    kept.symlink_to(other)
    with pytest.raises(UserError, match="a link leads from"):
        upstream._made()
    assert list(other.iterdir()) == []


def test_a_description_that_became_a_link_is_not_followed(
    bench: Bench, run: Run, shop: tuple[str, list[str]]
) -> None:
    """To another description of the user's, whose operations would be called at the server of the first."""
    plain = {"operationId": "get_order", "responses": {"200": {"description": "ok"}}}
    other = {
        "operationId": "list_salaries",
        "summary": "PRIVATE",
        "responses": {"200": {"description": "ok"}},
    }
    file, private = bench.folder / "shop.json", bench.folder / "private.json"
    for place, operation in ((file, plain), (private, other)):
        text = {**DESCRIPTION, "paths": {"/all": {"get": operation}}, "servers": [{"url": shop[0]}]}
        place.write_text(json.dumps(text))

    async def main() -> None:
        async with bench.gateway(shop={"openapi": str(file), "allow_private": True}) as gateway:
            assert "get_order" in await gateway.browse("shop")
        file.unlink()
        file.symlink_to(private)
        async with bench.gateway(shop={"openapi": str(file), "allow_private": True}) as gateway:
            listed = await gateway.browse()
            assert "is a link to" in listed and "PRIVATE" not in listed
            assert (await gateway.call("shop/list_salaries", {}))["isError"] and not shop[1]
        async with bench.gateway(shop={"openapi": str(private), "allow_private": True}) as gateway:
            assert "PRIVATE" in await gateway.browse("shop")
        link = bench.folder / "link.json"
        link.symlink_to(private)
        for _ in range(2):
            async with bench.gateway(shop={"openapi": str(link), "allow_private": True}) as gateway:
                assert "PRIVATE" in await gateway.browse("shop")

    run(main())


def test_tools_of_a_plugin_are_mounted_where_they_need_no_tree(bench: Bench, run: Run) -> None:
    rung: list[int] = []

    @tool(kind="exploratory")
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @tool(kind="exploratory")
    def count_nodes(tree: Tree) -> int:
        """Count the nodes."""
        return len(tree)

    @tool(kind="exploratory", changes=True)
    def ring(times: int) -> str:
        """Ring the bell."""
        rung.append(times)
        return "ding"

    plugins.register(plugins.TOOLS, "bells", ToolGroup("all", "All", "All of them", (add, count_nodes, ring)))

    async def main() -> None:
        async with bench.gateway(bells={"plugin": "bells"}, none={"plugin": "no-such"}) as gateway:
            assert said(await gateway.call("bells/add", {"a": 2, "b": 3})) == "5"
            assert "b (integer, required)" in said(await gateway.call("bells/add", {"a": 2}))
            assert (await gateway.call("bells/ring", {"times": 1}))["isError"] and not rung
            listed = await gateway.browse()
            assert "count_nodes" not in await gateway.browse("bells") and "no plug-in 'no-such'" in listed

    try:
        run(main())
    finally:
        plugins.unregister(plugins.TOOLS, "bells")
