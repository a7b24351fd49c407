"""The benchmark's own arithmetic, and one run of it on a repository made for the test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.retrieval.fixes import Fixes
from benchmarks.retrieval.languages import past_fixes

ROOT = Path(__file__).parents[3]


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.integration
def test_the_benchmark_ranks_the_files_of_each_commit(tmp_path: Path) -> None:
    mirror = tmp_path / "mirrors" / "me+shop" / "repo"
    mirror.mkdir(parents=True)
    source = tmp_path / "source"
    (source / "shop").mkdir(parents=True)
    (source / "tests").mkdir()
    (source / "shop" / "cart.py").write_text("def total(items):\n    return sum(items)\n")
    (source / "shop" / "http.py").write_text("def follow_redirects(response):\n    return response\n")
    (source / "tests" / "test_http.py").write_text("def test_follow_redirects():\n    follow_redirects()\n")
    _git(source, "init", "-q")
    _git(source, "add", ".")
    _git(source, "commit", "-qm", "one")
    commits = [_git(source, "rev-parse", "HEAD")]
    (source / "shop" / "http.py").rename(source / "shop" / "web.py")
    _git(source, "add", "-A")
    _git(source, "commit", "-qm", "two")
    commits.append(_git(source, "rev-parse", "HEAD"))
    _git(tmp_path, "clone", "-q", "--bare", str(source), str(mirror))

    rows = [
        {
            "id": f"shop-{number}",
            "repo": "me/shop",
            "mirror": "me/shop",
            "base_commit": commit,
            "query": "follow_redirects loses the body",
            "gold": [gold],
            "subsets": ["lite"],
        }
        for number, (commit, gold) in enumerate(zip(commits, ("shop/http.py", "shop/web.py"), strict=True))
    ]
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "issues.jsonl").write_text("\n".join(map(json.dumps, rows)))
    out = tmp_path / "out.jsonl"
    command = [sys.executable, "-m", "benchmarks.retrieval", "code", "code-lite", "code-history"]
    command += ["--data", str(tmp_path), "--mirrors", str(tmp_path / "mirrors")]
    command += ["--work", str(tmp_path / "work"), "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = {(row["set"], row["id"]): row["ranked"] for row in map(json.loads, out.read_text().splitlines())}
    assert len(found) == 6
    for (_, id_), ranked in found.items():
        gold = "shop/http.py" if id_ == "shop-0" else "shop/web.py"
        assert ranked["BM25"][0] == ranked["metatree"][0] == gold
        assert "tests/test_http.py" not in ranked["BM25"] + ranked["metatree"]
    assert [line.split()[:3] for line in done.stdout.splitlines() if "Acc@1 " in line] == [
        ["code", "2", "Acc@1"],
        ["code-lite", "2", "Acc@1"],
        ["code-history", "2", "Acc@1"],
    ]
    log = tmp_path / "work" / "me+shop.jsonl"
    ranked_once = log.read_text()
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert again.stdout == done.stdout
    assert log.read_text() == ranked_once  # read from the file, not run again
    kept = subprocess.run(
        [*command, "--keep", "--again"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    again = subprocess.run(
        [*command, "--keep", "--again"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert kept.stdout.splitlines()[1] == again.stdout.splitlines()[1] == done.stdout.splitlines()[1]
    assert {place.name for place in (tmp_path / "work" / "me+shop" / "kept").iterdir()} == {
        "shop-0",
        "shop-1",
    }


@pytest.mark.integration
def test_a_fix_is_the_commit_that_changes_the_gold_files_alone(tmp_path: Path) -> None:
    cart = "class Cart:\n    def total(self):\n        return 1\n\n    def clear(self):\n        return 2\n"
    _git(tmp_path, "init", "-q")

    def commit(**files: str) -> str:
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
        _git(tmp_path, "add", ".")
        _git(tmp_path, "commit", "-qm", "x")
        return _git(tmp_path, "rev-parse", "HEAD")

    base = commit(cart=cart, web="x = 1\n")
    commit(cart=cart + "# end\n", web="x = 2\n")
    _git(tmp_path, "checkout", "-qb", "fix", base)
    commit(test_cart="x = 1\n")
    commit(cart=cart.replace("return 2", "return 3"), test_cart="x = 2\n")
    fixes = Fixes(tmp_path / ".git")
    assert fixes.definitions(base, {"cart.py"}) == {("cart.py", "Cart.clear")}
    assert fixes.definitions(base, {"web.py"}) == set()


@pytest.mark.integration
def test_past_fixes_are_asked_for_by_what_they_say(tmp_path: Path) -> None:
    _git(tmp_path, "init", "-q")

    def commit(message: str, **files: str) -> str:
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        _git(tmp_path, "add", ".")
        _git(tmp_path, "commit", "-qm", message)
        return _git(tmp_path, "rev-parse", "HEAD")

    base = commit("Begin", lib__till_js="1", lib__till_test_js="1", dist__till_js="1", README_md="1")
    said = "Fix the till, which takes the amount of each refund twice"
    commit(f"{said} (#12)\n\nFixes #11\nSigned-off-by: me", lib__till_js="2", lib__till_test_js="2")
    commit("Fix a typo in the words of the till that nobody sees", lib__till_js="3")
    commit("Fix the page and nothing else in the whole of this shop", README_md="2")
    commit("Fix nothing, and write a new file that pays what is owed", lib__new_js="1", lib__till_js="4")
    commit("Take the amount of each refund once more, as was wanted", lib__till_js="5")
    found = list(past_fixes(tmp_path / ".git", frozenset({"js"})))
    assert found == [(base, said, frozenset({"lib/till.js"}))]
