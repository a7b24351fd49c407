"""Values of options that are taken without pydantic, which Typer loads to look at any value: a seventh of `find`.

Texts, whole numbers, what our own parsers read, and defaults are what nearly all values are. All others are left to
Typer, and so is everything where a version of Typer keeps what looks at values elsewhere.
"""

from __future__ import annotations

import re
from typing import Any

import typer

_DIGITS = re.compile(r"[0-9]{1,9}")


class PlainValues:
    """What a command has besides its class of Typer."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options and arguments, whose plain values are taken as they are."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # of the class beside this one
        for parameter in parameters:
            if getattr(parameter, "_runtime_param", ...) is None and hasattr(parameter, "type_descriptor"):
                parameter._runtime_param = _Plain()
        return parameters


class PlainCommand(PlainValues, typer.core.TyperCommand):
    """A command whose plain values are taken as they are."""


class _Plain:
    """Stands before what Typer makes for a parameter."""

    def coerce(self, value: Any, *, param: Any, ctx: Any) -> Any:
        """Return a value as the command takes it; raises what Typer raises."""
        many = param.multiple or param.nargs == -1
        if value is None:
            return () if many else None
        kind, declared = param.type_descriptor.annotation, param.type_descriptor.parameter_info
        parser = declared.parser
        is_list = isinstance(value, list | tuple)
        values = value if is_list else [value]
        plain = is_list == many and all(isinstance(each, str) for each in values)
        if plain and (parser or kind in (str, list[str])):
            try:
                taken = [parser(each) if parser else each for each in values]
            except ValueError:  # Typer says which option it was of
                pass
            else:
                return taken if many else taken[0]
        elif plain and kind is int and not many and _DIGITS.fullmatch(value):
            if int(value) >= (declared.min or 0) and declared.max is None:
                return int(value)
        elif parser is None and not many and type(value) is kind and value == param.default:
            return value
        param._runtime_param = None
        try:
            return param.get_runtime_param().coerce(value, param=param, ctx=ctx)
        finally:
            param._runtime_param = self
