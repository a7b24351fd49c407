"""The OpenAI-compatible front, by the official client and by plain HTTP, over a real server."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import openai
import pytest
import requests
from metatree_agents.service.openai import routes
from metatree_agents.service.openai._models import ASKS_BACK
from metatree_agents.service.openai.routes import owner_of
from metatree_agents.service.queue import waiting

from .conftest import Served

pytestmark = pytest.mark.integration
Serve = Callable[..., Served]
SOURCES = [
    {"Node": "a", "Title": "total_of", "Quote": "q", "Path": "billing/invoice.py"},
    {"Node": "a", "Title": "total_of", "Quote": "other", "Path": "billing/invoice.py"},
    {"Node": "b", "Title": "Lamps", "Quote": "q", "Path": None},
]


@pytest.fixture
def service(serve: Serve) -> Served:
    return serve(claim_timeout_s=5.0, chat_wait_s=20.0)


def client_of(service: Served, user: str = "User_1", **given: Any) -> openai.OpenAI:
    client = openai.OpenAI(base_url=f"{service.url}/v1", api_key=service.keys[user], timeout=120, **given)
    return service.at_the_end.enter_context(client)


def post(service: Served, body: Any, *, key: str | None = None, **headers: str) -> requests.Response:
    sent = {"Authorization": f"Bearer {service.keys['User_1'] if key is None else key}", **headers}
    data = body if isinstance(body, str | bytes) else json.dumps(body)
    return requests.post(f"{service.url}/v1/chat/completions", data=data, headers=sent, timeout=120)


def answer_next(service: Served, said: str | None = None, *, steps: tuple[str, ...] = ()) -> list[str]:
    """Claim what is open and answer it, by default with the question in capital letters; return the questions."""
    batch = service.engine.get("get-new-queries").json()
    asked = []
    for item in batch["Queries"] or ():
        ((seq, text),) = item.items()
        asked.append(text)
        if steps:
            told = [{"Event": "read", "Text": step} for step in steps]
            body = {"Topic": batch["Topic"], "Seq": int(seq), "Steps": told}
            assert service.engine.post("give-progress", body).status_code == 200
        given = service.engine.answer(
            text,
            *(said or text.upper()).split("\n\n"),
            topic=batch["Topic"],
            seq=int(seq),
            Think=["Looked."],
            Sources=SOURCES,
        )
        assert given.status_code == 200
    return asked


@contextmanager
def answering(service: Served, times: int = 1, **given: Any) -> Iterator[list[str]]:
    """Answer so many queries in a thread while the block runs."""
    asked: list[str] = []

    def work() -> None:
        while len(asked) < times and not stop.is_set():
            asked.extend(answer_next(service, **given))

    stop = threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield asked
    finally:
        stop.set()
        thread.join(30)


def say(client: openai.OpenAI, *messages: str, **given: Any) -> Any:
    """Send messages of a person and answers in turn."""
    said: Any = [
        {"role": "assistant" if at % 2 else "user", "content": text} for at, text in enumerate(messages)
    ]
    return client.chat.completions.create(model="metatree", messages=said, **given)


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds that the service does after its answer; ten seconds at most."""
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def topics(service: Served, user: str = "User_1") -> dict[str, str]:
    found = service.frontend.get("user-topics", OnBehalfOf=user)
    return dict(found.json()) if found.status_code == 200 else {}


def test_models(service: Served) -> None:
    client = client_of(service)
    assert [each.id for each in client.models.list()] == ["metatree"]
    assert client.models.retrieve("metatree").owned_by == "metatree"
    with pytest.raises(openai.NotFoundError) as failed:
        client.models.retrieve("gpt-9/x")
    assert failed.value.code == "model_not_found" and failed.value.param == "model"


def test_an_answer_with_its_sources_and_thinking(service: Served) -> None:
    with answering(service, said="Nine watts.\n\nAs the book says."):
        said = say(client_of(service), "How many watts?", temperature=0.2, seed=1, max_tokens=5)
    message = said.choices[0].message
    here = f"{service.url}/node?id=%s&topic={said.metatree['topic']}&seq=1#quoted"
    assert message.content == (
        f"Nine watts.\n\nAs the book says.\n\nSources:\n- [total_of]({here % 'a'}) (billing/invoice.py): “q”\n"
        f"- [total_of]({here % 'a'}) (billing/invoice.py): “other”\n- [Lamps]({here % 'b'}): “q”"
    )
    assert (message.role, said.choices[0].finish_reason, said.object) == (
        "assistant",
        "stop",
        "chat.completion",
    )
    assert message.reasoning_content == "Looked."
    assert said.metatree["sources"] == SOURCES
    assert said.usage.total_tokens == said.usage.prompt_tokens + said.usage.completion_tokens > 0
    assert topics(service) == {said.metatree["topic"]: "How many watts?"}


