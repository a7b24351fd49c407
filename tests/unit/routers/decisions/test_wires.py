"""The wires of decision models: what is sent, and what is made of every answer, also of those of hostile servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metatree_routers.decisions import (
    Choice,
    DecisionModel,
    DecisionReader,
    DecisionRouter,
    Likelihoods,
    Question,
    Score,
    YesNo,
)
from metatree_routers.decisions._logits import Logits
from metatree_routers.decisions._model import expected_level
from metatree_routers.decisions._openai_decisions import OpenAIDecisions
from metatree_routers.decisions._router import model_named
from metatree_routers.decisions._systemone import SystemOne
from metatree_routers.llm.errors import BadKey, NotAModelServer, OutOfCredit, RequestRejected, UnknownModel

from metatree import Node, Option, ReadRequest, RouteRequest
from metatree.errors import BadModelAnswer, MetatreeError, RouterUnavailable, UserError

URL = "http://127.0.0.1:9/v1"
QUESTIONS: dict[str, Question] = {
    "which": Choice("Which?", {"A": "tokens.py", "B": "login.py", "none": "none of these"}),
    "sure": YesNo("It answers."),
    "level": Score("How well?", ("not", "in part", "fully")),
}
ASKED: dict[str, Any] = {}


def answering(
    reply: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> httpx2.MockTransport:
    def handle(request: httpx2.Request) -> httpx2.Response:
        ASKED.update(url=str(request.url), body=json.loads(request.content), headers=dict(request.headers))
        content = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        return httpx2.Response(status, content=content, headers=dict(headers or {}))

    return httpx2.MockTransport(handle)


def system_one(answers: Any) -> DecisionModel:
    body = answers if isinstance(answers, bytes) else {"answers": answers, "usage": {"input_tokens": 9}}
    return SystemOne("m", base_url=URL, api_key="k", transport=answering(body))


def openai(answers: Any) -> DecisionModel:
    return OpenAIDecisions("m", base_url=URL, api_key="k", transport=answering({"answers": answers}))


def decide(model: DecisionModel, *names: str) -> Mapping[str, Likelihoods]:
    asked = {name: QUESTIONS[name] for name in names or QUESTIONS}
    return asyncio.run(model.decide("the state", asked))


def test_system_one_as_its_providers_document_it() -> None:
    said = decide(
        system_one(
            {
                "which": {
                    "type": "choice",
                    "choice": "A",
                    "probabilities": {"A": 0.7, "B": 0.2, "none": 0.1},
                    "confidence": 0.6,
                },
                "sure": {"type": "noul", "noul": 0.8},
                "level": {"type": "score", "score": 1.7, "probabilities": {"0": 0.1, "1": 0.1, "2": 0.8}},
            }
        )
    )
    assert said["which"] == pytest.approx({"A": 0.7, "B": 0.2, "none": 0.1})
    assert said["sure"] == {"yes": 0.8}
    assert expected_level(said["level"]) == pytest.approx(1.7)
    assert ASKED["url"] == f"{URL}/systemone" and ASKED["headers"]["authorization"] == "Bearer k"
    assert ASKED["body"] == {
        "model": "m",
        "state": "the state",
        "questions": {
            "which": {
                "type": "choice",
                "instructions": "Which?",
                "criteria": {"A": "tokens.py", "B": "login.py", "none": "none of these"},
            },
            "sure": {"type": "noul", "instructions": "It answers."},
            "level": {"type": "score", "instructions": "How well?", "criteria": ["not", "in part", "fully"]},
        },
    }


def test_decisions_as_openai_documents_them() -> None:
    shares = [
        {"value": "A", "probability": 0.7},
        {"value": "B", "probability": 0.2},
        {"value": "none", "probability": 0.1},
    ]
    levels = [{"value": n, "label": "x", "probability": p} for n, p in enumerate((0.1, 0.1, 0.8))]
    said = decide(
        openai(
            [
                {
                    "type": "choice",
                    "name": "which",
                    "choice": "A",
                    "probabilities": shares,
                    "confidence": 0.6,
                },
                {"type": "predicate", "name": "sure", "probability": 0.8},
                {"type": "score", "name": "level", "score": 1.7, "probabilities": levels},
            ]
        )
    )
    assert said["which"] == pytest.approx({"A": 0.7, "B": 0.2, "none": 0.1}) and said["sure"] == {"yes": 0.8}
    assert expected_level(said["level"]) == pytest.approx(1.7)
    assert ASKED["url"] == f"{URL}/decisions"
    assert ASKED["body"]["input"] == "the state"
    choice, predicate, score = ASKED["body"]["questions"]
    assert choice["choices"][0] == {"value": "A", "description": "tokens.py"} and choice["name"] == "which"
    assert predicate == {"type": "predicate", "name": "sure", "instructions": "It answers."}
    assert score["levels"] == [{"label": "not"}, {"label": "in part"}, {"label": "fully"}]


def test_letters_of_a_chat_server_are_averaged_over_two_orders() -> None:
    """A model that always says the first letter is right in neither order, and says nothing at all in both together."""
    top = [
        {"token": " A", "logprob": -0.2},
        {"token": "B", "logprob": -2.0},
        {"token": "The", "logprob": -3.0},
    ]
    reply = {"choices": [{"logprobs": {"content": [{"token": "A", "logprob": -0.2, "top_logprobs": top}]}}]}
    model = Logits("m", base_url=URL, transport=answering(reply))
    said = decide(model, "sure")
    assert said["sure"]["yes"] == pytest.approx(0.5)
    assert ASKED["body"]["max_tokens"] == 1 and ASKED["body"]["logprobs"] is True
    which = decide(model, "which")["which"]
    assert which["A"] == pytest.approx(which["none"]) and sum(which.values()) == pytest.approx(1)


@pytest.mark.parametrize("of", [system_one, openai])
def test_what_was_left_out_or_declined_is_not_there(of: Callable[[Any], DecisionModel]) -> None:
    empty: Any = {} if of is system_one else []
    assert decide(of(empty)) == {}
    declined: Any = (
        {"which": {"type": "refusal"}, "sure": None}
        if of is system_one
        else [{"type": "refusal", "name": "which"}, {"type": "predicate", "name": None}, 7]
    )
    assert decide(of(declined)) == {}


NAN = float("nan")
SHARES: list[Mapping[str, Any]] = [
    {"A": 0.7, "B": 0.7, "none": 0.1},
    {"A": 0.1, "B": 0.1, "none": 0.1},
    {"A": NAN, "B": 0.5, "none": 0.5},
    {"A": float("inf"), "B": 0.0, "none": 0.0},
    {"A": -0.5, "B": 1.0, "none": 0.5},
    {"A": 0.5, "Z": 0.5},
    {"A": "0.9", "B": 0.1},
    {"A": True, "B": 0},
    {"A": None, "B": 1},
    {},
]


@pytest.mark.parametrize("shares", SHARES)
def test_what_are_no_probabilities_of_the_options_is_no_answer(shares: Mapping[str, Any]) -> None:
    with pytest.raises(BadModelAnswer):
        decide(system_one({"which": {"type": "choice", "probabilities": dict(shares)}}), "which")
    listed = [{"value": value, "probability": share} for value, share in shares.items()]
    with pytest.raises(BadModelAnswer):
        decide(openai([{"type": "choice", "name": "which", "probabilities": listed}]), "which")


@pytest.mark.parametrize("said", [None, "yes", NAN, 1.5, -1, [], True])
def test_what_is_no_probability_of_yes_is_no_answer(said: Any) -> None:
    with pytest.raises(BadModelAnswer):
        decide(system_one({"sure": {"type": "noul", "noul": said}}), "sure")
    with pytest.raises(BadModelAnswer):
        decide(openai([{"type": "predicate", "name": "sure", "probability": said}]), "sure")


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"choices": []},
        {"choices": [{"logprobs": None}]},
        {"choices": [{"logprobs": {"content": []}}]},
        {"choices": [{"logprobs": {"content": [{"top_logprobs": {}}]}}]},
        {"choices": [{"logprobs": {"content": [{"top_logprobs": [7]}]}}]},
        {"choices": [{"logprobs": {"content": [{"top_logprobs": [{"token": "A", "logprob": NAN}]}]}}]},
        {"choices": [{"logprobs": {"content": [{"top_logprobs": [{"token": "The", "logprob": -0.1}]}]}}]},
    ],
)
def test_a_chat_server_without_letters_gives_no_answer(content: Any) -> None:
    with pytest.raises(BadModelAnswer):
        decide(Logits("m", base_url=URL, transport=answering(content)), "which")


WIRES: list[Callable[..., Any]] = [SystemOne, OpenAIDecisions, Logits]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "content", [b"", b"<html>", b"[]", b"7", b"{" * 100_000, b"[" * 100_000, b'{"answers": 1}']
)
def test_what_is_no_answer_at_all_is_said_so(wire: Callable[..., Any], content: bytes) -> None:
    with pytest.raises(BadModelAnswer):
        decide(wire("m", base_url=URL, api_key="k", transport=answering(content)), "which")


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, BadKey),
        (402, OutOfCredit),
        (403, BadKey),
        (404, NotAModelServer),
        (400, RequestRejected),
        (422, RequestRejected),
        (429, RouterUnavailable),
        (500, RouterUnavailable),
        (503, RouterUnavailable),
        (302, RequestRejected),
    ],
)
def test_statuses_are_told_apart(wire: Callable[..., Any], status: int, kind: type[MetatreeError]) -> None:
    transport = answering({"error": {"message": "no"}}, status, {"retry-after": "0"})
    with pytest.raises(kind, match=str(status)):
        decide(wire("m", base_url=URL, api_key="k", transport=transport), "which")
    with pytest.raises(UnknownModel):
        decide(wire("m", base_url=URL, transport=answering({"error": "model m not found"}, 404)), "which")


def test_names_say_the_wire_the_model_and_perhaps_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SYSTEMONE_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    model = model_named("systemone/@cf/cloudflare/clef@http://127.0.0.1:8000/v1?key=secret")
    assert model.name == "systemone/@cf/cloudflare/clef http://127.0.0.1:8000/v1"
    assert model_named("decisions/gpt@https://example.org/v1").name == "decisions/gpt https://example.org/v1"
    for wrong in (
        "systemone",
        "systemone/",
        "choices/x",
        "systemone/x",
        "systemone/x@http://u:p@h/v1",
        "logits/x@http:///",
    ):
        with pytest.raises(UserError):
            model_named(wrong)
    for wire in ("decisions/gpt", "logits/gpt"):
        with pytest.raises(BadKey, match="OPENAI_API_KEY"):
            model_named(wire)


class Fixed:
    """A decision model that says what it is told to."""

    name, max_options, max_questions = "fixed", 256, 64

    def __init__(self, shares: Mapping[str, float], sure: float = 0.0) -> None:
        self.shares, self.sure = shares, sure
        self.asked: list[Mapping[str, Any]] = []

    async def decide(self, state: str, questions: Mapping[str, Any]) -> Mapping[str, Likelihoods]:
        self.asked.append(questions)
        which = questions["which"].options
        shares = {label: self.shares.get(said.partition(":")[0], 0.0) for label, said in which.items()}
        shares["none"] = max(0.0, 1 - sum(shares.values()))
        return {"which": shares, **{name: {"yes": self.sure} for name in questions if name != "which"}}


def menu(*scores: float | None) -> RouteRequest:
    options = tuple(Option(f"o{n}", f"T{n}", f"about {n}", score=score) for n, score in enumerate(scores))
    return RouteRequest(("q?",), "", Node("n", "n"), options)


def routed(model: Fixed, request: RouteRequest, times: int = 1) -> Any:
    router = DecisionRouter(model, cache=False)
    for _ in range(times):
        decision = asyncio.run(router.route(request))
    return decision


def test_one_request_asks_everything_about_a_menu() -> None:
    model = Fixed({"T1": 0.8, "T0": 0.1})
    decision = routed(model, menu(None, None, None))
    assert decision.choice == "o1" and decision.probabilities["o1"] == pytest.approx(0.8)
    assert len(model.asked) == 1 and {"which", "not_A", "not_B", "not_C"} == set(model.asked[0])


def test_nothing_is_ruled_out_by_the_choice_alone() -> None:
    assert routed(Fixed({"T1": 1.0}, sure=0.5), menu(None, None, None)).unviable == {}
    surely = routed(Fixed({"T1": 1.0}, sure=0.95), menu(None, None, None))
    assert set(surely.unviable) == {"o0", "o2"}
    strong = routed(Fixed({"T1": 1.0}, sure=0.95), menu(1.0, 0.9, 0.1), times=30)
    assert set(strong.unviable) <= {"o2"}


def test_evidence_and_model_are_weighed() -> None:
    weak = routed(Fixed({"T1": 0.4, "T0": 0.3, "T2": 0.3}), menu(1.0, 0.4, 0.3))
    assert weak.choice == "o0"
    none = routed(Fixed({}), menu(0.0, 0.0, 0.0))
    assert none.choice is None and set(none.unviable) == {"o0", "o1", "o2"}


def test_options_beyond_the_limit_come_in_groups() -> None:
    model = Fixed({"T1": 0.9})
    router = DecisionRouter(model, cache=False)
    request = menu(*[None] * 300)
    assert router.traits.capacity is not None and router.traits.capacity(request) == 255
    asyncio.run(router.route(request))
    assert len(model.asked[0]["which"].options) == 256


@given(
    st.dictionaries(
        st.sampled_from(["A", "B", "none", "Z"]), st.floats() | st.text() | st.none() | st.integers()
    )
)
def test_whatever_a_server_says_are_probabilities_or_no_answer(shares: Any) -> None:
    try:
        said = decide(system_one({"which": {"probabilities": shares}}), "which")["which"]
    except BadModelAnswer:
        return
    assert sum(said.values()) == pytest.approx(1) and all(0 <= share <= 1 for share in said.values())


def test_without_an_index_words_alone_do_not_speak_against_a_model() -> None:
    """A text of the same words as the question seems to answer as long as no other is seen."""

    class Knows:
        name, max_options, max_questions = "knows", 255, 64
        answers = 0.02

        async def decide(self, state: str, questions: Mapping[str, Question]) -> Mapping[str, Likelihoods]:
            return {name: {"yes": self.answers} for name in questions}

    model = Knows()
    reader = DecisionReader(model)
    text = "The limit for session tokens in the queue of mail is 7548359 units."
    request = ReadRequest(
        Node("n", "n"), text, ("What is the limit for session tokens in the queue of mail?",)
    )
    for _ in range(20):
        assert asyncio.run(reader.read(request)).answers == (), "it says that it does not answer"
    model.answers = 0.98
    [answer] = asyncio.run(reader.read(request)).answers
    assert answer.confidence is not None and answer.confidence > 0.8
