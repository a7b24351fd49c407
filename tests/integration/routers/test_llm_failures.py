"""Whatever a model server does wrong has its typed error or its retry, and is counted."""

from __future__ import annotations

import asyncio
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from metatree_routers.llm import LLMRouter
from metatree_routers.llm.errors import (
    AnswerRefused,
    BadKey,
    EmptyAnswer,
    NotAModelServer,
    OutOfCredit,
    PromptTooLong,
    RequestRejected,
    Truncated,
    UnknownModel,
)

from metatree import Limits, Tree, search
from metatree.errors import BadModelAnswer, RouterUnavailable, UserError
from metatree.testing._model_server import (
    DROP,
    EMPTY,
    HTML,
    REFUSAL,
    ModelServer,
    Reply,
    hang,
    status,
    truncated,
)

pytestmark = pytest.mark.integration
Serve = Callable[..., ModelServer]
RouterFor = Callable[..., LLMRouter]
RequestOf = Callable[..., Any]

FINE = {"reason": "fits", "choice": "B", "ruled_out": []}


@pytest.mark.parametrize(
    ("reply", "error", "says"),
    [
        (truncated(), Truncated, "cut off"),
        (REFUSAL, AnswerRefused, "cannot help"),
        (Reply("{}", finish="content_filter"), AnswerRefused, "filter"),
        (EMPTY, EmptyAnswer, "empty"),
        ("I would go for the second one.", BadModelAnswer, "no JSON object"),
        ({"reason": "x", "choice": "Z", "ruled_out": []}, BadModelAnswer, "'Z' is none of the labels"),
        ({"reason": "x"}, BadModelAnswer, "choice"),
        ({"choice": ["A"]}, BadModelAnswer, "choice"),
        (status(401, "Incorrect API key provided"), BadKey, "OPENAI_API_KEY"),
        (status(403, "no access"), BadKey, "403"),
        (status(404, "The model `stub` does not exist", kind="model_not_found"), UnknownModel, "'stub'"),
        (status(404, "Not Found"), NotAModelServer, "/v1"),
        (status(429, "slow down"), RouterUnavailable, "429"),
        (status(429, "You exceeded your current quota", kind="insufficient_quota"), OutOfCredit, "credit"),
        (
            status(429, "Rate limit reached; to raise it see account/billing", kind="rate_limit_exceeded"),
            RouterUnavailable,
            "429",
        ),
        (status(402, "Insufficient balance"), OutOfCredit, "402"),
        (status(500, "oops"), RouterUnavailable, "500"),
        (status(503, "loading the model"), RouterUnavailable, "503"),
        (
            status(400, "maximum context length is 512 tokens", kind="context_length_exceeded"),
            PromptTooLong,
            "512",
        ),
        (status(400, "content_filter: blocked"), AnswerRefused, "filter"),
        (DROP, RouterUnavailable, "cannot be reached"),
        (HTML, RouterUnavailable, "no chat completion"),
        (Reply(raw="{not json"), RouterUnavailable, "no JSON"),
        (Reply(raw='{"hello": "world"}'), RouterUnavailable, "no chat completion"),
    ],
)
def test_each_failure_has_its_error(
    serve: Serve, router_for: RouterFor, request_of: RequestOf, reply: Any, error: type[Exception], says: str
) -> None:
    server = serve(reply)
    with pytest.raises(error, match=None) as caught:
        asyncio.run(router_for(server).route(request_of("a.py", "b.py")))
    assert type(caught.value) is error
    assert says in str(caught.value)
    assert len(server.requests) == 1, "one effect is one request"


def test_a_server_that_is_not_there_is_named() -> None:
    router = LLMRouter("m", base_url="http://127.0.0.1:9/v1", cache=False)
    from metatree import Node, Option, RouteRequest

    request = RouteRequest(("q",), "", Node("n", "n"), (Option("a", "a"), Option("b", "b")))
    with pytest.raises(RouterUnavailable, match=r"127\.0\.0\.1:9/v1 cannot be reached"):
        asyncio.run(router.route(request))


def test_an_answer_that_comes_too_late_is_a_timeout(
    serve: Serve, router_for: RouterFor, request_of: RequestOf
) -> None:
    server = serve(hang(5))
    with pytest.raises(RouterUnavailable, match="did not answer"):
        asyncio.run(router_for(server, timeout_s=0.1).route(request_of("a.py", "b.py")))