def test_a_question_wakes_an_engine_that_waits(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LOOK_S", 1_000.0)  # nobody finds it by looking now and then
    service = serve(claim_timeout_s=25.0, chat_wait_s=10.0)
    with ThreadPoolExecutor(1) as pool:
        batch = pool.submit(answer_next, service)
        while service.admin.get("admin/overview").json()["Connected"]["Engines"] == 0:
            threading.Event().wait(0.02)
        client = client_of(service, max_retries=0)
        assert say(client, "Wake?").choices[0].message.content.startswith("WAKE?")
        assert batch.result() == ["Wake?"]


def test_thinking_is_left_out_on_request(service: Served) -> None:
    with answering(service, times=2):
        said = say(client_of(service), "One?", reasoning_effort="none")
        streamed = list(say(client_of(service), "Two?", stream=True, reasoning_effort="none"))
    assert not hasattr(said.choices[0].message, "reasoning_content")
    assert not any(hasattr(chunk.choices[0].delta, "reasoning_content") for chunk in streamed)


def test_a_conversation_is_one_topic_whose_earlier_turns_an_engine_finds_there(service: Served) -> None:
    client = client_of(service)
    with answering(service):
        first = say(client, "How many watts?")
    content = first.choices[0].message.content
    with answering(service):
        second = say(client, "How many watts?", f"<think>Hm.</think>\n{content}  ", "And volts?")
    with answering(service):
        third = say(
            client, "How many watts?", content, "And volts?", second.choices[0].message.content, "Why?"
        )
    topic = first.metatree["topic"]
    assert [said.metatree["topic"] for said in (second, third)] == [topic] * 2
    assert [said.metatree["seq"] for said in (first, second, third)] == [1, 2, 3]
    thread = service.engine.get("get-topic-thread", Topic=topic).json()
    assert [one["Query"] for one in thread] == ["How many watts?", "And volts?", "Why?"]


def test_a_conversation_from_elsewhere_is_written_into_a_topic_of_its_own(service: Served) -> None:
    client = client_of(service)
    with answering(service):
        first = say(client, "How many watts?")
    with answering(service) as asked:
        edited = say(client, "How many watts?", "Ten, I say.", "And volts?")
    assert asked == ["And volts?"], "what was said elsewhere is not asked again"
    assert edited.metatree["topic"] != first.metatree["topic"]
    thread = service.engine.get("get-topic-thread", Topic=edited.metatree["topic"]).json()
    assert [(one["Query"], one["Answer"], one["Status"]) for one in thread] == [
        ("How many watts?", ["Ten, I say."], "Done"),
        ("And volts?", ["AND VOLTS?"], "Done"),
    ]
    with answering(service):
        branch = say(client, "How many watts?", first.choices[0].message.content, "One way?")
    with answering(service):
        other = say(client, "How many watts?", first.choices[0].message.content, "Another way?")
    assert branch.metatree["topic"] == first.metatree["topic"]
    assert other.metatree["topic"] not in (first.metatree["topic"], edited.metatree["topic"])


def test_the_topic_may_be_named_and_belongs_to_its_owner(service: Served) -> None:
    mine: Any = {"metadata": {"topic": "my topic"}}
    with answering(service, times=2):
        assert say(client_of(service), "One?", **mine).metatree == {
            "topic": "my topic",
            "seq": 1,
            "status": "Done",
            "sources": SOURCES,
            "end": None,
            "open": [],
            "closest": [],
        }
        assert say(client_of(service), "Two?", **mine).metatree["seq"] == 2
    with pytest.raises(openai.PermissionDeniedError):
        say(client_of(service, "User_2"), "Three?", **mine)
    assert len(service.frontend.get("get-topic-thread", Topic="my topic").json()) == 2


def test_a_frontend_asks_for_the_user_it_names(service: Served) -> None:
    with answering(service, times=3):
        said = say(client_of(service, "Frontend_1"), "One?", user="Calico_Seders")
        own = say(client_of(service, "Frontend_1"), "Two?")
        not_for_others = say(client_of(service), "Three?", user="Calico_Seders")
    assert list(topics(service, "Calico_Seders")) == [said.metatree["topic"]]
    assert list(topics(service, "Frontend_1")) == [own.metatree["topic"]]
    assert list(topics(service, "User_1")) == [not_for_others.metatree["topic"]]


def test_long_names_of_users_that_begin_alike_are_two_users(service: Served) -> None:
    key = service.keys["Frontend_1"]
    long = "u" * 64
    names = [long, long + "1", long + "2", "u" * 512, "a\0b"]
    with answering(service, len(names)):
        for user in names:
            body = {"model": "metatree", "messages": [{"role": "user", "content": "q"}], "user": user}
            assert post(service, body, key=key).status_code == 200
    owners = [owner_of(user) for user in names]
    assert owners[0] == long and len(set(owners)) == len(names)
    assert all(len(owner) <= 64 and "\0" not in owner for owner in owners)


def test_a_count_of_retries_of_any_length_is_read(service: Served) -> None:
    body = {"model": "metatree", "messages": [{"role": "user", "content": "q"}]}
    with answering(service):
        first = post(service, body).json()
    again = post(service, body, **{"X-Stainless-Retry-Count": "9" * 5_000})
    assert again.status_code == 200 and again.json()["id"] == first["id"]
    with answering(service):
        other = post(service, body, **{"X-Stainless-Retry-Count": "0" * 5_000})
    assert other.status_code == 200 and other.json()["id"] != first["id"]


def test_the_same_words_of_two_users_are_two_conversations(service: Served) -> None:
    with answering(service, times=2):
        one, other = say(client_of(service), "Hello?"), say(client_of(service, "User_2"), "Hello?")
    assert one.metatree["topic"] != other.metatree["topic"]


# retries


def test_the_same_request_while_it_is_unanswered_is_one_query(serve: Serve) -> None:
    service = serve(claim_timeout_s=5.0, chat_wait_s=120.0)
    body: Any = {"model": "metatree", "messages": [{"role": "user", "content": "Once?"}]}
    with ThreadPoolExecutor(4) as pool:
        sent = [pool.submit(post, service, body) for _ in range(4)]
        # Those that come when the answer is out want another one.
        while service.admin.get("admin/overview").json()["Connected"]["Callers"] < 4:
            threading.Event().wait(0.02)  # without a pause, the looks keep the requests out on a busy machine
        assert answer_next(service) == ["Once?"]
        said = [each.result().json() for each in sent]
    assert len({each["id"] for each in said}) == 1
    assert len({each["choices"][0]["message"]["content"] for each in said}) == 1
    assert len(topics(service)) == 1


def test_an_answer_that_never_went_out_is_there_for_the_retry(serve: Serve) -> None:
    service = serve(chat_wait_s=0.1, claim_timeout_s=5.0)
    body: Any = {"model": "metatree", "messages": [{"role": "user", "content": "Slow?"}]}
    refused = post(service, body)
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "2")
    assert refused.json()["error"]["type"] == "server_error"
    assert answer_next(service) == ["Slow?"]
    assert post(service, body).json()["choices"][0]["message"]["content"].startswith("SLOW?")
    until(lambda: post(service, body).status_code == 503)  # it went out: somebody wants another answer
    assert len(topics(service)) == 2


