"""What is installed is what the lock files say: versions that the project allows, with hashes, no index named."""

import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SAFE = {
    "aiohttp": "3.13.3",
    "h11": "0.16",
    "jinja2": "3.1.6",
    "pillow": "12.1.1",
    "pypdf": "6.4",
    "python-multipart": "0.0.22",
    "requests": "2.32.4",
    "starlette": "0.49.1",
}
"""The first version of each without a known vulnerability (those known by the end of 2025)."""


def pins(lock: Path) -> list[Requirement]:
    text = lock.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = (line.partition(" --hash")[0] for line in text.splitlines() if not line.lstrip().startswith("#"))
    return [Requirement(line) for line in lines if line.strip()]


def asked(*extras: str) -> list[Requirement]:
    """Return what the project needs itself, with what these extras bring."""
    project = PROJECT["project"]
    found = [*map(Requirement, project["dependencies"])]
    for extra in extras:
        for line in map(Requirement, project["optional-dependencies"][extra]):
            found += (
                asked(*line.extras)[len(project["dependencies"]) :]
                if line.name == PROJECT["project"]["name"]
                else [line]
            )
    return found


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_package_has_one_version_and_hashes_and_no_index_is_named(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    assert "://" not in text and "--index" not in text and "--find-links" not in text
    blocks = re.findall(r"^[\w.-]+==\S+.*(?:\n    .*)*", text, re.MULTILINE)
    assert len(blocks) == len(pins(lock)) > 0
    assert all("--hash=sha256:" in block for block in blocks)


@pytest.mark.parametrize(("lock", "extra"), [("test", "test"), ("lowest", "all"), ("all", "all")])
def test_a_lock_holds_what_the_project_asks_for(lock: str, extra: str) -> None:
    locked: dict[str, list[Requirement]] = {}
    for pin in pins(ROOT / "requirements" / f"{lock}.txt"):
        locked.setdefault(canonicalize_name(pin.name), []).append(pin)
    built = PROJECT["build-system"]["requires"] if lock != "all" else []
    for wanted in [*asked(extra), *map(Requirement, built)]:
        found = locked.get(canonicalize_name(wanted.name), [])
        assert found, f"run `make lock`: {wanted.name} is not in requirements/{lock}.txt"
        for pin in found:
            (exact,) = pin.specifier
            assert wanted.specifier.contains(exact.version), f"run `make lock`: {pin} is not {wanted}"


def test_lower_bounds_leave_out_versions_with_known_vulnerabilities() -> None:
    bounds = {canonicalize_name(each.name): each.specifier for each in asked("test")}
    for name, safe in SAFE.items():
        (lowest,) = (each.version for each in bounds[canonicalize_name(name)] if each.operator == ">=")
        assert lowest == safe, name


def test_this_environment_was_installed_from_the_lock() -> None:
    for pin in pins(ROOT / "requirements" / "test.txt"):
        if (pin.marker is None or pin.marker.evaluate()) and "lowest" not in sys.prefix:
            assert pin.specifier.contains(version(pin.name)), pin


def test_setup_installs_from_the_lock_alone(tmp_path: Path) -> None:
    log = tmp_path / "log"
    tools = tmp_path / "bin"
    tools.mkdir()
    python = tools / "python3.11"
    # A Python that makes an environment whose Python writes down what it is asked to do.
    python.write_text(
        "#!/bin/sh\n"
        f'echo "$@" >> {log}\n'
        'case "$1 $2" in\n'
        '"-m venv") mkdir -p "$3/bin"; cp "$0" "$3/bin/python";;\n'
        "esac\n"
    )
    python.chmod(0o755)
    for tool in ("dirname", "rm", "mkdir", "cp"):
        found = shutil.which(tool)
        assert found is not None
        (tools / tool).symlink_to(found)
    subprocess.run([ROOT / ".ci" / "setup", tmp_path / "venv"], env={"PATH": str(tools)}, check=True)
    installs = [line for line in log.read_text().splitlines() if " install " in line]
    assert len(installs) == 2
    assert installs[0].endswith("--no-deps --require-hashes --requirement requirements/test.txt")
    assert installs[1].endswith("--no-deps --no-build-isolation --editable .")


def test_make_and_ci_install_nothing_without_hashes_but_the_project_itself() -> None:
    texts = [(ROOT / "Makefile").read_text(encoding="utf-8")]
    texts += [path.read_text(encoding="utf-8") for path in (ROOT / ".ci").iterdir() if path.is_file()]
    lines = [line.strip() for text in texts for line in text.splitlines()]
    sources = re.compile(r"-r \S+|--requirement|--editable|\binstall [\w']")
    installs = [line for line in lines if re.search(r"\bpip install\b|^\$pip |run\(\*pip", line)]
    installs = [line for line in installs if sources.search(line)]
    assert len(installs) > 8
    for line in installs:
        assert "--require-hashes" in line or line.endswith("--no-deps --no-build-isolation --editable ."), (
            line
        )
