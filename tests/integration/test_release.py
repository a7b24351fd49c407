"""What a release is made of: numbers that agree, files for registries and hosts, a workflow."""

from __future__ import annotations

import json
import re
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from metatree_agents.tools.instructions import SKILL_FOLDER, skill
from packaging.version import Version

import metatree
from metatree.version import RELEASE

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _json(name: str) -> Any:
    return json.loads((ROOT / name).read_text(encoding="utf-8"))


def _numbers() -> dict[str, str]:
    """Return each place that says which release this is, and what it says."""
    server, plugin = _json("server.json"), _json(".claude-plugin/plugin.json")
    found = {
        "metatree.__version__": metatree.__version__,
        "the installed distribution (run `make setup`)": version("metatree-memory"),
        "CITATION.cff": yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"],
        "server.json": server["version"],
        "server.json, packages": server["packages"][0]["version"],
        "server.json, --from": server["packages"][0]["runtimeArguments"][0]["value"].partition("==")[2],
        ".claude-plugin/plugin.json": plugin["version"],
        ".claude-plugin/plugin.json, --from": plugin["mcpServers"]["metatree"]["args"][1].partition("==")[2],
    }
    for tag in re.findall(r"tag `v([\d.]+)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")):
        found["CONTRIBUTING.md"] = tag
    return found


@pytest.mark.parametrize("place", _numbers())
def test_all_numbers_of_the_release_agree(place: str) -> None:
    assert _numbers()[place] == RELEASE


def test_the_changelog_has_no_later_release() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[?(Unreleased|\d[\w.]*)", text, re.MULTILINE)
    assert headings and headings[0] in ("Unreleased", RELEASE)
    assert all(Version(each) <= Version(RELEASE) for each in headings if each != "Unreleased")


def test_the_number_is_in_one_place_of_the_code() -> None:
    assert "version" in PROJECT["dynamic"] and "version" not in PROJECT
    for package in ("metatree", "agents", "memory_tools", "routers"):
        for file in (ROOT / package).rglob("*.py"):
            if file.name != "version.py":
                assert f'"{RELEASE}"' not in file.read_text(encoding="utf-8"), file


def test_the_registry_of_mcp_servers_finds_its_name_in_the_readme_and_a_script_to_start() -> None:
    server = _json("server.json")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"mcp-name: (\S+)", readme) == [server["name"]]
    (package,) = server["packages"]
    assert package["identifier"] == PROJECT["name"]
    assert package["identifier"] in PROJECT["scripts"], "`uvx --from …` starts the script of that name"
    assert set(PROJECT["scripts"].values()) == {"metatree_agents.cli:main"}


def test_the_plugin_for_claude_code_has_what_it_names() -> None:
    plugin, market = _json(".claude-plugin/plugin.json"), _json(".claude-plugin/marketplace.json")
    assert plugin["skills"] == f"./{SKILL_FOLDER}"
    assert (ROOT / plugin["skills"] / "metatree" / "SKILL.md").read_text(encoding="utf-8") == skill()
    command = plugin["mcpServers"]["metatree"]
    assert command["command"] == "uvx" and command["args"][-2] in PROJECT["scripts"]
    (offered,) = market["plugins"]
    assert (
        offered["name"] == plugin["name"]
        and (ROOT / offered["source"] / ".claude-plugin/plugin.json").exists()
    )


def test_the_citation_has_what_its_format_asks_for() -> None:
    said = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(said)
    assert said["license"] == PROJECT["license"]


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_takes_nothing_on_trust(file: Path) -> None:
    """Actions by the hash of a commit with the tag behind it, no rights but those that a job asks for, no secrets."""
    text = file.read_text(encoding="utf-8")
    uses = re.findall(r"uses: (.*)", text)
    assert uses and all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each) for each in uses), uses
    said = yaml.safe_load(text)
    assert said["permissions"] == {} and "secrets." not in text
    assert all("permissions" in job for job in said["jobs"].values())
    # What an event says is text of somebody else: it may be a variable, and no part of a command.
    for job in said["jobs"].values():
        assert all("${{" not in step.get("run", "") for step in job["steps"])


def test_the_job_that_publishes_runs_no_code_of_the_project() -> None:
    said = yaml.safe_load((ROOT / ".github/workflows/publish.yml").read_text(encoding="utf-8"))
    publish = said["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"} and publish["environment"]["name"] == "pypi"
    assert all("run" not in step for step in publish["steps"])
    assert publish["steps"][-1]["with"] == {"attestations": True}


def test_the_source_archive_has_each_file_of_the_repository_s_first_folder() -> None:
    included = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"][
        "sdist"
    ]["include"]
    assert all((ROOT / name).exists() for name in included)
    own = {
        "CITATION.cff",
        "SECURITY.md",
        "CONTRIBUTING.md",
        "server.json",
        "Containerfile",
        ".claude-plugin",
        ".github",
    }
    assert own <= set(included)


def test_the_bill_of_materials_is_made_from_a_lock_of_what_users_install() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "cyclonedx-py requirements requirements/all.txt" in makefile
    locked = set(
        re.findall(r"^([\w.-]+)==", (ROOT / "requirements/all.txt").read_text(encoding="utf-8"), re.MULTILINE)
    )
    tested = (ROOT / "requirements/test.txt").read_text(encoding="utf-8")
    assert locked <= set(re.findall(r"^([\w.-]+)==", tested, re.MULTILINE))
    assert "pytest" not in locked and "numpy" in locked
