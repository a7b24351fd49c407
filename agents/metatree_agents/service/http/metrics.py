"""Figures of one process for Prometheus; no label says a user, a topic or an address.

Counters are of this process alone; what is in the queue is read from the database when the figures are asked for, and
is the same from every process.

prometheus-client makes the text (64 kB, no dependencies). Lost: our own, which would have to get escaping and
histograms right again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

if TYPE_CHECKING:
    from metatree_agents.service.accounts.admin import Figures

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
# Answers wait for a minute and streams for longer; other routes take milliseconds.
BUCKETS: Final = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    300.0,
)


class Metrics:
    """The figures of one process."""

    def __init__(self) -> None:
        # Otherwise a second series for each counter, which nobody reads.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.requests = Counter(
            "metatree_requests",
            "Requests that were answered.",
            ("method", "route", "status"),
            registry=registry,
        )
        self.seconds = Histogram(
            "metatree_request_seconds",
            "Time from a request to the end of its answer, waiting included.",
            ("route",),
            buckets=BUCKETS,
            registry=registry,
        )
        self.under_way = Gauge(
            "metatree_requests_under_way", "Requests that are being answered now.", registry=registry
        )
        self.waiting = Gauge(
            "metatree_waiting",
            "Engines that wait for queries, and callers that wait for answers.",
            ("who",),
            registry=registry,
        )
        self.attempts = Counter(
            "metatree_attempts", "Queries that were given to an engine, each time.", registry=registry
        )
        self.answers = Counter("metatree_answers", "Answers that were accepted.", registry=registry)
        self._limited = Counter(
            "metatree_rate_limited",
            "Requests that were refused by a limit.",
            ("limit",),
            registry=registry,
        )
        self.database_errors = Counter(
            "metatree_database_errors", "Requests that the database failed.", registry=registry
        )
        self._queries = Gauge(
            "metatree_queries", "Queries that are not answered.", ("state",), registry=registry
        )
        self._oldest = Gauge(
            "metatree_oldest_open_seconds",
            "Age of the oldest query that no engine has; 0 without one.",
            registry=registry,
        )
        self._leases = Gauge("metatree_leases", "Topics that an engine has under a lease.", registry=registry)
        self._oldest_lease = Gauge(
            "metatree_oldest_lease_seconds",
            "For how long an engine has had the topic that it was given first; 0 without one.",
            registry=registry,
        )
        self._engines = Gauge("metatree_engines", "Engines that are connected.", registry=registry)

    def limited(self, limit: str) -> None:
        """Count a request that a limit refused."""
        self._limited.labels(limit).inc()

    def text(self, figures: Figures | None, *, connected: int, engines: int, callers: int) -> bytes:
        """Return all figures as Prometheus reads them.

        Args:
            figures: what is in the queue; None when the database does not say.
            connected: how many engines are connected to any server of the database.
            engines: how many wait here for queries.
            callers: how many wait here for answers.
        """
        self.waiting.labels("engines").set(engines)
        self.waiting.labels("callers").set(callers)
        if figures is not None:
            for state, count in figures.queries.items():
                self._queries.labels(state.lower()).set(count)
            self._oldest.set(figures.oldest_open_s)
            self._leases.set(figures.leases)
            self._oldest_lease.set(figures.oldest_lease_s)
            self._engines.set(connected)
        return generate_latest(self.registry)
