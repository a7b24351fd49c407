"""Calling an operation: its URL, headers and body from the arguments, credentials from the environment.

A credential is bound to the host by the name of its variable, so that no description can ask for that of another.
Lost: variables named by scheme, with which any description could.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from metatree.errors import FetchFailed, UserError
from metatree_memory_tools.web.addresses import AddressRules
from metatree_memory_tools.web.fetch import Fetched, FetchLimits, fetch

PREFIX = "METATREE_AUTH_"
"""With the host behind it, the variable with the credentials for one host."""
_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_HOST = re.compile(rf"{_LABEL}(?:\.{_LABEL})*", re.IGNORECASE)
_HIDDEN = "[secret]"
_MAX_BYTES = 5_000_000
_SHOWN_HEADERS = ("content-type", "content-length", "last-modified", "etag", "location")


@dataclass
class _Request:
    """What is sent, as it is put together."""

    query: list[tuple[str, str]] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    cookies: list[str] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)


def call(
    base: str,
    operation: Mapping[str, Any],
    arguments: Mapping[str, Any],
    *,
    schemes: Mapping[str, Any],
    auth: Mapping[str, str],
    rules: AddressRules,
    seconds: float,
) -> str:
    """Call an operation and return what it answers as text, without the credentials should they be in it.

    Args:
        base: address of the server, without a `/` at its end.
        operation: as `described` gives it.
        arguments: validated.
        schemes: name -> how it is sent, `[type, scheme, place, name]`.
        auth: name of a scheme -> `$NAME`, the variable with its credentials.
        rules: what may be reached.
        seconds: for all of it.

    Raises:
        UserError: an argument would lead elsewhere, or a variable is not set.
        FetchFailed: the server cannot be reached or answers with an error, whose text is in the message.
    """
    method = str(operation["method"])
    request = _Request()
    path = _filled(operation, arguments, request)
    body = None
    if operation["body"] and arguments.get("body") is not None:
        body, request.headers["Content-Type"] = _body(str(operation["body"]), arguments["body"])
    _sign(operation, schemes, auth, base, request)
    if request.secrets and not _is_private(base, rules):
        host = urlsplit(base).hostname
        raise UserError(
            f"the credentials for {host} are not sent as plain text: the description has to name an address with https"
        )
    if request.cookies:
        request.headers["Cookie"] = "; ".join(request.cookies)
    request.headers.setdefault("Accept", "application/json, text/*;q=0.9, */*;q=0.5")
    url = base + path + (f"?{urlencode(request.query, quote_via=quote)}" if request.query else "")
    if urlsplit(url).netloc != urlsplit(base).netloc:
        raise UserError(f"the arguments would lead away from {base!r}")
    try:
        response = fetch(
            url,
            rules=rules,
            limits=FetchLimits(max_bytes=_MAX_BYTES, seconds=seconds, redirects=3),
            robots=None,
            headers=request.headers,
            method=method,
            body=body,
            statuses=tuple(range(400, 600)),
        )
    except FetchFailed as exc:
        raise FetchFailed(_without(str(exc), request.secrets), url=base, status=exc.status) from None
    text = _without(_text(response, method), request.secrets)
    if response.status >= 400:
        raise FetchFailed(
            f"{method} {operation['path']} answers {response.status}: {text[:2_000]}",
            url=base,
            status=response.status,
        )
    return text or f"(status {response.status}, no content)"


def variable_for(host: str) -> str:
    """Return the name of the variable with the credentials for a host; no two hosts share one.

    A host with other signs than ASCII letters, digits, dots and hyphens has none: what its name looks like may be
    registered by anybody. An international one has one as it is sent, `xn--…`.

    Example:
        >>> variable_for("api.my-shop.example"), variable_for("api_example.org"), variable_for("apié.example")
        ('METATREE_AUTH_API_MY__SHOP_EXAMPLE', '', '')
    """
    if _HOST.fullmatch(host) is None:
        return ""
    return PREFIX + host.upper().replace("-", "__").replace(".", "_")


def _filled(operation: Mapping[str, Any], arguments: Mapping[str, Any], request: _Request) -> str:
    """Put the arguments where they belong, and return the path."""
    path = str(operation["path"])
    for argument, (place, name, style, explode) in operation["places"].items():
        value = arguments.get(argument)
        if value is None:
            continue
        if place == "path":
            text = ",".join(map(_word, value)) if isinstance(value, list) else _word(value)
            if text in ("", ".", ".."):
                raise UserError(f"{name}={text!r} cannot be part of an address")
            path = path.replace("{" + name + "}", quote(text, safe=""))
        elif place == "query":
            request.query += _in_query(name, value, style, explode)
        else:
            text = ",".join(map(_word, value)) if isinstance(value, list) else _word(value)
            if any(ord(char) < 32 or ord(char) > 126 for char in text):
                text = quote(text)
            if place == "header":
                request.headers[name] = text
            else:
                request.cookies.append(f"{name}={quote(text, safe='')}")
    return path if path.startswith("/") else f"/{path}"


def _in_query(name: str, value: Any, style: str, explode: bool) -> list[tuple[str, str]]:
    if isinstance(value, list):
        if explode and style == "form":
            return [(name, _word(each)) for each in value]
        between = {"spaceDelimited": " ", "pipeDelimited": "|"}.get(style, ",")
        return [(name, between.join(map(_word, value)))]
    if isinstance(value, dict):
        if style == "deepObject":
            return [(f"{name}[{key}]", _word(each)) for key, each in value.items()]
        if explode:
            return [(key, _word(each)) for key, each in value.items()]
        return [(name, ",".join(_word(part) for pair in value.items() for part in pair))]
    return [(name, _word(value))]


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)


def _body(kind: str, value: Any) -> tuple[bytes, str]:
    if "json" in kind:
        return json.dumps(value, ensure_ascii=False).encode(), kind
    pairs = value.items() if isinstance(value, dict) else ()
    return urlencode([(key, _word(each)) for key, each in pairs]).encode(), kind


def _sign(
    operation: Mapping[str, Any],
    schemes: Mapping[str, Any],
    auth: Mapping[str, str],
    base: str,
    request: _Request,
) -> None:
    """Add credentials of the first way for which there are some; none when the operation asks for none."""
    common = os.environ.get(variable_for(urlsplit(base).hostname or ""))
    for way in operation["security"]:
        credentials = {name: _credentials(name, auth, common) for name in way if name in schemes}
        if way and len(credentials) == len(way) and all(credentials.values()):
            for name, secret in credentials.items():
                _send(schemes[name], str(secret), request)
            return


def _is_private(base: str, rules: AddressRules) -> bool:
    """Whether nobody on the way can read what is sent: by https, or to a machine of one's own or of one's network."""
    parts = urlsplit(base)
    host = parts.hostname or ""
    try:
        return parts.scheme == "https" or not ip_address(host).is_global
    except ValueError:
        allowed = (entry.partition(":")[0] for entry in (*rules.allow, *rules.named))
        return host == "localhost" or host in allowed


def _credentials(name: str, auth: Mapping[str, str], common: str | None) -> str | None:
    variable = auth.get(name)
    if variable is None:
        return common
    secret = os.environ.get(variable.removeprefix("$"))
    if secret is None:
        raise UserError(f"the variable {variable!r} with the credentials of {name!r} is not set")
    return secret


def _send(scheme: list[str], secret: str, request: _Request) -> None:
    kind, how, place, name = scheme
    if any(ord(char) < 32 for char in secret):
        raise UserError(
            "credentials in the environment have a line break or another control character in them"
        )
    request.secrets.append(secret)
    if kind == "apiKey" and place == "query":
        request.query.append((name, secret))
        request.secrets += [quote(secret), quote(secret, safe="")]
    elif kind == "apiKey" and place == "cookie":
        request.cookies.append(f"{name}={secret}")
    elif kind == "apiKey":
        request.headers[name] = secret
    elif how == "basic":
        packed = base64.b64encode(secret.encode()).decode()
        request.secrets += [packed, secret.partition(":")[2]]
        request.headers["Authorization"] = f"Basic {packed}"
    else:
        request.headers["Authorization"] = f"Bearer {secret}"


def _text(response: Fetched, method: str) -> str:
    if method == "HEAD":
        headers = [f"{name}: {response.headers[name]}" for name in _SHOWN_HEADERS if name in response.headers]
        return "\n".join([f"status {response.status}", *headers])
    kind = response.content_type
    if kind.startswith("text/") or "json" in kind or "xml" in kind or kind in ("", "application/x-yaml"):
        return response.body.decode(_charset(response.charset), "replace")
    return f"[{kind}, {len(response.body):,} bytes]" if response.body else ""


def _charset(name: str) -> str:
    try:
        "".encode(name or "utf-8")
    except LookupError:
        return "utf-8"
    return name or "utf-8"


def _without(text: str, secrets: list[str]) -> str:
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) >= 4:
            text = text.replace(secret, _HIDDEN)
    return text
