"""What a service answers an engine, by route: another answer comes from no query service of metatree."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError, model_validator

from metatree_agents.service.http.bodies import AskableTree, NameNow, NewQueries, WantedLookup
from metatree_agents.service.queue.recommendations import Recommendation


class _Claimed(NewQueries):
    """A batch of one topic: each of its queries is an object of one text, by its number."""

    Queries: (
        list[
            Annotated[
                dict[Annotated[str, StringConstraints(pattern="^[0-9]{1,15}$")], str],
                Field(min_length=1, max_length=1),
            ]
        ]
        | None
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.Topic is None) != (self.Queries is None):
            raise ValueError("a topic comes with its queries")
        return self


_SHAPES: dict[str, Any] = {
    "get-identity": NameNow,
    "get-new-lookup": WantedLookup,
    "get-new-queries": _Claimed,
    "get-recommendations": list[Recommendation],
    "get-topic-thread": list[dict[str, Any]],
    "trees": list[AskableTree],
    "wait-for-stop": dict[str, Any],
}


def check_answer(route: str, answer: Any) -> None:
    """Check what a route answered; a route that engines take nothing from may answer anything.

    Raises:
        ValueError: it is not what the route answers; the message says where.
    """
    if route in _SHAPES:
        try:
            _adapter(route).validate_python(answer)
        except ValidationError as exc:
            first = exc.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"]))
            what = "no JSON object" if first["type"] == "model_type" else first["msg"]
            raise ValueError(f"{place}: {what}" if place else what) from None


@cache
def _adapter(route: str) -> TypeAdapter[Any]:
    return TypeAdapter(_SHAPES[route])
