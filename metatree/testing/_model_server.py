"""A small OpenAI-compatible server for tests, on loopback, that can be told to misbehave.

    with ModelServer(lambda request: {"choice": "B"}) as server:
        router = LLMRouter("stub", base_url=server.url)

It speaks `POST /v1/chat/completions` and `GET /v1/models`, knows the three ways in which answers in form are asked for
(`modes`), keeps every request, and needs the standard library alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

MODES = ("json_schema", "tools", "json")
_OPTION = re.compile(r"^ *\[([A-Z]{1,3})\] (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What a client asked."""

    body: Mapping[str, Any]
    headers: Mapping[str, str]
    """Names in lower case."""

    @property
    def system(self) -> str:
        """The text of the system message."""
        return self._text("system")

    @property
    def user(self) -> str:
        """The text of the user message."""
        return self._text("user")

    def _text(self, role: str) -> str:
        return "\n".join(str(m["content"]) for m in self.body["messages"] if m["role"] == role)

    @property
    def mode(self) -> str:
        """How an answer in form is asked for: `json_schema`, `tools`, or `json` when the prompt alone asks."""
        if self.body.get("tools"):
            return "tools"
        return "json_schema" if self.body.get("response_format") else "json"

    @property
    def schema(self) -> dict[str, Any] | None:
        """The schema that the answer should fit, None when only the prompt says."""
        schema: dict[str, Any] | None = None
        if self.mode == "tools":
            schema = self.body["tools"][0]["function"]["parameters"]
        elif self.mode == "json_schema":
            schema = self.body["response_format"].get("json_schema", {}).get("schema")
        return schema

    @property
    def options(self) -> dict[str, str]:
        """Label -> the rest of its line, for each option of a router's menu."""
        return dict(_OPTION.findall(self.user))

    def label(self, text: str) -> str | None:
        """Return the label of the first option whose line begins with a text."""
        return next((label for label, line in self.options.items() if line.startswith(text)), None)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, or a misbehaviour: what the server does with one request."""

    content: str | None = None
    """The text of the answer; also the arguments when a tool is asked for, unless `as_text`."""
    status: int = 200
    error: str = ""
    """Message of an error; for statuses from 400 on."""
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    finish: str = "stop"
    refusal: str | None = None
    as_text: bool = False
    raw: str | None = None
    """The whole body, whatever it is."""
    drop: bool = False
    """Close the connection instead of answering."""
    latency_s: float = 0.0
    """Wait so much longer than the server does anyway."""
    usage: Mapping[str, Any] | None = None


def status(code: int, message: str = "", *, retry_after: str | None = None, kind: str | None = None) -> Reply:
    """Return an error reply."""
    headers = {} if retry_after is None else {"retry-after": retry_after}
    return Reply(status=code, error=message or f"status {code}", headers=headers, code=kind)


DROP = Reply(drop=True)
EMPTY = Reply("", as_text=True)
REFUSAL = Reply(None, refusal="I cannot help with that.")
HTML = Reply(raw="<html><body>It works!</body></html>", headers={"content-type": "text/html"})


def truncated(content: str = '{"reason": "it goes on and') -> Reply:
    """Return an answer that ran into its token limit."""
    return Reply(content, finish="length")


def hang(seconds: float) -> Reply:
    """Return an answer that comes late."""
    return Reply("{}", latency_s=seconds)


Said = Reply | str | Mapping[str, Any]
Answer = Callable[[ModelRequest], Said]


class ModelServer:
    """Answers chat completions from a function, in a thread of its own.

    Args:
        answer: what a request is answered with: a `Reply`, a text, or an object that becomes JSON. None answers with
            the emptiest object that fits the schema.
        modes: what it supports of `json_schema`, `tools` and `json`; the rest is rejected with 400.
        ignores_modes: take what it does not support without a word, as some servers do.
        latency_s: how long each answer takes.
        models: names that it has; None for any.
        api_key: None accepts every key.
        count: counts the tokens of a text.

    Example:
        >>> with ModelServer({"choice": "A"}) as server:
        ...     server.url.startswith("http://127.0.0.1:")
        True
    """

    def __init__(
        self,
        answer: Answer | Said | None = None,
        *,
        modes: Collection[str] = MODES,
        ignores_modes: bool = False,
        latency_s: float = 0.0,
        models: Collection[str] | None = None,
        api_key: str | None = None,
        count: Callable[[str], int] = lambda text: -(-len(text) // 4),
        keep: bool = True,
    ) -> None:
        self.answer = answer
        self.modes = frozenset(modes)
        self.ignores_modes = ignores_modes
        self.latency_s = latency_s
        self.models = models
        self.api_key = api_key
        self.requests: list[ModelRequest] = []
        """Every request, in the order in which they came."""
        self.connections = 0
        self.most_at_once = 0
        self._count = count
        self._keep = keep
        self._at_once = 0
        self._next: deque[Said] = deque()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="model-server", daemon=True)
        self._started = threading.Event()
        self._port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The base URL to give to a client."""
        return f"http://127.0.0.1:{self._port}/v1"

    def then(self, *replies: Said) -> Self:
        """Give these replies to the next requests, before `answer` is asked again."""
        self._next.extend(replies)
        return self

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve_connection, "127.0.0.1", 0))
        self._port = server.sockets[0].getsockname()[1]
        self._started.set()
        try:
            self._loop.run_forever()
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
            self._loop.run_until_complete(server.wait_closed())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while await self._answer_request(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _answer_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether the connection stays open."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (s.partition(":") for s in lines if s)
        }
        content = await reader.readexactly(int(headers.get("content-length", "0")))
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            reply, body = self._handle(method, path, headers, content)
            if self.latency_s or reply.latency_s:
                await asyncio.sleep(self.latency_s + reply.latency_s)
        finally:
            self._at_once -= 1
        if reply.drop:
            writer.transport.abort()
            return False
        response_headers = {
            "content-type": "application/json",
            **reply.headers,
            "content-length": str(len(body)),
        }
        top = "".join(f"{name}: {value}\r\n" for name, value in response_headers.items())
        writer.write(f"HTTP/1.1 {reply.status} Status\r\n{top}\r\n".encode("latin-1") + body)
        await writer.drain()
        return headers.get("connection", "").lower() != "close"

    def _handle(
        self, method: str, path: str, headers: Mapping[str, str], content: bytes
    ) -> tuple[Reply, bytes]:
        if self.api_key is not None and headers.get("authorization") != f"Bearer {self.api_key}":
            reply = status(401, "Incorrect API key provided", kind="invalid_api_key")
        elif method == "GET" and path.endswith("/models"):
            listed = [{"id": name, "object": "model"} for name in self.models or ("stub",)]
            return Reply(), json.dumps({"object": "list", "data": listed}).encode()
        elif method != "POST" or not path.endswith("/v1/chat/completions"):
            reply = status(404, "Not Found")
        else:
            request = ModelRequest(json.loads(content), headers)
            if self._keep:
                self.requests.append(request)
            reply = self._reply(request)
            if reply.status < 400 and reply.raw is None:
                return reply, json.dumps(self._completion(request, reply)).encode()
        if reply.raw is not None:
            return reply, reply.raw.encode()
        return reply, json.dumps({"error": {"message": reply.error, "code": reply.code}}).encode()

    def _reply(self, request: ModelRequest) -> Reply:
        model = request.body.get("model")
        if self.models is not None and model not in self.models:
            return status(404, f"The model `{model}` does not exist", kind="model_not_found")
        if request.mode not in self.modes and not self.ignores_modes:
            what = "response_format json_schema" if request.mode == "json_schema" else "tools"
            return status(400, f"{what} is not supported by this server")
        if self._next:
            return _as_reply(self._next.popleft())
        if callable(self.answer):
            return _as_reply(self.answer(request))
        return _as_reply(emptiest(request.schema) if self.answer is None else self.answer)

    def _completion(self, request: ModelRequest, reply: Reply) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": reply.content}
        if reply.refusal is not None:
            message = {"role": "assistant", "content": None, "refusal": reply.refusal}
        elif request.mode == "tools" and "tools" in self.modes and not reply.as_text:
            function = {"name": request.body["tools"][0]["function"]["name"], "arguments": reply.content}
            call = {"id": "call_1", "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        usage = reply.usage
        if usage is None:
            tokens_in = self._count(request.system) + self._count(request.user)
            tokens_out = self._count(reply.content or "")
            usage = {
                "prompt_tokens": tokens_in,
                "completion_tokens": tokens_out,
                "total_tokens": tokens_in + tokens_out,
            }
        return {
            "id": f"chatcmpl-{len(self.requests)}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": request.body.get("model"),
            "choices": [{"index": 0, "message": message, "finish_reason": reply.finish}],
            "usage": usage or None,
        }


def _as_reply(answer: Said) -> Reply:
    if isinstance(answer, Reply):
        return answer
    return Reply(answer if isinstance(answer, str) else json.dumps(answer))


def emptiest(schema: Mapping[str, Any] | None) -> Any:
    """Return the emptiest value that fits a schema: first of the allowed words, empty texts and lists.

    Example:
        >>> emptiest({"type": "object", "properties": {"choice": {"enum": ["A", "B"]}, "why": {"type": "string"}}})
        {'choice': 'A', 'why': ''}
    """
    if schema is None:
        return {}
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {name: emptiest(inner) for name, inner in schema.get("properties", {}).items()}
        case "array":
            return []
        case "boolean":
            return False
        case "integer" | "number":
            return 0
        case _:
            return ""