@pytest.mark.parametrize("code", [200, 500])
@pytest.mark.parametrize("compressed", [False, True])
def test_an_answer_without_end_is_read_so_far_and_no_farther(
    code: int, compressed: bool, request_of: RequestOf
) -> None:
    sent = [0]

    class Endless(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(code)
            self.send_header("content-type", "application/json")
            if compressed:
                self.send_header("content-encoding", "gzip")
            self.end_headers()
            chunk = b" " * 1_000_000
            packed = zlib.compressobj(wbits=31)
            try:
                while sent[0] < 1_000_000_000:
                    self.wfile.write(packed.compress(chunk) if compressed else chunk)
                    sent[0] += len(chunk)
            except OSError:
                pass

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Endless) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        router = LLMRouter("stub", base_url=f"http://127.0.0.1:{server.server_port}/v1", cache=False)
        with pytest.raises(BadModelAnswer, match="answered more than"):
            asyncio.run(router.route(request_of("a.py", "b.py")))
        server.shutdown()
    assert sent[0] < 100_000_000


@pytest.mark.parametrize(("said", "seconds"), [("7", 7.0), ("0.5", 0.5), ("nonsense", None), (None, None)])
def test_retry_after_is_passed_on(
    serve: Serve, router_for: RouterFor, request_of: RequestOf, said: str | None, seconds: float | None
) -> None:
    server = serve(status(429, "slow down", retry_after=said))
    with pytest.raises(RouterUnavailable) as caught:
        asyncio.run(router_for(server).route(request_of("a.py", "b.py")))
    assert caught.value.retry_after_s == seconds


def test_retry_after_may_be_a_date(serve: Serve, router_for: RouterFor, request_of: RequestOf) -> None:
    from email.utils import formatdate

    server = serve(status(503, "later", retry_after=formatdate(time.time() + 20, usegmt=True)))
    with pytest.raises(RouterUnavailable) as caught:
        asyncio.run(router_for(server).route(request_of("a.py", "b.py")))
    assert caught.value.retry_after_s is not None
    assert 15 < caught.value.retry_after_s <= 20


def test_a_bad_answer_is_shown_back_and_each_attempt_is_counted(
    serve: Serve, router_for: RouterFor, tree: Tree, right_model: Any
) -> None:
    server = serve(right_model("Auth", "tokens.py"))
    server.then("no idea", {"reason": "x", "choice": "Q", "ruled_out": []})
    result = search("How long do tokens live?", tree=tree, router=router_for(server), evidence=False)
    assert result.ended == "answered"
    assert "there is no JSON object" in server.requests[1].user
    assert "'Q' is none of the labels offered" in server.requests[2].user
    assert result.usage.failed_attempts == 2
    assert result.usage.model_calls == len(server.requests)
    assert result.usage.tokens_in > sum(len(r.user) for r in server.requests) / 4


def test_after_bad_answers_the_order_of_the_tree_decides_and_the_trace_says_so(
    serve: Serve, router_for: RouterFor, tree: Tree
) -> None:
    server = serve("never any JSON")
    result = search("q", tree=tree, router=router_for(server), evidence=False, returns="nodes", k=1)
    routes = [entry for entry in result.trace if entry.event == "route"]
    assert [entry.data["by"] for entry in routes[:2]] == ["nobody", "tree"]
    assert "has not the form" in routes[0].reason
    assert result.usage.model_calls == len(server.requests) == result.usage.failed_attempts


def test_server_errors_are_not_shown_to_the_model(
    serve: Serve, router_for: RouterFor, tree: Tree, right_model: Any
) -> None:
    server = serve(right_model("Auth", "tokens.py")).then(status(503, "restarting now", retry_after="0.01"))
    result = search("How long do tokens live?", tree=tree, router=router_for(server), evidence=False)
    assert result.ended == "answered"
    assert server.requests[0].user == server.requests[1].user
    assert result.usage.failed_attempts == 1


def test_an_answer_cut_off_gets_more_room_the_next_time(
    serve: Serve, router_for: RouterFor, tree: Tree, right_model: Any
) -> None:
    server = serve(right_model("Auth", "tokens.py")).then(truncated())
    search("How long do tokens live?", tree=tree, router=router_for(server), evidence=False)
    first, second = server.requests[:2]
    assert second.body["max_tokens"] == 2 * first.body["max_tokens"]
    assert "use fewer words" in second.user


