"""The two questions of the river crossing, asked of a model server over HTTP."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from metatree.testing._model_server import ModelRequest, ModelServer

pytestmark = pytest.mark.integration

RIVER = Path(__file__).parents[3] / "examples" / "river_crossing" / "river.py"
WEIGHTS = {"rabbit": 2, "wolf": 40, "snake": 1.5}


def zoologist(request: ModelRequest) -> Any:
    """Answer as a model does that was asked for arguments of a schema."""
    text = request.system + request.user
    if "eats" in text:
        pairs = [("wolf", "rabbit"), ("snake", "rabbit")]
        return {"eats": [{"eater": eater, "eaten": eaten} for eater, eaten in pairs]}
    species = next(name for name in WEIGHTS if f"average {name}" in text)
    return {"kilograms": WEIGHTS[species]}


def test_the_sample_runs_with_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = importlib.util.spec_from_file_location("river_by_model", RIVER)
    assert spec is not None
    assert spec.loader is not None
    river = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(river)
    with ModelServer(zoologist, models=["stub/model"]) as server:
        monkeypatch.setenv("METATREE_CACHE_DIR", str(tmp_path / "cache"))
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("METATREE_MODEL", "stub/model")
        assert river.main() == 0
        bodies = [json.dumps(request.body) for request in server.requests]
    said = capsys.readouterr().out
    assert "Added: wolf eats rabbit" in said
    assert "rabbit eats grass" not in said, "the model was told to leave out what is not in the list"
    assert "Added: wolf weight 40" in said
    assert "To trip gensym1 we added a4" in said
    assert sum("kilograms" in body for body in bodies) >= 3
