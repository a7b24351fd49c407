"""The notebooks of the examples: they run, and show what is stored in them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from metatree import plugins
from tests.notebooks import NOTEBOOKS, outputs_of

pytestmark = pytest.mark.integration

NAMES = ("plugin.ipynb", "rules.ipynb", "search.ipynb")


def _read(name: str) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads((NOTEBOOKS / name).read_text(encoding="utf-8"))
    return notebook


def _code(name: str) -> list[dict[str, Any]]:
    return [cell for cell in _read(name)["cells"] if cell["cell_type"] == "code"]


def test_these_are_all() -> None:
    assert sorted(path.name for path in NOTEBOOKS.iterdir()) == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_cell_shows_what_is_stored(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stored = [cell["outputs"] for cell in _code(name)]
    assert list(outputs_of(_read(name), name)) == stored
    assert sum(map(bool, stored)) >= 2
    assert list(tmp_path.iterdir()) == [], "a notebook leaves nothing behind"
    assert not plugins.has_registered(plugins.MEMORY_TYPES)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_a_notebook_in_form(name: str) -> None:
    notebook = _read(name)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    assert [cell["execution_count"] for cell in _code(name)] == list(range(1, len(_code(name)) + 1))
    for cell in notebook["cells"]:
        keys = {"id", "cell_type", "metadata", "source"}
        assert set(cell) == keys | ({"execution_count", "outputs"} if cell["cell_type"] == "code" else set())
    for output in (each for cell in _code(name) for each in cell["outputs"]):
        if "image/svg+xml" in output.get("data", {}):
            assert ElementTree.fromstring("".join(output["data"]["image/svg+xml"])).tag.endswith("svg")


def test_the_type_of_files_takes_thirty_lines() -> None:
    (cell,) = [
        cell for cell in _code("plugin.ipynb") if any(line.startswith("class ") for line in cell["source"])
    ]
    assert len(cell["source"]) <= 30


def test_the_picture_has_every_node_and_marks_the_walk() -> None:
    drawn = [
        "".join(o["data"]["image/svg+xml"])
        for c in _code("search.ipynb")
        for o in c["outputs"]
        if "data" in o
    ]
    assert len(drawn) == 2
    assert all(picture.count("<circle") == 10 for picture in drawn)
    assert drawn[0] != drawn[1]
