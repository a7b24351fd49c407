"""The options of `metatree serve` that operators need: limits, models, proxies, metrics, the log."""

from __future__ import annotations

import logging
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from metatree.errors import UserError
from metatree_agents.cli import _options as options

if TYPE_CHECKING:
    from metatree_agents.service.accounts.limits import Rates
    from metatree_agents.service.http.logs import Form

Concurrency = Annotated[
    int,
    typer.Option("--concurrency", min=1, metavar="N", help="How many topics are answered at the same time."),
]
Human = Annotated[
    bool,
    typer.Option("--human", help="Put what the tree does not answer to the person who asked, in the thread."),
]
TrustSources = Annotated[
    bool,
    typer.Option(
        "--trust-sources",
        help="In a copy of another server's tree: start the commands and ask the servers, databases and trees that it"
        " names, on this machine and with your rights.",
    ),
]
Limit = Annotated[
    list[str] | None,
    options.option(
        "--limit",
        "NAME=N",
        "A limit, several times for several: user-rate, user-burst, address-rate, address-burst, connections,"
        " program-connections, open-queries; 0 for none. docs/operations.md says what each is.",
    ),
]
ModelAlias = Annotated[
    list[str] | None,
    options.option(
        "--model-alias",
        "NAME",
        "Offer a model of this name to clients of OpenAI's API besides `metatree`; engines are told the name.",
    ),
]
Proxy = Annotated[
    list[str] | None,
    options.option(
        "--proxy",
        "ADDRESS",
        "Address or network of a proxy in front, which says who its callers are; 127.0.0.1 by default.",
    ),
]
MetricsAddress = Annotated[
    str | None,
    options.option(
        "--metrics-address",
        "HOST:PORT",
        "Serve /metrics here as well, to whoever can reach it; else it is for this machine and administrators.",
    ),
]
Log = Annotated[
    str,
    options.option(
        "--log",
        "FORM",
        "Log of requests on standard error: `text`, `json` (one object a line), or `none`;"
        " with --debug also what engines ask all the time.",
    ),
]


def proxies_of(addresses: list[str] | None) -> list[str]:
    """Return the addresses of proxies.

    Raises:
        UserError: one is neither an address nor a network.
    """
    from ipaddress import ip_network

    for address in addresses or ():
        try:
            ip_network(address, strict=False)
        except ValueError:
            raise UserError(
                f"{address!r} is no address of a proxy: use one like 10.0.0.5, or a network like 10.0.0.0/24"
            ) from None
    return addresses or []


def rates_of(limits: list[str] | None) -> Rates:
    """Return the limits, those that were named changed.

    Raises:
        UserError: one is none, or no number.
    """
    from metatree_agents.service.accounts.limits import Rates

    known = {field.name.replace("_", "-"): field.name for field in fields(Rates)}
    rates: dict[str, float] = {}
    for text in limits or ():
        name, _, value = text.partition("=")
        if name not in known:
            raise UserError(f"{name!r} is no limit: use one of {', '.join(known)}, as in user-rate=50")
        try:
            rates[known[name]] = float(value)
        except ValueError:
            rates[known[name]] = -1.0
        if not 0 <= rates[known[name]] < float("inf"):
            raise UserError(f"{value!r} is no value of {name}: use a number, 0 for no limit")
    return replace(Rates(), **rates)


def form_of(text: str) -> Form:
    """Return the form of the log that an option names.

    Raises:
        UserError: it names none.
    """
    from metatree_agents.service.http.logs import Form

    if text in get_args(Form):
        return cast("Form", text)
    raise UserError(f"{text!r} is no form of the log: use one of {', '.join(get_args(Form))}")


def log_line(text: str) -> None:
    """Write what a person should know as a line of the log."""
    logging.getLogger("metatree.service").info("%s", text)
