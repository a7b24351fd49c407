"""Whether what is at an address has changed, by what its server says, without fetching it."""

from __future__ import annotations

from metatree.errors import FetchFailed
from metatree_memory_tools.web.addresses import AddressRules
from metatree_memory_tools.web.fetch import ROBOTS, Fetched, FetchLimits, RobotsCache, fetch

_SECONDS = 10.0


def validator(response: Fetched) -> str | None:
    """Return what a server says of the version of a page, None when it says nothing that can be relied on."""
    etag = response.headers.get("etag", "")
    if etag:
        return f"etag {etag}"
    changed = response.headers.get("last-modified", "")
    return f"changed {changed} {response.headers.get('content-length', '')}" if changed else None


def page_fingerprint(url: str, *, rules: AddressRules, robots: RobotsCache | None = ROBOTS) -> str | None:
    """Ask for the headers of a page alone; None when they do not tell, or the server knows no such question.

    Raises:
        RefusedAddress: it may not be fetched from.
        FetchFailed: it cannot be reached, or is gone.
    """
    try:
        response = fetch(url, rules=rules, robots=robots, method="HEAD", limits=FetchLimits(seconds=_SECONDS))
    except FetchFailed as exc:
        if exc.status in (403, 405, 501):  # many servers answer GET alone
            return None
        raise
    return validator(response)
