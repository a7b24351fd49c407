"""How long a search can take at most, in steps."""

from __future__ import annotations

from metatree.result import Limits


def most_steps(*, nodes: int, tools: int, questions: int, limits: Limits, fallbacks: int) -> int:
    """Return how many outcomes a run takes at most, whatever its router, reader and tools say.

    There is a frame for each question that is asked or comes up, at most. A frame starts once, once more for the
    second look, for each restart and for each fallback that makes nodes. In one start, each node is entered at most
    once, since it is marked when it is left: so each is listed on entering, after what happened to it in a menu,
    after it was collected and stays open for what is below it, and after each decision that rules something out;
    each list leads to a routing, and that to one by evidence at most; each is read once, and once more for each
    question whose answer it gets. Each of its tools is listed, routed, filled in, called, put to a person, called
    again, described and inserted at most once. Before that, up to three calls of tools are found for each question that
    is asked, and each is filled in, made and read.

    Args:
        nodes: all that are in the tree at any time of the run.
        tools: tools and groups of tools.
        questions: those that the caller asks.

    A router with `capacity` takes, for each routing, up to one outcome more for each option.
    """
    all_questions = questions + limits.questions
    starts = 2 + limits.restarts + fallbacks
    each_start = (nodes + 1) * (13 + all_questions + 15 * tools)
    return all_questions * (starts * each_start + fallbacks + all_questions) + questions * (1 + 3 * 5) + 1
