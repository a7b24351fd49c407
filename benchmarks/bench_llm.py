"""What the language-model path costs, against a stub server in a process of its own that always answers rightly.

    python benchmarks/bench_llm.py

Calls and prompt tokens for a verified answer in a tree of 1,000 leaves, CPU time per routing call without the network,
64 searches side by side against a server that takes 200 ms, and calls for the descriptions of 1,000 files.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import aiohttp
from metatree_routers import LLMRouter, describe_tree, text_evidence
from metatree_routers.llm._tokens import counter_for
from metatree_routers.wrappers.disk_cache import MemoryCache

from metatree import Evidence, Node, Option, RouteRequest, Tree, asearch, search
from metatree.testing._model_server import ModelRequest, ModelServer

BRANCHING = 10
_WORDS = (
    "amber anchor basalt beacon birch bishop cobalt copper coral cradle cypress dagger delta ember falcon "
    "fennel garnet granite harbor hazel indigo ivory jasper juniper kernel kestrel lagoon lantern linden "
    "marble meadow nectar nickel obsidian onyx opal orchid pepper pewter quartz quiver raven ribbon "
    "saffron sapphire sorrel spruce talon thistle timber topaz tulip umber velvet violet walnut willow "
    "yarrow zephyr zinnia "
)
WORDS = _WORDS.split()


def leaf_words(number: int) -> list[str]:
    """Return the words that only this leaf and few others have."""
    return random.Random(number).sample(WORDS, 5)


def question_for(number: int) -> str:
    first, second, third, *_ = leaf_words(number)
    return f"Which code has the {first} {second} {third}? (leaf {number:03d})"


def content_of(number: int) -> str:
    said = " ".join(leaf_words(number))
    filler = " ".join(random.Random(-number).choices(WORDS, k=60))
    return f"The {said} has the code C{number:03d}.\n{filler}."


def thousand_leaves() -> Tree:
    """A tree of three levels with ten children each; leaves describe themselves, inner nodes only say a number."""
    tree = Tree.create(":memory:")
    nodes: list[tuple[Node, str]] = []
    for a in range(BRANCHING):
        nodes.append((Node(f"{a}", f"Part {a}", f"Everything of part {a}"), tree.root))
        for b in range(BRANCHING):
            nodes.append((Node(f"{a}{b}", f"Part {a}{b}", f"Chapter {b} of part {a}"), f"{a}"))
            for c in range(BRANCHING):
                number = int(f"{a}{b}{c}")
                said = "On the " + ", ".join(leaf_words(number)[:3])
                nodes.append((Node(f"{a}{b}{c}", f"Part {a}{b}{c}", said, content_of(number)), f"{a}{b}"))
    tree.add_many(nodes)
    return tree


def right(request: ModelRequest) -> Any:
    """Answer rightly: choose the option that leads to the leaf that the question names, and read its code."""
    wanted = re.search(r"\(leaf (\d{3})\)", request.user)
    if "choice" in request.system and wanted is not None:
        titles = {label: said.split(":")[0].split(" (")[0] for label, said in request.options.items()}
        for length in (3, 2, 1):
            for label, title in titles.items():
                if title == f"Part {wanted[1][:length]}":
                    return {"reason": "its number fits", "choice": label, "ruled_out": []}
        return {"reason": "no number fits", "choice": "none", "ruled_out": []}
    if "answers" in request.system:
        found = re.search(r"The [a-z ]+ has the code (C\d{3})", request.user)
        said = [{"question": "Q1", "answer": found[1], "quote": found[0], "complete": True}] if found else []
        return {"answers": said, "new_questions": [], "notes": ""}
    labels = re.findall(r"^Item ([A-Z]+)$", request.user, re.MULTILINE)
    return {
        "items": [{"item": label, "title": "t", "description": "What is found there."} for label in labels]
    }


@contextmanager
def served(latency_s: float = 0.0) -> Iterator[str]:
    """Run the stub server in a process of its own and yield its address."""
    command = [sys.executable, __file__, "--serve", str(latency_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait(20)


def serve(latency_s: float) -> None:
    # The tokens are of interest where no time is: counting them would be a part of the latency.
    count = (lambda text: len(text) // 4) if latency_s else counter_for("llama-2").text
    with ModelServer(right, latency_s=latency_s, keep=False, count=count) as server:
        print(server.url, flush=True)
        sys.stdin.read()


def router_for(url: str, **options: Any) -> LLMRouter:
    return LLMRouter("stub", base_url=url, cache=MemoryCache(), **options)


def calls_and_tokens(url: str) -> None:
    tree = thousand_leaves()
    sample = random.Random(7).sample(range(1_000), 60)
    kinds: dict[str, Evidence | Literal[False]] = {"with hints": text_evidence(tree), "without hints": False}
    for name, evidence in kinds.items():
        router = router_for(url)
        calls, tokens, right_ones = [], [], 0
        for number in sample:
            found = search(question_for(number), tree=tree, router=router, evidence=evidence)
            calls.append(found.usage.model_calls)
            tokens.append(found.usage.tokens_in)
            right_ones += found.answer == f"C{number:03d}" and bool(found.answers[0].sources[0].quote)
        print(
            f"1,000 leaves, {name:14}  verified {right_ones}/{len(sample)}"
            f"   calls median {statistics.median(calls):.0f} max {max(calls)}"
            f"   prompt tokens median {statistics.median(tokens):.0f} max {max(tokens)}"
        )


def overhead() -> None:
    import httpx2

    said = {"reason": "it fits", "choice": "C", "ruled_out": [{"option": "A", "why": "no"}]}
    message = {"role": "assistant", "content": json.dumps(said)}
    body = {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }
    raw = json.dumps(body).encode()

    def request(number: int) -> RouteRequest:
        options = tuple(
            Option(
                f"{number}-{n}",
                f"file_{number}_{n}.py",
                f"Sessions, cookies and adapters of kind {number}",
                None,
                0.5,
                (f"def resolve_{number}_{n}(self, response, request)",),
            )
            for n in range(13)
        )
        return RouteRequest(
            (f"Where are redirects of kind {number} followed?",), "", Node("n", "src"), options
        )

    async def measure() -> list[float]:
        answer = httpx2.Response
        transport = httpx2.MockTransport(
            lambda _: answer(200, content=raw, headers={"content-type": "application/json"})
        )
        router = router_for("http://stub/v1", transport=transport)
        for number in range(-20, 0):
            await router.route(request(number))
        times = []
        for number in range(300):
            asked = request(number)
            began = time.process_time()
            router.capacity(asked)
            await router.route(asked)
            times.append((time.process_time() - began) * 1e3)
        return times

    gc.collect()
    times = asyncio.run(measure())
    print(
        f"one routing call without the network (openai, instructor, prompt, counting): CPU median"
        f" {statistics.median(times):.2f} ms, mean {statistics.mean(times):.2f} ms"
    )


def side_by_side() -> None:
    """Compare searches with the latency alone, and with a bare client that sends the same requests in the same run."""
    latency_s, many = 0.2, 64
    tree = thousand_leaves()

    async def searches(router: LLMRouter) -> Timed:
        async def one(number: int) -> int:
            asked = question_for(number * 15)
            found = await asearch(asked, tree=tree, router=router, evidence=False)
            return found.usage.model_calls

        await one(0)
        return await timed([one(number) for number in range(many)])

    async def bare(url: str, bodies: list[bytes]) -> Timed:
        headers = {"content-type": "application/json"}

        async def one(session: aiohttp.ClientSession, mine: list[bytes]) -> int:
            for body in mine:
                async with session.post(f"{url}/chat/completions", data=body, headers=headers) as answer:
                    await answer.read()
            return len(mine)

        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            await one(session, bodies[:1])
            return await timed([one(session, bodies[number::many]) for number in range(many)])

    with served(latency_s) as url:
        bodies = sent(url, searches, many)
        router = router_for(url, concurrency=many)
        ours, floors = [], []
        for _ in range(3):
            ours.append(asyncio.run(searches(router)))
            floors.append(asyncio.run(bare(url, bodies)))
    best, floor = min(ours), min(floors)
    alone = best.calls * latency_s
    print(
        f"{many} searches of {best.calls} calls side by side, {latency_s * 1e3:.0f} ms latency: {best.took_s:.2f} s,"
        f" CPU {best.cpu_s:.2f} s; the latency alone {alone:.2f} s: {best.took_s / alone:.2f} times;"
        f" a bare aiohttp client with the same requests {floor.took_s:.2f} s, CPU {floor.cpu_s:.2f} s:"
        f" {best.took_s / floor.took_s:.2f} times"
    )


class Timed(NamedTuple):
    """How long some work took, side by side, and how many calls the longest of it made."""

    took_s: float
    cpu_s: float
    calls: int


async def timed(work: list[Coroutine[Any, Any, int]]) -> Timed:
    began, cpu = time.perf_counter(), time.process_time()
    calls = await asyncio.gather(*work)
    return Timed(time.perf_counter() - began, time.process_time() - cpu, max(calls))


def sent(url: str, searches: Callable[[LLMRouter], Coroutine[Any, Any, Timed]], many: int) -> list[bytes]:
    """Return the bodies that searches send, in the order in which they are sent."""
    import httpx2

    class Kept(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            bodies.append(request.content)
            return await super().handle_async_request(request)

    bodies: list[bytes] = []
    asyncio.run(searches(router_for(url, concurrency=many, transport=Kept())))
    return bodies[-many * (len(bodies) // many) :]


def descriptions(url: str) -> None:
    from metatree_memory_tools import build_tree

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        for number in range(1_000):
            place = source / f"package_{number // 50}" / f"module_{number}.py"
            place.parent.mkdir(exist_ok=True)
            words = leaf_words(number)
            place.write_text(
                f'"""About {words[0]}."""\n\n\ndef {words[1]}_{number}():\n    return "{words[2]}"\n\n\n'
                f"def {words[3]}_{number}(value):\n    return value\n"
            )
        with build_tree(source) as tree:
            describer = router_for(url).suite().describer
            began = time.perf_counter()
            first = describe_tree(tree, describer, max_calls=50)
            rest = describe_tree(tree, describer)
            took = time.perf_counter() - began
            again = describe_tree(tree, describer)
            changed = source / "package_3" / "module_160.py"
            changed.write_text(changed.read_text().replace("return value", "return value + 1"))
            tree.refresh()
            after = describe_tree(tree, describer)
            print(
                f"descriptions of 1,000 files, {len(tree):,} nodes: {first.calls + rest.calls} calls (cut off after"
                f" {first.calls}), {len(tree) / (first.calls + rest.calls):.1f} nodes a call, {took:.1f} s; again"
                f" {again.calls} calls; after a change of one file {after.calls} calls for {after.written} nodes"
            )


def main() -> None:
    if len(sys.argv) > 2 and sys.argv[1] == "--serve":
        serve(float(sys.argv[2]))
        return
    overhead()
    with served() as url:
        calls_and_tokens(url)
        descriptions(url)
    side_by_side()


if __name__ == "__main__":
    main()
