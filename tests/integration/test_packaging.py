"""The wheel, installed as a user installs it: beside the OpenAI Agents SDK, whose import package is `agents`."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("metatree", "metatree_agents", "metatree_memory_tools", "metatree_routers")

pytestmark = pytest.mark.integration


def _run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, text=True, capture_output=True, check=False
    )


def _no_index(completed: subprocess.CompletedProcess[str]) -> bool:
    """Say whether pip failed because it could not reach a package index at all."""
    signs = (
        "NewConnectionError",
        "ConnectTimeoutError",
        "Temporary failure in name resolution",
        "ProxyError",
    )
    return completed.returncode != 0 and any(sign in completed.stdout + completed.stderr for sign in signs)


def _pip(python: str | Path, *arguments: str | Path, cwd: Path) -> None:
    done = _run(python, "-m", "pip", "--disable-pip-version-check", *arguments, cwd=cwd)
    if _no_index(done) and "CI" not in os.environ:
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    # With the hatchling that is here.
    _pip(
        *(sys.executable, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ROOT),
        cwd=folder,
    )
    (path,) = folder.glob("metatree_memory-*.whl")
    return path


def test_wheel_holds_the_four_packages_and_nothing_named_agents(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == set(PACKAGES)
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(names)
    assert "metatree/.agents/skills/metatree/SKILL.md" in names
    for folder in ("templates", "static"):
        files = (ROOT / "agents/metatree_agents/service/web" / folder).iterdir()
        assert {f"metatree_agents/service/web/{folder}/{file.name}" for file in files} <= set(names)
    texts = (ROOT / "agents/metatree_agents/cli/new_plugins/templates").iterdir()
    assert {f"metatree_agents/cli/new_plugins/templates/{file.name}" for file in texts} <= set(names)


def test_wheel_works_beside_the_openai_agents_sdk(wheel: Path, tmp_path: Path) -> None:
    _run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    _pip(python, "install", "--quiet", "--no-compile", wheel, "openai-agents", cwd=tmp_path)
    program = (
        "import agents, metatree, metatree_agents, metatree_memory_tools, metatree_routers\n"
        "assert agents.Agent(name='a').name == 'a'\n"
        "from metatree_agents import files_to_edit\n"
        "print(agents.__file__, metatree_agents.__file__, sep='\\n')\n"
    )
    imported = _run(python, "-c", program, cwd=tmp_path)
    assert imported.returncode == 0, imported.stderr
    sdk, ours = imported.stdout.split()
    assert Path(sdk).parent.name == "agents"
    assert Path(ours).parent.name == "metatree_agents"

    project = tmp_path / "project"
    project.mkdir()
    (project / "circle.py").write_text(
        '"""Shapes."""\n\n\ndef area(radius):\n    return 3.14159 * radius**2\n'
    )
    script = tmp_path / "venv" / "bin" / "metatree"
    other = _run(script.with_name("metatree-memory"), "--version", cwd=project)
    assert other.stdout == _run(script, "--version", cwd=project).stdout != ""
    found = _run(script, "files", "The area of a circle is computed with a rough pi", cwd=project)
    assert found.returncode == 0, found.stderr
    assert "circle.py" in found.stdout