def test_a_request_that_says_it_is_a_retry_gets_the_answer_again(service: Served) -> None:
    body: Any = {"model": "metatree", "messages": [{"role": "user", "content": "Twice?"}]}
    with answering(service):
        first = post(service, body, **{"Idempotency-Key": "k1"}).json()
    for header in ({"X-Stainless-Retry-Count": "1"}, {"Idempotency-Key": "k1"}):
        assert post(service, body, **header).json()["id"] == first["id"]
    with answering(service):
        assert post(service, body, **{"Idempotency-Key": "k2"}).json()["id"] != first["id"]


def test_the_official_client_tries_again_and_gets_its_first_query(serve: Serve) -> None:
    service = serve(chat_wait_s=0.5, claim_timeout_s=10.0)
    with answering(service) as asked, ThreadPoolExecutor(1) as pool:
        said = pool.submit(say, client_of(service, max_retries=5), "Patience?").result()
    assert asked == ["Patience?"] and len(topics(service)) == 1
    assert said.choices[0].message.content.startswith("PATIENCE?")


def test_a_client_that_goes_away_leaves_its_query_to_its_retry(service: Served) -> None:
    body: Any = {"model": "metatree", "messages": [{"role": "user", "content": "Leaving?"}]}

    def leave(*, stream: bool) -> None:
        with pytest.raises(requests.exceptions.RequestException, match="timed out"):
            requests.post(
                f"{service.url}/v1/chat/completions",
                json={**body, "stream": stream},
                headers={"Authorization": f"Bearer {service.keys['User_1']}"},
                timeout=0.3,
            ).raise_for_status()

    leave(stream=False)
    while not topics(service):  # it left before it was heard
        leave(stream=False)
    leave(stream=True)
    (topic,) = topics(service)
    until(lambda: service.frontend.get("get-topic-thread", Topic=topic).json()[0]["Status"] == "Stopped")
    with answering(service) as asked:
        said = post(service, body)
    assert asked == ["Leaving?"]
    assert said.json()["choices"][0]["message"]["content"].startswith("LEAVING?")
    assert len(topics(service)) == 1


