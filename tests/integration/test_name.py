"""The name of the distribution, which is not that of its import package: the index has another project called so."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
FORMER = re.compile(
    r"""(?<![\w.-])metatree\[[a-z{]         # an extra, as in `pip install 'NAME[mcp]'`, and no item of a dict
      |(?<!/plugin\s)\binstall\s(?:[^`"'\n|]*\s)?['"]?metatree(?![-\w/]|\sinstall)['"]?(?:[`\s]*$|[`=@~<>])
      |\b(?:version|distribution|metadata)\(["']metatree["']\)""",
    re.VERBOSE | re.MULTILINE,
)
"""How the distribution was called where a text means it, and not the import package or the script."""
THEIRS = ("__init__.py", "__main__.py", "exception.py", "mismatch_table.py", "tree_decorate.py")
"""Some files of the other project's import package."""


def texts() -> dict[Path, str]:
    """Return all texts of the repository, or of its copy without git."""
    done = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    files = [ROOT / name for name in done.stdout.split("\0") if name] or [
        file
        for file in ROOT.rglob("*")
        if not any(part.startswith(".venv") for part in file.relative_to(ROOT).parts)
    ]
    found = {}
    for file in files:
        if file.is_file() and file != Path(__file__):
            data = file.read_bytes()
            if b"\0" not in data:
                found[file.relative_to(ROOT)] = data.decode("utf-8", "replace")
    return found


def test_no_text_calls_the_distribution_by_the_name_of_another_project() -> None:
    found = texts()
    assert len(found) > 1_000
    for file, text in found.items():
        for match in FORMER.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            pytest.fail(f"{file}:{line} says {match[0]!r}: the distribution is metatree-memory")


@pytest.mark.parametrize(
    "text",
    [
        "pip install 'metatree[mcp]'",
        "pip install metatree",
        "`pip install openai-agents metatree`",
        "pip install --upgrade metatree==0.2",
        "uv tool install metatree",
        "version('metatree')",
    ],
)
def test_the_former_name_is_seen(text: str) -> None:
    assert FORMER.search(text) and not FORMER.search(text.replace("metatree", "metatree-memory"))


def _python(program: str, *, first: Path) -> subprocess.CompletedProcess[str]:
    """Run a program that imports from a folder first."""
    program = f"import sys; sys.path.insert(0, {str(first)!r})\n{program}"
    return subprocess.run(
        [sys.executable, "-I", "-c", program], cwd=first, text=True, capture_output=True, check=False
    )


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Return a folder with our packages and files of the other project's beside them, `__init__.py` still ours."""
    for package in ("metatree", "agents/metatree_agents"):
        shutil.copytree(
            ROOT / package, tmp_path / Path(package).name, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in THEIRS[1:]:
        (tmp_path / "metatree" / name).write_text("")
    return tmp_path


def test_files_of_the_other_project_beside_ours_are_told_in_one_line(mixed: Path) -> None:
    done = _python("import metatree; print(metatree.__file__)", first=mixed)
    assert done.stdout.strip() == str(mixed / "metatree" / "__init__.py")
    (line,) = done.stderr.splitlines()
    assert "another project" in line and "pip uninstall metatree" in line and "metatree-memory" in line


@pytest.mark.parametrize(
    "program",
    [
        "from metatree_agents.cli import main; sys.argv[1:] = ['--version']; main()",
        "from metatree_agents import files_to_edit",
    ],
)
def test_its_package_in_the_place_of_ours_is_told(mixed: Path, program: str) -> None:
    (mixed / "metatree" / "__init__.py").write_text("__title__ = 'metatree'\n__version__ = '0.0.1'\n")
    done = _python(program, first=mixed)
    line, *_ = done.stderr.splitlines()
    assert "another project" in line and "pip uninstall metatree" in line and "metatree-memory" in line


def test_ours_alone_says_nothing() -> None:
    done = _python("import metatree, metatree_agents; print(metatree.__version__)", first=ROOT)
    assert (done.stderr, done.stdout.strip()) == ("", metatree_release())


def metatree_release() -> str:
    from metatree.version import RELEASE

    return RELEASE


def test_no_module_of_ours_has_a_name_by_which_theirs_are_known() -> None:
    assert not any((ROOT / "metatree" / name).exists() for name in THEIRS[2:])
