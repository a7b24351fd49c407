"""What `metatree gateway --list` prints."""

from __future__ import annotations

from pydantic import Field

from metatree_agents.cli.schemas._model import Output


class ToolRow(Output):
    """A tool of a server."""

    id: str = Field(description="As `call_tool` takes it.")
    description: str = Field(description="What its server says of it.")
    read_only: bool = Field(
        description="Whether it changes nothing, by the word of its server or of the user."
    )
    permitted: bool = Field(description="Whether it may be called, as it is now, without asking.")


class ServerRow(Output):
    """A server."""

    name: str
    place: str = Field(description="Its program, address or file; no arguments and no secrets.")
    tools: list[ToolRow]


class GatewayOutput(Output):
    """What a gateway mounts."""

    servers: list[ServerRow]
    problems: list[str] = Field(description="A line on each server that cannot be used, or not in full.")