# streams


def test_a_stream_says_that_it_waits_in_the_queue(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "QUEUED_S", 0.05)
    monkeypatch.setattr(routes, "BEAT_S", 0.05)
    client = client_of(service)
    service.user.ask("First?", topic="first", user="User_1")
    chunks = say(client, "Watts?", stream=True)

    def thought() -> str:
        while not (said := getattr(next(chunks).choices[0].delta, "reasoning_content", None)):
            pass
        return str(said)

    assert thought() == "No engine is connected: the question is kept, and is answered as soon as one is.\n"
    with answering(service, times=2, said="Nine watts."):
        rest = list(chunks)
    content = "".join(chunk.choices[0].delta.content or "" for chunk in rest)
    assert content.startswith("Nine watts.")
    # An engine is known now, and has nothing to do with the next two.
    service.user.ask("Second?", topic="second", user="User_1")
    chunks = say(client, "Volts?", stream=True)
    assert thought() == "Waiting in the queue, 1 question before yours.\n"
    body: dict[str, Any] = {
        "model": "metatree",
        "messages": [{"role": "user", "content": "Amps?"}],
        "stream": True,
    }
    with requests.post(
        f"{service.url}/v1/chat/completions",
        json={**body, "reasoning_effort": "none"},
        headers={"Authorization": f"Bearer {service.keys['User_1']}"},
        stream=True,
        timeout=60,
    ) as answer:
        lines = answer.iter_lines()
        assert next(line for line in lines if line.startswith(b":")) == (
            b": Waiting in the queue, 2 questions before yours."
        )
    chunks.close()


