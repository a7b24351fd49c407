"""The alerts and the dashboard that operators copy ask for figures that a running service gives."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import requests
import yaml
from fastapi import APIRouter
from fastapi.routing import APIRoute
from metatree_agents.service.web import _admin_pages, _memory_pages, _thread_pages, _user_pages
from prometheus_client.parser import text_string_to_metric_families

from .conftest import Served

pytestmark = pytest.mark.integration
FOLDER = Path(__file__).parents[3] / "examples" / "monitoring"
OF_PROMETHEUS = {"job", "instance", "le"}
"""Labels that Prometheus itself adds, or that belong to its histograms."""


def expressions() -> list[str]:
    """Return all that is asked for."""
    rules = yaml.safe_load((FOLDER / "metatree.rules.yaml").read_text(encoding="utf-8"))
    dashboard = json.loads((FOLDER / "metatree-dashboard.json").read_text(encoding="utf-8"))
    alerts = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    panels = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(alerts) > 5 and len(panels) > 10
    return [*alerts, *panels]


def given(service: Served) -> dict[str, list[dict[str, str]]]:
    """Return the labels of each series of a service, by its name, once every counter has counted."""
    service.frontend.ask("Who?", topic="T")
    service.engine.get("get-new-queries")
    service.engine.answer("Who?", "Ann.", topic="T")
    for _ in range(2):
        service.user.get("login")
    text = requests.get(f"{service.url}/metrics", timeout=60).text
    series: dict[str, list[dict[str, str]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            series.setdefault(sample.name, []).append(sample.labels)
        if not family.samples:  # a counter by a label that has not counted yet
            series.setdefault(f"{family.name}_total", [])
    return series


def test_every_figure_is_given_with_its_labels(service: Served) -> None:
    series = given(service)
    for expression in expressions():
        asked = re.findall(r"\b((?:metatree|process)_\w+)(?:\{([^}]*)\})?", expression)
        assert asked or expression.startswith("up"), expression
        by = {
            each for group in re.findall(r"by \(([^)]*)\)", expression) for each in re.split(r",\s*", group)
        }
        for name, matchers in asked:
            assert name in series, f"{name} of {expression}"
            labels = {each for one in series[name] for each in one}
            wanted = set(re.findall(r"(\w+)\s*=~?", matchers)) - OF_PROMETHEUS
            assert wanted <= labels, (expression, labels)
        if series.get(asked[0][0] if asked else ""):
            assert by - OF_PROMETHEUS <= {each for name, _ in asked for one in series[name] for each in one}


def test_states_and_routes_that_are_named_are_those_of_the_service(service: Served) -> None:
    series = given(service)
    states = {each["state"] for each in series["metatree_queries"]}
    paths = {
        path
        for part in (_admin_pages, _memory_pages, _thread_pages, _user_pages)
        for path in _paths(part.router)
    }
    for expression in expressions():
        assert set(re.findall(r'state="(\w+)"', expression)) <= states
        for routes in re.findall(r'route=~"([^"]+)"', expression):
            assert set(routes.split("|")) <= paths, expression


def _paths(router: APIRouter) -> list[str]:
    return [route.path for route in router.routes if isinstance(route, APIRoute)]
