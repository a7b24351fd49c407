"""The connection to one model of one server: one pool of connections, one limit, one account of what it cost."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from metatree.durable import report_usage, run_memory
from metatree.errors import RouterUnavailable, UserError
from metatree.trees.text import encodable
from metatree_routers.llm._capabilities import CapabilityDiscovery, ServerCapabilities
from metatree_routers.llm._prices import Price, price_of
from metatree_routers.llm._sdk_errors import check_completion, error_for
from metatree_routers.llm._settings import ModelSettings, model_settings
from metatree_routers.llm._stagger import Turns
from metatree_routers.llm._structured import F, answer_of, request_for
from metatree_routers.llm._telemetry import model_call
from metatree_routers.llm._tokens import TokenCounter, counter_for
from metatree_routers.llm.errors import PromptTooLong
from metatree_routers.weighing.trust import READS, Trust
from metatree_routers.wrappers.disk_cache import Cache, DiskCache
from metatree_routers.wrappers.limiter import Limiter

if TYPE_CHECKING:
    import ssl

    import httpx2
    from openai import AsyncOpenAI
    from openai.types.chat import ChatCompletion

REASONING_TOKENS = 4_000
"""What a reasoning model may think before it answers, beside the limit of the answer itself."""
COUNTED_CHARS = 20_000
"""The tokens of a longer answer, of which the server does not say how many they are, are reckoned from its beginning:
counting 3 MB holds the loop for 1.7 s."""
_LIMITS = ("max_tokens", "max_completion_tokens")
SHRINK = 0.5
"""A prompt that the server found too long is followed by one of this share."""


class Connection:
    """Calls one model; safe to share between searches, event loops and threads.

    One client for each event loop, closed by a generator of that loop, since every `search` has a loop of its own; the
    limit on calls is one for all loops. Lost: one loop in a thread for all calls (a hop each way, and no cancellation).

    Every call is one request: the SDK's and instructor's own retries are off, the kernel retries and counts.

    Args:
        model: its name on the server; `openai/` before it is taken off once. None asks `METATREE_MODEL`.
        base_url: None asks `OPENAI_BASE_URL`, then it is OpenAI's own.
        api_key: None asks `OPENAI_API_KEY`.
        concurrency: how many calls may be in progress at once, over all loops and threads.
        timeout_s: for one call.
        temperature: None sends none.
        extra: more fields of the request's body, such as `{"reasoning_effort": "low"}`.
        prices: more prices by model, before the list's.
        cache: remembers how the server wants to be asked; None for the user's cache folder, False for nowhere.
        transport: what sends requests instead of the network: a `Recording`, a `Replay`, a mock.
        capture_content: whether spans hold prompts and answers; None asks OpenTelemetry's environment variable.
        counter: counts tokens; None finds one for the model.

    Raises:
        UserError: no model is named, the address is none, or JSON cannot say a value.
        BadKey: OpenAI's own API is meant, and there is no key.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        concurrency: int = 64,
        timeout_s: float = 60.0,
        temperature: float | None = 0.0,
        extra: Mapping[str, Any] | None = None,
        prices: Mapping[str, Price] | None = None,
        cache: Cache | bool | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        capture_content: bool | None = None,
        counter: TokenCounter | None = None,
    ) -> None:
        self.settings: ModelSettings = model_settings(model, base_url, api_key)
        self.limiter = Limiter(concurrency)
        self.timeout_s = timeout_s
        self.price: Price | None = price_of(self.settings.model, prices)
        self.context_limit: int | None = None
        """The most tokens that a prompt may have, once the server found one too long."""
        self._temperature = temperature
        self._extra = dict(extra or {})
        _require_json({"temperature": temperature, **self._extra})
        self._cache = cache
        self._transport = transport
        self._capture_content = capture_content
        self._counter = counter
        self._lock = threading.Lock()
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[AsyncOpenAI, Any]] = (
            WeakKeyDictionary()
        )
        self._ever_worked = False
        self._turns = Turns()

    @property
    def model(self) -> str:
        """The model's name on the server."""
        return self.settings.model

    @cached_property
    def counter(self) -> TokenCounter:
        """Counts tokens as this model does, or never less."""
        return self._counter or counter_for(self.model)

    @cached_property
    def trust(self) -> Trust:
        """How often the model was right, as far as is known."""
        return Trust(self._remembered, f"{self.model} {self.settings.public_url}")

    @cached_property
    def trust_in_reading(self) -> Trust:
        """How often the model says rightly whether a text answers, as far as is known."""
        return Trust(self._remembered, f"{self.model} {self.settings.public_url} reads", prior=READS)

    @property
    def _remembered(self) -> Cache | None:
        if self._cache is None:
            return DiskCache(name="servers")
        return None if isinstance(self._cache, bool) else self._cache

    @cached_property
    def discovery(self) -> CapabilityDiscovery:
        """How the server wants to be asked, as far as it is known."""
        first = ServerCapabilities(
            bounds=not self.settings.is_openai,
            temperature=not self.settings.reasons,
            limit="max_completion_tokens" if self.settings.is_openai else "max_tokens",
        )
        return CapabilityDiscovery(self.settings.public_url, self.model, first=first, cache=self._remembered)

    @cached_property
    def _certificates(self) -> ssl.SSLContext:
        """What servers are verified with; read once, not for each loop: that takes 30 ms."""
        import httpx2

        return httpx2.create_ssl_context()

    async def ask(
        self, form: type[F], messages: Sequence[Mapping[str, Any]], *, max_tokens: int, task: str
    ) -> F:
        """Ask for an answer in form.

        Args:
            form: the class of the answer.
            messages: the conversation.
            max_tokens: bound of the answer.
            task: what it is for: `route`, `read`, `fill`, `compose` or `describe`.

        Raises:
            BadModelAnswer: the answer has not the form; the message says to the model what is wrong.
            TransientError: the same call may work later.
            UserError: no call will work before the settings are fixed.
            RequestRejected: the server will not take this request.
        """
        # At temperature 0 the same prompt has the same answer, which one run pays once.
        known = run_memory() if self._temperature == 0 else {}
        key = f"{self.model} {self.settings.public_url} {task} {max_tokens} {form.__name__} {json.dumps(messages)}"
        if key in known:
            report_usage(model_calls=-1, cache_hits=1)
            answer: F = known[key]
            return answer
        async with self.limiter.slot():
            await self._turns.wait()
            capabilities = self.discovery.current
            body = request_for(self._body(messages, max_tokens, capabilities), form, capabilities)
            completion = await self._create(body, capabilities, max_tokens, task)
            answer = known[key] = answer_of(completion, form, self.discovery, capabilities)
            return answer

    async def text(self, messages: Sequence[Mapping[str, Any]], *, max_tokens: int, task: str) -> str:
        """Ask for a text; raises as `ask` does."""
        async with self.limiter.slot():
            await self._turns.wait()
            capabilities = self.discovery.current
            body = self._body(messages, max_tokens, capabilities)
            completion = await self._create(body, capabilities, max_tokens, task)
            return (completion.choices[0].message.content or "").strip()

    def fits(self, limit: int) -> int:
        """Return a token limit for prompts, lowered to what the server was found to take."""
        return limit if self.context_limit is None else min(limit, self.context_limit)

    def _body(
        self, messages: Sequence[Mapping[str, Any]], max_tokens: int, capabilities: ServerCapabilities
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            # A tool or a model may have said half a surrogate pair.
            "messages": [{**each, "content": encodable(each["content"])} for each in messages],
        }
        body[capabilities.limit] = max_tokens + (REASONING_TOKENS if self.settings.reasons else 0)
        if capabilities.temperature and self._temperature is not None:
            body["temperature"] = self._temperature
        return {**body, **self._extra}

    async def _create(
        self, body: dict[str, Any], capabilities: ServerCapabilities, max_tokens: int, task: str
    ) -> ChatCompletion:
        """Send one request, report what it used, and see that what came can be an answer."""
        with model_call(
            task=task,
            model=self.model,
            base_url=self.settings.base_url,
            max_tokens=max_tokens,
            temperature=body.get("temperature"),
            content=self._capture_content,
        ) as span:
            span.sent(body["messages"])
            completion = await self._send(body, capabilities)
            # The SDK takes what came to the letter: where it is no completion, any field may be missing.
            message = completion.choices[0].message if getattr(completion, "choices", None) else None
            content = _content_of(message)
            tokens_in, tokens_out = self._report(completion, body, content)
            span.answered(
                response_id=getattr(completion, "id", None) or "",
                model=getattr(completion, "model", None) or self.model,
                finish=completion.choices[0].finish_reason if message is not None else None,
                tokens_in=tokens_in,
                tokens_out=tokens_out,
                text=content,
            )
            check_completion(completion, self.settings, ever_worked=self._ever_worked)
            self._ever_worked = True
            return completion

    async def _send(self, body: dict[str, Any], capabilities: ServerCapabilities) -> ChatCompletion:
        import openai

        from metatree_routers.llm._client import complete

        client = await self._client()
        try:
            async with asyncio.timeout(
                self.timeout_s
            ):  # as a whole: the SDK's own begins anew with each byte
                return await complete(client, body)
        except TimeoutError:
            place = f"the model server at {self.settings.public_url}"
            raise RouterUnavailable(f"{place} did not answer within {self.timeout_s:g} s") from None
        except openai.OpenAIError as exc:
            error = error_for(exc, self.settings, self.discovery, capabilities)
        except ValueError as exc:  # a body that is no JSON, under a header that says it is
            error = RouterUnavailable(
                f"the model server at {self.settings.public_url} answered what is no JSON ({type(exc).__name__})"
            )
            raise error from exc
        if isinstance(error, PromptTooLong):
            self.context_limit = int(self.counter.messages(body["messages"]) * SHRINK)
        if isinstance(error, RouterUnavailable) and error.retry_after_s:
            self.limiter.hold(error.retry_after_s)
        raise error

    def _report(self, completion: Any, body: Mapping[str, Any], content: str) -> tuple[int, int]:
        """Report what a call used, estimated where the server does not say."""
        # Many servers leave the usage out, or parts of it.
        usage = getattr(completion, "usage", None)
        tokens_in = getattr(usage, "prompt_tokens", None)
        tokens_out = getattr(usage, "completion_tokens", None)
        if tokens_in is None:
            tokens_in = self.counter.messages(body["messages"])
        if tokens_out is None:
            beginning = content[:COUNTED_CHARS]
            tokens_out = self.counter.text(beginning) * len(content) // max(1, len(beginning))
            # No provider takes money for more than was asked for; one long answer of a server ends no search.
            tokens_out = min([tokens_out, *(body[name] for name in _LIMITS if name in body)])
        details = getattr(usage, "prompt_tokens_details", None)
        cached = getattr(details, "cached_tokens", None) or 0
        amounts: dict[str, float] = {"tokens_in": tokens_in, "tokens_out": tokens_out}
        if cached:
            amounts["tokens_cached"] = cached
        if self.price is not None:
            amounts["cost_usd"] = float(self.price.of(tokens_in, tokens_out, cached=cached))
        report_usage(**amounts)
        return tokens_in, tokens_out

    async def _client(self) -> AsyncOpenAI:
        """Return the client of the running loop; it is closed when the loop shuts its generators down."""
        loop = asyncio.get_running_loop()
        open_client = self._clients.get(loop)
        if open_client is None:
            opened = self._open()
            client = await anext(opened)
            with self._lock:
                open_client = self._clients.setdefault(loop, (client, opened))
        return open_client[0]

    async def _open(self) -> AsyncIterator[AsyncOpenAI]:
        from metatree_routers.llm._client import open_client

        client = open_client(
            self.settings,
            timeout_s=self.timeout_s,
            connections=self.limiter.concurrency,
            certificates=self._certificates,
            transport=self._transport,
        )
        try:
            yield client
        finally:
            await client.close()


def _require_json(fields: Mapping[str, Any]) -> None:
    """Refuse what no request could say, NaN for one; later it would look as if the server's answer were no JSON."""
    for name, value in fields.items():
        try:
            # The SDK can write more types than `json` does.
            json.dumps({name: value}, ensure_ascii=False, allow_nan=False, default=str).encode()
        except ValueError as exc:
            raise UserError(
                f"{name!r}, a field of each request, is {value!r}, which JSON cannot say ({exc}): change that value"
            ) from exc


def _content_of(message: Any) -> str:
    if message is None:
        return ""
    calls = getattr(message, "tool_calls", None)
    if calls:
        return str(calls[0].function.arguments)
    return message.content or ""