@pytest.mark.parametrize("reply", [status(401, "Incorrect API key"), status(404, "model not found")])
def test_wrong_settings_stop_the_run_and_resume_goes_on(
    serve: Serve, router_for: RouterFor, tree: Tree, right_model: Any, reply: Any
) -> None:
    from metatree import resume

    server = serve(reply)
    router = router_for(server)
    stopped = search("How long do tokens live?", tree=tree, router=router, evidence=False, run_id="r")
    assert stopped.ended == "failed"
    assert type(stopped.detail) is str and ("BadKey" in stopped.detail or "UnknownModel" in stopped.detail)
    assert len(server.requests) == 1, "it is not asked again and again"
    server.answer = right_model("Auth", "tokens.py")
    result = resume("r", tree=tree, router=router, evidence=False)
    assert (result.ended, result.answer) == ("answered", "one hour")


def test_a_prompt_too_long_for_the_server_is_followed_by_shorter_ones(
    serve: Serve, router_for: RouterFor, request_of: RequestOf
) -> None:
    def small(request: Any) -> Any:
        if len(request.user) > 3_200:
            return status(400, "the request exceeds the available context size (1024 tokens)")
        return FINE

    server = serve(small)
    router = router_for(server, comfortable_tokens=2_000)
    request = request_of(*(f"file_{n}.py with a long title" for n in range(50)))
    assert router.capacity(request) == 50
    with pytest.raises(PromptTooLong):
        asyncio.run(router.route(request))
    fits = router.capacity(request)
    assert 2 <= fits < 50
    shorter = replace(request, options=request.options[:fits])
    assert asyncio.run(router.route(shorter)).choice == "id-1"


def test_a_rejected_request_is_no_retry_for_ever(
    serve: Serve, router_for: RouterFor, request_of: RequestOf
) -> None:
    server = serve(FINE)
    router = router_for(server)
    asyncio.run(router.route(request_of("a.py", "b.py")))
    server.then(status(400, "unknown field `logit_bias`"))
    with pytest.raises(RequestRejected, match="logit_bias"):
        asyncio.run(router.route(request_of("a.py", "b.py")))


def test_a_busy_server_holds_back_all_calls(
    serve: Serve, router_for: RouterFor, request_of: RequestOf
) -> None:
    server = serve(FINE).then(status(429, "slow down", retry_after="0.3"))
    router = router_for(server)

    async def run() -> float:
        with pytest.raises(RouterUnavailable):
            await router.route(request_of("a.py", "b.py"))
        start = time.monotonic()
        await router.route(request_of("a.py", "b.py"))
        return time.monotonic() - start

    assert asyncio.run(run()) > 0.25


@pytest.mark.parametrize(
    ("model", "base_url", "says"),
    [
        (None, None, "no model is named"),
        ("openai/", None, "no model is named"),
        ("m", "localhost:80", "no address"),
    ],
)
def test_settings_are_checked_when_the_router_is_made(
    model: str | None, base_url: str | None, says: str
) -> None:
    with pytest.raises(UserError, match=says):
        LLMRouter(model, base_url=base_url)


def test_openai_itself_needs_a_key() -> None:
    with pytest.raises(UserError, match="OPENAI_API_KEY"):
        LLMRouter("openai/gpt-4o-mini")


def test_limits_are_kept_to_the_call(serve: Serve, router_for: RouterFor, tree: Tree) -> None:
    server = serve("no JSON")
    result = search("q", tree=tree, router=router_for(server), evidence=False, limits=Limits(model_calls=4))
    assert result.ended == "limit" and result.detail.startswith("model_calls; the router failed at 1 of 1")
    assert len(server.requests) == result.usage.model_calls == 4


def test_nothing_is_logged_about_bad_answers(
    serve: Serve, router_for: RouterFor, request_of: RequestOf, caplog: pytest.LogCaptureFixture
) -> None:
    """instructor logs failures as errors, with the model's words in them."""
    with pytest.raises(BadModelAnswer):
        asyncio.run(router_for(serve("SECRET words")).route(request_of("a.py", "b.py")))
    with pytest.raises(RouterUnavailable):
        asyncio.run(router_for(serve(status(500))).route(request_of("a.py", "b.py")))
    assert [record.name for record in caplog.records if record.name.startswith("instructor")] == []
