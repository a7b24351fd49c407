"""The durable machine: plain state, a pure step, effects that touch the world, and a journal that is the truth.

A search, a planner's agent and a control shell all run on it. It knows nothing of trees, routers or models.

    events -> step(state, event) -> effects -> handlers -> outcomes -> journal -> events

Every outcome is appended to the journal before it is applied. To resume is to replay the journal: effects
whose outcome is there are never repeated, those that were in flight are started again under the same key.
"""

from metatree.durable._journal import Journal, MemoryJournal, Record, RunInfo
from metatree.durable._machine import Effect, Event, Machine, Outcome, Signal
from metatree.durable._policy import Attempt, Handler, InDoubt, Policy
from metatree.durable._replay import Replayed, first_record, replay, take_up
from metatree.durable._runner import Finish, Runner, metered, report_usage, run_memory

__all__ = [
    "Attempt",
    "Effect",
    "Event",
    "Finish",
    "Handler",
    "InDoubt",
    "Journal",
    "Machine",
    "MemoryJournal",
    "Outcome",
    "Policy",
    "Record",
    "Replayed",
    "RunInfo",
    "Runner",
    "Signal",
    "first_record",
    "metered",
    "replay",
    "report_usage",
    "run_memory",
    "take_up",
]
