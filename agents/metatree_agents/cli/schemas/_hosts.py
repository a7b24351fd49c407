"""The JSON of the commands that set up agent hosts."""

from __future__ import annotations

from pydantic import Field

from metatree_agents.cli.schemas._model import Output


class HostChangeOutput(Output):
    """One file of a host, and what was done to it.

    `what` is `server`, `skill`, `gateway` or `servers` (those that it stands for); `level` is `user` or `project`;
    `done` is `created`, `changed`, `unchanged`, `restored`, `removed`, `kept`, `absent` or `refused`, and `detail` says
    why nothing was done. `copy_kept` is where what the file held before was kept; `diff` is there with `--dry-run`,
    which changes nothing.
    """

    host: str
    level: str
    what: str
    path: str
    done: str
    detail: str
    copy_kept: str | None
    diff: list[str] = Field(default_factory=list)


class HostsOutput(Output):
    """`metatree install --json` and `uninstall --json`."""

    changes: list[HostChangeOutput]
