"""The options of `metatree serve` that operators need: limits, models, proxies, metrics, the log."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args
from urllib.parse import urlsplit

import typer

from metatree._util.named_file import refuse_name
from metatree.errors import MissingExtra, UserError
from metatree_agents.cli import _options as options
from metatree_agents.cli.commands._trees import TreeOptions

if TYPE_CHECKING:
    from metatree import Tree
    from metatree_agents.service.accounts.limits import Rates
    from metatree_agents.service.accounts.other_logins import OtherLogins
    from metatree_agents.service.http.logs import Form

Concurrency = Annotated[
    int,
    typer.Option("--concurrency", min=1, metavar="N", help="How many topics are answered at the same time."),
]
NamedFolders = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME=FOLDER", help="Trees by their names, in place of --source and --tree; see below."
    ),
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
LoginHeader = Annotated[
    str | None,
    options.option(
        "--login-header",
        "NAME",
        "A header in which a proxy says who is logged in, such as Remote-User; taken from --login-proxy alone.",
    ),
]
LoginProxy = Annotated[
    list[str] | None,
    options.option(
        "--login-proxy",
        "ADDRESS",
        "Address or network of a proxy that may set --login-header; several times.",
    ),
]
OidcIssuer = Annotated[
    str | None,
    options.option(
        "--oidc-issuer",
        "URL",
        "A provider of OpenID Connect by which people log in to the web page; the secret is METATREE_OIDC_SECRET.",
    ),
]
OidcClient = Annotated[
    str | None, options.option("--oidc-client", "ID", "What this service is called at --oidc-issuer.")
]
OidcClaim = Annotated[
    str,
    options.option(
        "--oidc-claim",
        "NAME",
        "The claim of --oidc-issuer that is the user's name; one that people there cannot choose.",
    ),
]
LoginAdds = Annotated[
    bool,
    typer.Option(
        "--login-adds", help="Whom --login-header or --oidc-issuer names and nobody knows becomes a user."
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


def logins_of(
    header: str | None,
    proxies: list[str] | None,
    issuer: str | None,
    client: str | None,
    claim: str,
    *,
    adds: bool,
) -> OtherLogins:
    """Return how people log in who have no secret.

    Raises:
        UserError: a part is missing, or anybody could say who they are.
        MissingExtra: Authlib is not installed.
    """
    from metatree_agents.service.accounts.other_logins import OtherLogins

    if bool(header) != bool(proxies):
        raise UserError(
            "--login-header and --login-proxy belong together: anybody else could write the header"
        )
    if header and not re.fullmatch(r"[A-Za-z0-9-]{1,100}", header):
        raise UserError(
            f"{header!r} is no name of a header: use letters, digits and `-`, such as Remote-User"
        )
    if bool(issuer) != bool(client):
        raise UserError("--oidc-issuer and --oidc-client belong together")
    if adds and not (header or issuer):
        raise UserError("--login-adds needs --login-header or --oidc-issuer")
    if not issuer or not client:
        return OtherLogins(header or "", tuple(proxies_of(proxies)), adds=adds)
    host = urlsplit(issuer)
    if host.scheme != "https" and host.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise UserError(f"{issuer!r} is not encrypted: give the https address of the provider")
    if find_spec("authlib") is None:
        raise MissingExtra("oidc", what="log-in by OpenID Connect")
    secret = os.environ.get("METATREE_OIDC_SECRET", "")
    if not secret:
        raise UserError("METATREE_OIDC_SECRET is not set: it has the secret of the client at --oidc-issuer")
    return OtherLogins(header or "", tuple(proxies_of(proxies)), issuer, client, secret, claim, adds)


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


def opened_trees(
    opened: ExitStack, given: Sequence[str] | None, where: TreeOptions, *, publish: bool | None = None
) -> dict[str, Tree]:
    """Open trees by their names, each built or refreshed first as the tree of one folder is.

    Args:
        opened: closes them.
        given: NAME=FOLDER of each.
        where: --source and --tree, which go without names.

    Raises:
        UserError: a name is none or there twice, a folder is not there, or options do not go together.
    """
    if given and (where.source or where.tree or publish):
        raise UserError(
            "NAME=FOLDER goes without --source, --tree and --publish: each folder has its own tree"
        )
    return {
        name: opened.enter_context(TreeOptions([str(path)]).ready())
        for name, path in named_folders(given or ()).items()
    }


def named_folders(given: Sequence[str]) -> dict[str, Path]:
    """Return the folders of NAME=FOLDER by their names.

    Raises:
        UserError: a name is none or there twice, or a folder is not there.
    """
    from metatree_agents.service.accounts.tree_rights import require_name

    folders: dict[str, Path] = {}
    for each in given:
        name, found, folder = each.partition("=")
        if not found or not folder:
            raise UserError(
                f"{each!r} is not NAME=FOLDER, such as handbook=~/handbook; one folder goes with --source"
            )
        refuse_name(each, "NAME=FOLDER")
        if require_name(name) in folders:
            raise UserError(f"two trees are called {name!r}: give each a name of its own")
        path = options.path(folder)
        if not path.is_dir():
            raise UserError(f"there is no folder {str(path)!r} for the tree {name}")
        folders[name] = path
    return folders
