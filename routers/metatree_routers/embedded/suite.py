"""The embedded suite: every part that thinks, without a model, a key or a server."""

from __future__ import annotations

from metatree.errors import UserError
from metatree.protocols import Evidence, Suite
from metatree_routers.embedded.composer import EmbeddedComposer
from metatree_routers.embedded.describer import EmbeddedDescriber
from metatree_routers.embedded.reader import EmbeddedReader
from metatree_routers.embedded.router import EmbeddedRouter
from metatree_routers.embedded.tool_caller import EmbeddedToolCaller


def embedded_suite(spec: str = "embedded", *, evidence: Evidence | None = None) -> Suite:
    """Return the embedded parts; the entry point `metatree.routers: embedded`.

    Args:
        evidence: that of the tree, if the reader is to know what its words and its other texts say.
        spec: `embedded`, or `embedded/words` for words alone, without static embeddings.

    Raises:
        UserError: the spec says something else.
    """
    name, _, option = spec.partition("/")
    if name != "embedded" or option not in ("", "words"):
        raise UserError(f"no router {spec!r}: use 'embedded' or 'embedded/words'")
    embeddings = option != "words"
    return Suite(
        router=EmbeddedRouter(embeddings=embeddings),
        reader=EmbeddedReader(
            embeddings=embeddings,
            passages=evidence.passages if evidence is not None and evidence.traits.gives_passages else None,
        ),
        tool_caller=EmbeddedToolCaller(),
        composer=EmbeddedComposer(),
        describer=EmbeddedDescriber(),
    )
