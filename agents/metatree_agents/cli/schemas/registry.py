"""What each command prints with `--json`: for the commands themselves, `metatree schema`, the docs and the tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from importlib import import_module
from operator import or_
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from metatree_agents.cli.schemas._model import Output

OUTPUTS: Final[Mapping[str, str]] = {
    "ask": "search.AskOutput",
    "find": "search.FindOutput",
    "files": "search.FilesOutput",
    "context": "_context.ContextOutput",
    "build": "search.BuildOutput",
    "show": "search.NodeOutput",
    "show --omitted": "search.OmittedOutput",
    "trace": "search.TraceOutput",
    "runs": "search.RunsOutput",
    "resume": "search.AskOutput search.FindOutput search.FilesOutput",
    "questions": "search.QuestionsOutput",
    "answer": "search.AskOutput search.FindOutput search.FilesOutput",
    "remember": "_memory.RememberOutput",
    "memories": "_memory.MemoriesOutput",
    "memories --flags": "_memory.FlagsOutput",
    "memories --wishes": "search.WishesOutput",
    "describe": "_describe.DescribeOutput",
    "forget": "_memory.ForgetOutput",
    "audit": "_memory.AuditOutput",
    "export": "_memory.ExportOutput",
    "import": "_memory.ImportOutput",
    "plugins": "search.PluginsOutput",
    "plugins --permissions": "search.PermissionsOutput",
    "new-plugin": "_new_plugin.NewPluginOutput",
    "doctor": "search.DoctorOutput",
    "trust": "search.TrustOutput",
    "cache": "search.CacheOutput",
    "gateway": "_gateway.GatewayOutput",
    "install": "_hosts.HostsOutput",
    "uninstall": "_hosts.HostsOutput",
    "ask --service": "service.ServiceAnswerOutput",
    "service trees list": "service.TreesOutput",
    "service users add": "service.UserAddedOutput",
    "service users login": "service.UserLoginOutput",
    "service users list": "service.UsersOutput",
    "service keys add": "service.KeyAddedOutput",
    "service keys list": "service.KeysOutput",
    "service queue status": "service.ServiceOutput",
    "service backup": "service.BackupOutput",
    "service check": "service.BackupOutput search.DoctorOutput",
    "service restore": "service.BackupOutput",
    "rules": "search.RulesOutput",
    "plan": "planner.PlanOutput planner.AgentOutput",
    **dict.fromkeys(
        [f"goals {name}" for name in ("show", "start", "signal", "cancel", "answer", "retry")],
        "planner.AgentOutput",
    ),
    "goals run": "planner.AgentOutput planner.AgentsOutput",
    "goals list": "planner.AgentsOutput",
    "goals schedule": "planner.SchedulesOutput",
    "goals schedules": "planner.SchedulesOutput",
    "goals unschedule": "planner.SchedulesOutput",
    "goals explain": "planner.ExplainOutput",
}
"""A command, perhaps with an option that changes what it prints, and the model of that, or several, by room.

They are named and not imported, since making the models of all rooms takes longer than printing with one.
"""


def models_of(command: str) -> Sequence[type[Output]]:
    """Return the models of what a command prints."""
    named = [name.split(".") for name in OUTPUTS[command].split()]
    return [getattr(import_module(f"metatree_agents.cli.schemas.{room}"), name) for room, name in named]


def schema_of(command: str) -> dict[str, Any]:
    """Return the JSON Schema of what a command prints."""
    from pydantic import TypeAdapter

    return TypeAdapter(reduce(or_, models_of(command))).json_schema(mode="serialization")
