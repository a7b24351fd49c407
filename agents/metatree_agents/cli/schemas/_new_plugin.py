"""The JSON of the command that writes a package with a plug-in."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from metatree_agents.cli.schemas._model import Output


class NewPluginOutput(Output):
    """`metatree new-plugin --json`."""

    name: str = Field(description="Of the package.")
    kind: str = Field(description="memory-type, source, tool or router.")
    group: str = Field(description="Group of the entry point.")
    entry: str = Field(description="Name of the plug-in.")
    object: str = Field(description="`MODULE:NAME`, as in the entry point.")
    path: Annotated[str, BeforeValidator(str)] = Field(description="The folder, absolute.")
    files: list[str] = Field(description="What was written, relative to the folder.")
