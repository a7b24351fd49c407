"""Parts and servers for tests: routers, readers and tool callers that do as they are told, a model and a web server.

    from metatree.testing import ScriptedRouter, ModelServer

They pass the same contract tests as the real parts.
"""

from metatree.testing._model_server import (
    DROP,
    EMPTY,
    HTML,
    REFUSAL,
    ModelRequest,
    ModelServer,
    Reply,
    hang,
    status,
    truncated,
)
from metatree.testing._web_server import WebServer
from metatree.testing.parts import (
    FakeClock,
    FunctionRouter,
    PlainComposer,
    PlainDescriber,
    ScriptedReader,
    ScriptedRouter,
    ScriptedToolCaller,
    tree_of,
)

__all__ = [
    "DROP",
    "EMPTY",
    "HTML",
    "REFUSAL",
    "FakeClock",
    "FunctionRouter",
    "ModelRequest",
    "ModelServer",
    "PlainComposer",
    "PlainDescriber",
    "Reply",
    "ScriptedReader",
    "ScriptedRouter",
    "ScriptedToolCaller",
    "WebServer",
    "hang",
    "status",
    "tree_of",
    "truncated",
]
