"""What `/v1/chat/completions` takes: the parameters of OpenAI's API that mean something here, checked as it does.

Parameters of sampling mean nothing to a search and are ignored, as are unknown ones; those that would promise
something that an answer does not have (several choices, audio, a form in JSON, a tool called) are refused.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints, ValidationError

from metatree_agents.service.http.bodies import MAX_TEXT, MAX_TOPIC, Body
from metatree_agents.service.openai.conversations import Conversation, Exchange

MAX_MESSAGES: Final = 2_000


class Wrong(Exception):
    """A request that is refused: why, for which parameter, with which of OpenAI's codes."""

    def __init__(
        self, message: str, *, status: int = 400, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.param = param
        self.code = code


class ContentPart(Body):
    """A part of a message: text, or something else, which is refused where it is to be answered."""

    type: str
    text: str | None = None


class Message(Body):
    """A message of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None


class StreamOptions(Body):
    """How an answer is streamed."""

    include_usage: bool = False


class ChatRequest(Body):
    """A request for an answer."""

    model: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    messages: Annotated[list[Message], Field(min_length=1, max_length=MAX_MESSAGES)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = None
    user: Annotated[str, StringConstraints(max_length=512)] | None = None
    metadata: dict[str, str] | None = None
    """`topic` names the topic; OpenAI's API takes other values and keeps them, they are ignored here."""
    reasoning_effort: str | None = None
    """`none` leaves thinking out."""
    include_reasoning: bool | None = None
    tool_choice: str | dict[str, Any] | None = None
    response_format: dict[str, Any] | None = None
    modalities: list[str] | None = None
    logprobs: bool | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None

    @property
    def thinks(self) -> bool:
        """Whether thinking is wanted beside the answer."""
        return self.reasoning_effort != "none" and self.include_reasoning is not False


def chat_request(raw: bytes) -> ChatRequest:
    """Return a request that can be answered.

    Raises:
        Wrong: it cannot.
    """
    try:
        chat = ChatRequest.model_validate_json(raw)
    except ValidationError as exc:
        (first, *_) = exc.errors(include_url=False, include_input=False, include_context=False)
        if first["type"] == "json_invalid":
            raise Wrong("We could not parse the JSON body of your request.") from None
        param = ".".join(map(str, first["loc"])) or None
        raise Wrong(f"Invalid value for {param or 'the body'}: {first['msg']}", param=param) from None
    kind = (chat.response_format or {}).get("type", "text")
    for param, wrong, message in (
        ("n", chat.n not in (None, 1), "only one choice is given: n must be 1"),
        ("response_format", kind != "text", "answers are text: no form can be promised"),
        ("modalities", "audio" in (chat.modalities or ()), "answers are text"),
        ("logprobs", bool(chat.logprobs), "there are no log probabilities of tokens"),
        (
            "tool_choice",
            chat.tool_choice not in (None, "none", "auto"),
            "no tools are called: tool_choice must be none or auto",
        ),
        (
            "stream_options",
            chat.stream_options is not None and not chat.stream,
            "stream_options is only allowed when stream is enabled",
        ),
    ):
        if wrong:
            raise Wrong(f"Unsupported value for {param}: {message}", param=param, code="unsupported_value")
    return chat


def conversation_of(chat: ChatRequest, *, model: str) -> tuple[Conversation, str]:
    """Return what the messages of a request say, and the instructions among them.

    Raises:
        Wrong: there is nothing to answer, or it is too long or no text.
    """
    instructions: list[str] = []
    exchanges: list[Exchange] = []
    question: list[str] = []
    answer: list[str] = []
    for at, message in enumerate(chat.messages):
        text = _text(message, at)
        match message.role:
            case "system" | "developer":
                instructions.append(text)
            case "user":
                if answer:
                    exchanges.append(Exchange("\n\n".join(question), "\n\n".join(answer)))
                    question, answer = [], []
                question.append(text)
            case "assistant" if question and text:  # a greeting before any question answers none
                answer.append(text)
    asking = "\n\n".join(question).strip()
    if answer or not asking:
        raise Wrong("the last message must be of role user, with text to answer", param="messages")
    if len(asking) > MAX_TEXT:
        raise Wrong(
            f"a question may have {MAX_TEXT:,} characters, this one has {len(asking):,}",
            param="messages",
            code="context_length_exceeded",
        )
    if any(len(part) > MAX_TEXT for turn in exchanges for part in (turn.question, turn.answer)):
        raise Wrong(
            f"a turn of a conversation may have {MAX_TEXT:,} characters: leave out the one that has more",
            param="messages",
            code="context_length_exceeded",
        )
    topic = (chat.metadata or {}).get("topic")
    if topic is not None and (not 1 <= len(topic) <= MAX_TOPIC or "\0" in topic):
        raise Wrong(f"a topic has 1 to {MAX_TOPIC} characters, none of them zero", param="metadata.topic")
    return Conversation(asking, tuple(exchanges), topic, model), "\n\n".join(instructions)[:MAX_TEXT]


def _text(message: Message, at: int) -> str:
    """Return the text of a message; of what is not to be answered only the text counts."""
    if not isinstance(message.content, list):
        return _without_nul(message.content or "")
    for number, part in enumerate(message.content):
        if message.role == "user" and part.type != "text":
            raise Wrong(
                f"Invalid content type {part.type[:40]!r}: only text can be asked",
                param=f"messages.{at}.content.{number}.type",
                code="unsupported_value",
            )
    return _without_nul("\n".join(part.text for part in message.content if part.text))


def _without_nul(text: str) -> str:
    return text.replace("\0", " ")  # PostgreSQL keeps no NUL
