"""How large an install is and what brings it, and how long `uvx` takes to the first answer.

usage: python benchmarks/install_size.py [--uv UV]      UV is the program; without it only sizes are printed

This project is installed by pip into an environment of its own, with the dependencies of the default install. A package
that several groups bring is counted in the first of them. Sizes are those of the files, with the bytecode that pip
makes; the environment's own pip and setuptools are left out. Needs a package index.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
OURS = "metatree-memory"
GROUPS = {
    "numpy": ["numpy"],
    "wordllama (vectors of words)": ["wordllama"],
    "metatree": [],
}
"""After those that the project is asked to use: what else, each with what it brings."""
ASKED = ["pydantic", "openai", "aiohttp", "instructor", "networkx", "diskcache"]
LOADED = """
import sys
from metatree_agents.cli._main import run
code = run(["ask", "What does a circle have?", "-q"])
print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
sys.exit(code)
"""


def size(distribution: Distribution) -> int:
    """Return the bytes of the files of a distribution that are there."""
    files = [Path(str(file.locate())) for file in distribution.files or ()]
    return sum(file.stat().st_size for file in files if file.is_file())


def closure(names: list[str], known: dict[str, Distribution]) -> set[str]:
    """Return these distributions and all that they need."""
    found: set[str] = set()
    open_ = list(names)
    while open_:
        name = canonicalize_name(open_.pop())
        if name in found or name not in known:
            continue
        found.add(name)
        for line in known[name].requires or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                open_.append(needed.name)
    return found


def loaded(python: Path, folder: Path) -> set[str]:
    """Return the top modules that a first question loads."""
    (folder / "shapes.md").write_text("# Circle\n\nA circle has a centre.\n")
    done = subprocess.run([python, "-c", LOADED], cwd=folder, text=True, capture_output=True, check=False)
    return set(done.stderr.splitlines()[-1].split())


def uvx(uv: Path, wheel: Path, folder: Path, cache: Path) -> str:
    """Ask a question by `uvx`, and return its seconds, of the wall and of the CPU."""
    command: list[str | Path] = [
        uv,
        "tool",
        "run",
        "--from",
        wheel,
        "metatree",
        "ask",
        "-q",
        "What does a circle have?",
    ]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "UV_CACHE_DIR": str(cache)},
        text=True,
        capture_output=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if "circle" not in done.stdout:
        sys.exit(done.stderr)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return f"{time.perf_counter() - began:.1f} | {used:.1f}"


def main() -> None:
    """Install, and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--uv", type=Path, help="the program, to measure `uvx` too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        folder, venv = Path(work, "folder"), Path(work, "venv")
        folder.mkdir()
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        own = venv / "bin" / "python"
        subprocess.run([own, "-m", "pip", "install", "--quiet", ROOT], check=True, stderr=subprocess.DEVNULL)
        (site,) = venv.glob("lib/python3*/site-packages")
        known: dict[str, Distribution] = {
            canonicalize_name(each.name): each for each in distributions(path=[str(site)])
        }
        for name in ("pip", "setuptools"):
            known.pop(name, None)
        groups = {"what the project is asked to use": ASKED} | GROUPS | {"the rest": [OURS]}
        groups["metatree"] = []
        print("| what | MB | packages |\n|---|---:|---:|")
        counted: set[str] = set()
        for title, names in groups.items():
            new = ({OURS} if title == "metatree" else closure(names, known)) - counted
            new -= {OURS} if title != "metatree" else set()
            counted |= new
            print(f"| {title} | {sum(size(known[name]) for name in new) / 1e6:.0f} | {len(new)} |")
        print(f"| all | {sum(map(size, known.values())) / 1e6:.0f} | {len(known)} |")
        modules = loaded(own, folder)
        idle = [name for name in ASKED if re.sub(r"\W", "_", name) not in modules]
        print(f"\nNot loaded by a first question: {', '.join(idle)}")
        if given.uv is not None:
            subprocess.run(
                [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", work],
                cwd=ROOT,
                check=True,
                capture_output=True,
            )
            (wheel,) = Path(work).glob("*.whl")
            print("\n| `uvx --from WHEEL metatree ask …` | seconds | of CPU |\n|---|---:|---:|")
            for title in ("with an empty cache", "again, the tree built anew", "again"):
                if title != "again":
                    subprocess.run(["rm", "-rf", folder / ".metatree"], check=True)
                print(f"| {title} | {uvx(given.uv, wheel, folder, Path(work, 'cache'))} |")


if __name__ == "__main__":
    main()
