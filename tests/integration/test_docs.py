"""What docs/histories.md says is what happens."""

import doctest
import os
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from metatree_agents.service.http import bodies

pytestmark = pytest.mark.integration

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_on_the_command_line_has_both_names_of_a_switch() -> None:
    assert "`--history, --no-history`" in (DOCS / "cli.md").read_text(encoding="utf-8")


def test_the_page_on_json_has_the_users() -> None:
    page = (DOCS / "json.md").read_text(encoding="utf-8")
    assert "## `metatree service users add --json`" in page
    assert "## `metatree service users list --json`" in page


def test_the_page_on_the_service_has_every_type_of_recommendation() -> None:
    page = (DOCS / "service.md").read_text(encoding="utf-8")
    kinds = get_args(get_type_hints(bodies.Recommend)["Type"])
    assert len(kinds) == 6
    assert all(f"`{kind}`" in page for kind in kinds)
    assert "joined by single spaces" in page


def test_the_examples_of_the_page_on_histories_run() -> None:
    result = doctest.testfile(str(DOCS / "histories.md"), module_relative=False)
    assert result.attempted > 10
    assert result.failed == 0


def test_what_the_page_says_of_uninstalling_leaves_nothing_in_a_home(tmp_path: Path) -> None:
    """Completion is set up as the command line's library does it, whose places are not ours to choose."""
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    recipe = page.partition("## Uninstall\n```sh\n")[2].partition("```")[0]
    own = str(Path(sys.executable).parent)
    home = {**os.environ, "HOME": str(tmp_path), "PATH": f"{own}{os.pathsep}{os.environ['PATH']}"}
    home = {name: value for name, value in home.items() if not name.startswith(("XDG_", "METATREE"))}
    (tmp_path / ".bashrc").write_text("alias a=b\n")
    completions = (
        "from typer._completion_shared import install_bash, install_fish, install_zsh\n"
        "for install in (install_bash, install_fish, install_zsh):\n"
        "    install(prog_name='metatree', complete_var='_METATREE_COMPLETE', shell='bash')\n"
    )
    for command in (
        [sys.executable, "-c", completions],
        ["metatree", "install", "codex"],
        ["bash", "-c", recipe.replace("pip ", "true ")],
    ):
        subprocess.run(command, env=home, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".bak"]
    assert {path.name for path in left} == {".bashrc", ".zshrc"}
    assert (tmp_path / ".bashrc").read_text().strip() == "alias a=b"
    assert "metatree" not in (tmp_path / ".zshrc").read_text()
