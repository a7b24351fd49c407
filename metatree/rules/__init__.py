"""Rules: working memory, productions that match it, and a control shell that fires them.

    facts ── productions ── tokens to add and to remove ── knowledge sources ── facts
                                  schedule, resolver ──────────┘

`WorkingMemory` holds facts as triples and keeps, for each production, the tokens that came and went since they were
last committed. `ControlShell` fires knowledge sources by them: a `Schedule` says which productions may fire next, a
resolver picks one, and each firing is an effect of a durable machine.
"""

from metatree.rules._working_memory import FactChange, RulesDoNotRest, WorkingMemory, open_memory
from metatree.rules.language.conditions import Production
from metatree.rules.language.functions import FunctionFailed
from metatree.rules.language.lexemes import RuleSyntaxError
from metatree.rules.language.text import parse_facts, parse_productions
from metatree.rules.matcher.explain import Explanation, why_not
from metatree.rules.matcher.tokens import Agenda, Token
from metatree.rules.shell.control import ControlShell, ShellLimits, ShellReport
from metatree.rules.shell.knowledge import Firing, KnowledgeSource, commit_all, commit_one
from metatree.rules.shell.on_blackboard import BoardBridge
from metatree.rules.shell.program import Program
from metatree.rules.shell.resolvers import (
    STOP,
    AskRouter,
    First,
    OverridingSelfTransition,
    Priority,
    Recency,
    Resolver,
    SelfTransition,
    StopWhen,
    Trivial,
)
from metatree.rules.shell.schedule import Schedule, ScheduleError

__all__ = [
    "STOP",
    "Agenda",
    "AskRouter",
    "BoardBridge",
    "ControlShell",
    "Explanation",
    "FactChange",
    "Firing",
    "First",
    "FunctionFailed",
    "KnowledgeSource",
    "OverridingSelfTransition",
    "Priority",
    "Production",
    "Program",
    "Recency",
    "Resolver",
    "RuleSyntaxError",
    "RulesDoNotRest",
    "Schedule",
    "ScheduleError",
    "SelfTransition",
    "ShellLimits",
    "ShellReport",
    "StopWhen",
    "Token",
    "Trivial",
    "WorkingMemory",
    "commit_all",
    "commit_one",
    "open_memory",
    "parse_facts",
    "parse_productions",
    "why_not",
]
