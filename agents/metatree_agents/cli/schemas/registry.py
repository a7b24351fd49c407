"""What each command prints with `--json`, for `metatree schema`, the docs and the tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from metatree_agents.cli.schemas import memory, planner, search, service

OUTPUTS: Final[Mapping[str, Any]] = {
    "ask": search.AskOutput,
    "find": search.FindOutput,
    "files": search.FilesOutput,
    "build": search.BuildOutput,
    "show": search.NodeOutput,
    "show --omitted": search.OmittedOutput,
    "trace": search.TraceOutput,
    "runs": search.RunsOutput,
    "resume": search.AskOutput | search.FindOutput | search.FilesOutput,
    "questions": search.QuestionsOutput,
    "answer": search.AskOutput | search.FindOutput | search.FilesOutput,
    "remember": memory.RememberOutput,
    "memories": memory.MemoriesOutput,
    "memories --flags": memory.FlagsOutput,
    "forget": memory.ForgetOutput,
    "export": memory.ExportOutput,
    "import": memory.ImportOutput,
    "plugins": search.PluginsOutput,
    "plugins --permissions": search.PermissionsOutput,
    "doctor": search.DoctorOutput,
    "trust": search.TrustOutput,
    "service users add": service.UserAddedOutput,
    "service users login": service.UserLoginOutput,
    "service users list": service.UsersOutput,
    "service keys add": service.KeyAddedOutput,
    "service keys list": service.KeysOutput,
    "service queue status": service.ServiceOutput,
    "service backup": service.BackupOutput,
    "service check": service.BackupOutput,
    "service restore": service.BackupOutput,
    "rules": search.RulesOutput,
    "plan": planner.PlanOutput | planner.AgentOutput,
    **dict.fromkeys(
        [f"goals {name}" for name in ("show", "start", "signal", "cancel", "answer")], planner.AgentOutput
    ),
    "goals run": planner.AgentOutput | planner.AgentsOutput,
    "goals list": planner.AgentsOutput,
    "goals explain": planner.ExplainOutput,
}
"""A command, perhaps with an option that changes what it prints, and the model of that, or several."""


def schema_of(command: str) -> dict[str, Any]:
    """Return the JSON Schema of what a command prints."""
    from pydantic import TypeAdapter

    return TypeAdapter(OUTPUTS[command]).json_schema(mode="serialization")