def test_a_stream_has_steps_then_the_answer_then_the_usage(service: Served) -> None:
    client = client_of(service)
    with answering(service, said="Nine watts.\n\nSo it says.", steps=("chose lamps", "read lamps")):
        chunks = list(say(client, "Watts?", stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant"
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    thought = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
    # A slow machine may look before the engine has taken the question.
    assert (
        thought.removeprefix("Waiting in the queue, 0 questions before yours.\n")
        == "chose lamps\nread lamps\n"
    )
    content = "".join(delta.content or "" for delta in deltas)
    assert content.startswith("Nine watts.\n\nSo it says.\n\nSources:\n- [total_of](http")
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-2].metatree["sources"] == SOURCES
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens > 0
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert len({chunk.id for chunk in chunks}) == 1
    with answering(service):
        later = say(client, "Watts?", content, "Volts?")
    assert later.metatree == {**chunks[-2].metatree, "seq": 2}


def test_a_stream_by_plain_http_ends_with_done_and_has_comments_only_beside_data(service: Served) -> None:
    body: Any = {"model": "metatree", "stream": True, "messages": [{"role": "user", "content": "Watts?"}]}
    with answering(service):
        said = post(service, body)
    assert said.headers["content-type"].startswith("text/event-stream")
    lines = [line for line in said.text.split("\n") if line]
    assert lines[-1] == "data: [DONE]"
    assert all(line.startswith(("data: ", ": ")) for line in lines)
    chunks = [json.loads(line[6:]) for line in lines[:-1] if line.startswith("data: ")]
    assert all(chunk["object"] == "chat.completion.chunk" and "usage" not in chunk for chunk in chunks)


def test_the_asynchronous_client(service: Served) -> None:
    async def talk() -> tuple[str, str]:
        async with openai.AsyncOpenAI(
            base_url=f"{service.url}/v1", api_key=service.keys["User_1"], timeout=30
        ) as client:
            whole = await client.chat.completions.create(
                model="metatree", messages=[{"role": "user", "content": "One?"}]
            )
            parts = await client.chat.completions.create(
                model="metatree", messages=[{"role": "user", "content": "Two?"}], stream=True
            )
            return (
                whole.choices[0].message.content or "",
                "".join([chunk.choices[0].delta.content or "" async for chunk in parts if chunk.choices]),
            )

    with answering(service, times=2):
        one, two = asyncio.run(talk())
    assert one.startswith("ONE?") and two.startswith("TWO?")


def test_a_failed_query_is_an_error_that_clients_do_not_repeat(serve: Serve) -> None:
    service = serve(chat_wait_s=20.0, claim_timeout_s=0.5, attempts=1, lease_s=0.1)
    with ThreadPoolExecutor(2) as pool:
        whole = pool.submit(say, client_of(service), "Hard?")
        while service.engine.get("get-new-queries").json()["Topic"] is None:
            pass
        service.engine.get("get-new-queries")  # the lease has ended, and with it the last attempt
        with pytest.raises(openai.InternalServerError):
            whole.result()
        streamed = pool.submit(lambda: list(say(client_of(service), "Hard as well?", stream=True)))
        while service.engine.get("get-new-queries").json()["Topic"] is None:
            pass
        service.engine.get("get-new-queries")
        with pytest.raises(openai.APIError, match="no engine answered"):
            streamed.result()
    overview = service.admin.get("admin/overview").json()
    assert overview["Failed"] == 2


# what a run asks the person


def test_questions_of_a_run_appear_in_the_conversation_and_are_answered_there(service: Served) -> None:
    client = client_of(service)

    def park(*questions: tuple[str, str]) -> str:
        batch = service.engine.get("get-new-queries").json()
        asked = [{"Key": text, "Question": text, "Kind": kind} for text, kind in questions]
        body = {"Topic": batch["Topic"], "Seq": 1, "Lease": batch["Lease"], "Questions": asked}
        assert service.engine.post("ask-person", body).status_code == 200
        return str(batch["Topic"])

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(say, client, "Book it?")
        topic = park(("For which day?", "question"), ("May I send it?", "permission"))
        said = ["Book it?", first.result().choices[0].message.content]
        assert said[-1] == f"{ASKS_BACK} For which day?" and first.result().metatree["status"] == "Waiting"
        day = say(client, *said, "Monday")
        said += ["Monday", day.choices[0].message.content]
        assert said[-1] == "May I send it? (yes or no)"
        unclear = say(client, *said, "perhaps", stream=True)
        again = "".join(chunk.choices[0].delta.content or "" for chunk in unclear)
        assert again == said[-1]
        last = pool.submit(say, client, *said, "perhaps", again, "Yes.")
        batch = service.engine.get("get-new-queries").json()
        assert batch["Queries"] == [{"1": "Book it?"}], "its run goes on, and nothing else was asked"
        assert [one["Answer"] for one in batch["Asked"]["1"]] == ["Monday", "yes"]
        service.engine.answer("Book it?", "Booked.", topic=topic)
        booked = last.result().choices[0].message.content
        assert booked == "Booked." and last.result().metatree["topic"] == topic
    with answering(service) as asked:
        after = say(client, *said, "perhaps", again, "Yes.", booked, "Thanks?")
    assert asked == ["Thanks?"] and (after.metatree["topic"], after.metatree["seq"]) == (topic, 2)


# what is refused


def test_wrong_keys(service: Served) -> None:
    for key in ("", "mtk-wrong", service.user.secret):
        refused = post(service, {"model": "metatree", "messages": []}, key=key)
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_api_key")
        assert refused.headers["WWW-Authenticate"] == "Bearer"
        assert not key or key not in refused.text


def test_an_engine_may_not_ask(service: Served) -> None:
    with pytest.raises(openai.PermissionDeniedError):
        say(client_of(service, "Inference_1"), "Hm?")


ASK: dict[str, Any] = {"model": "metatree", "messages": [{"role": "user", "content": "Hm?"}]}


REFUSED: list[tuple[Any, int, str | None]] = [
    (b"{", 400, None),
    ([], 400, None),
    ({"model": "metatree"}, 400, "messages"),
    ({**ASK, "messages": []}, 400, "messages"),
    ({**ASK, "messages": [{"role": "assistant", "content": "Hm."}]}, 400, "messages"),
    ({**ASK, "messages": [*ASK["messages"], {"role": "assistant", "content": "x"}]}, 400, "messages"),
    ({**ASK, "messages": [{"role": "user", "content": "  "}]}, 400, "messages"),
    ({**ASK, "messages": [{"role": "nobody", "content": "x"}]}, 400, "messages.0.role"),
    (
        {**ASK, "messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
        400,
        "messages.0.content.0.type",
    ),
    ({**ASK, "messages": [{"role": "user", "content": "x" * 100_001}]}, 400, "messages"),
    (
        {
            **ASK,
            "messages": [*ASK["messages"], {"role": "assistant", "content": "x" * 100_001}, *ASK["messages"]],
        },
        400,
        "messages",
    ),
    ({**ASK, "temperature": 3}, 400, "temperature"),
    ({**ASK, "n": 2}, 400, "n"),
    ({**ASK, "logprobs": True}, 400, "logprobs"),
    ({**ASK, "tool_choice": "required"}, 400, "tool_choice"),
    ({**ASK, "response_format": {"type": "json_object"}}, 400, "response_format"),
    ({**ASK, "stream_options": {"include_usage": True}}, 400, "stream_options"),
    ({**ASK, "metadata": {"topic": ""}}, 400, "metadata.topic"),
    ({**ASK, "model": "gpt-9"}, 404, "model"),
    (b'"' + b"x" * 2_000_001 + b'"', 413, None),
]


def test_what_cannot_be_answered_is_refused_in_the_known_form(service: Served) -> None:
    for body, status, param in REFUSED:
        refused = post(service, body)
        assert refused.status_code == status, (body, refused.text)
        error = refused.json()["error"]
        assert error.keys() == {"message", "type", "param", "code"}
        assert (error["type"], error["param"]) == ("invalid_request_error", param), body
    assert not topics(service)


@pytest.mark.parametrize(
    ("method", "route", "status"),
    [("GET", "nothing", 404), ("POST", "embeddings", 404), ("GET", "chat/completions", 405)],
)
def test_routes_that_are_not_offered_name_those_that_are(
    service: Served, method: str, route: str, status: int
) -> None:
    refused = requests.request(method, f"{service.url}/v1/{route}", json={}, timeout=120)
    error = refused.json()["error"]
    assert (refused.status_code, error["type"]) == (status, "invalid_request_error")
    assert error["message"] == (
        f"{method} /v1/{route} is not offered: there is GET /v1/models, GET /v1/models/{{name}},"
        " POST /v1/chat/completions"
    )


def test_parts_instructions_tools_and_unknown_parameters_are_taken(service: Served) -> None:
    messages = [
        {"role": "system", "content": "Answer for the EU."},
        {"role": "assistant", "content": "Welcome!"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "How many"}, {"type": "text", "text": "watts?"}],
        },
    ]
    body = {
        "model": "metatree",
        "messages": messages,
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "made_up": 1,
    }
    with ThreadPoolExecutor(1) as pool:
        said = pool.submit(post, service, body)
        batch = service.engine.get("get-new-queries").json()
        assert batch["Queries"] == [{"1": "How many\nwatts?"}]
        assert batch["Modifiers"] == {"1": {"Instructions": "Answer for the EU."}}
        service.engine.answer("How many\nwatts?", "Nine.", topic=batch["Topic"])
        assert said.result().json()["choices"][0]["message"]["content"] == "Nine."


def test_other_models_are_offered_and_reach_the_engine(serve: Serve) -> None:
    service = serve(models=("deep",), chat_wait_s=20.0, claim_timeout_s=5.0)
    client = client_of(service)
    assert [each.id for each in client.models.list()] == ["metatree", "deep"]
    with ThreadPoolExecutor(1) as pool:
        said = pool.submit(
            lambda: client.chat.completions.create(model="deep", messages=[{"role": "user", "content": "x"}])
        )
        batch = service.engine.get("get-new-queries").json()
        assert batch["Model"] == {"1": "deep"}
        service.engine.answer("x", "y", topic=batch["Topic"])
        assert said.result().model == "deep"


def test_a_deleted_topic_ends_those_who_wait_for_its_answer(service: Served) -> None:
    with ThreadPoolExecutor(1) as pool:
        said = pool.submit(post, service, ASK)
        while not (found := topics(service)):
            threading.Event().wait(0.02)
        service.frontend.call("DELETE", "topic", OnBehalfOf="User_1", Topic=next(iter(found)))
        assert said.result().status_code == 404
