"""Which files the references of files lead to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metatree_memory_tools.code._nearest import NearestFiles
from metatree_memory_tools.code.references import Files

PATHS = [
    "index.html", "docs/a.html", "docs/b c.html", "docs/sub/index.html",
    "web/app.ts", "web/lib/api.ts", "web/lib/index.ts", "web/view.tsx", "web/old.js",
    "java/src/tea/Pot.java", "java/src/tea/cup/Cup.java", "java/src/tea/Main.kt", "java/src/tea/Brew.scala",
    "c/src/main.c", "c/src/util.h", "c/include/tea/pot.h", "c/include/pot.h",
    "cs/Pot.cs", "cs/Cup.cs",
    "go/go.mod", "go/main.go", "go/brew/brew.go", "go/brew/brew_test.go",
    "rs/src/lib.rs", "rs/src/leaf.rs", "rs/src/cup/mod.rs", "rs/src/cup/size.rs", "tea-core/src/lib.rs",
    "tea-core/src/hot.rs",
    "rb/lib/tea.rb", "rb/lib/tea/pot.rb", "rb/bin/run.rb",
    "php/Pot.php", "php/Cup.php", "php/inc/cup.php",
    "sh/run.sh", "sh/lib.sh",
    "ex/pot.ex", "ex/cup.ex", "hs/Tea/Pot.hs", "pl/lib/Tea/Pot.pm", "pl/run.pl", "pl/leaf.pl",
    "lua/tea/pot.lua", "lua/tea/cup/init.lua", "zig/main.zig", "zig/cup.zig", "jl/Tea.jl", "jl/cup.jl",
    "ml/tea_pot.ml", "ml/tea_pot.mli", "ml/leaf.mli", "tf/main.tf", "tf/cup/main.tf",
]  # fmt: skip
DECLARES = {
    "java/src/tea/Pot.java": [("java", "tea")],
    "java/src/tea/Main.kt": [("kotlin", "tea")],
    "java/src/tea/Brew.scala": [("scala", "tea")],
    "java/src/tea/cup/Cup.java": [("java", "tea.cup")],
    "cs/Pot.cs": [("c#", "Tea.House")],
    "cs/Cup.cs": [("c#", "Tea.House")],
    "php/Pot.php": [("php", "Tea\\House")],
    "php/Cup.php": [("php", "Tea\\House")],
    "ex/pot.ex": [("elixir", "Tea.Pot")],
    "ex/cup.ex": [("elixir", "Tea.Cup")],
    "hs/Tea/Pot.hs": [("haskell", "Tea.Pot")],
    "pl/lib/Tea/Pot.pm": [("perl", "Tea::Pot")],
}


@pytest.mark.parametrize(
    ("path", "language", "text", "targets"),
    [
        ("docs/a.html", "link", "b%20c.html#top", ["docs/b c.html", "docs/b c.html#top"]),
        ("docs/a.html", "link", "/index.html?x=1", ["index.html"]),
        ("docs/a.html", "link", "sub/", ["docs/sub/index.html"]),
        ("docs/a.html", "link", "https://example.org/docs/a.html", []),
        ("docs/a.html", "link", "../../etc/passwd", []),
        ("docs/a.html", "link", "http://[broken", []),
        ("web/app.ts", "typescript", "'./lib/api'", ["web/lib/api.ts"]),
        ("web/app.ts", "typescript", "'./lib/api.js'", ["web/lib/api.ts"]),
        ("web/app.ts", "typescript", "'./lib'", ["web/lib/index.ts"]),
        ("web/lib/api.ts", "typescript", "'..'", []),
        ("web/lib/api.ts", "javascript", '"../old"', ["web/old.js"]),
        ("web/app.ts", "typescript", "'react'", []),
        ("java/src/tea/Pot.java", "java", "import tea.cup.Cup;", ["java/src/tea/cup/Cup.java"]),
        ("java/src/tea/Pot.java", "java", "import static tea.cup.Cup.SIZE;", ["java/src/tea/cup/Cup.java"]),
        ("java/src/tea/Pot.java", "java", "import tea.cup.*;", ["java/src/tea/cup/Cup.java"]),
        ("java/src/tea/Main.kt", "kotlin", "tea.cup.Cup", ["java/src/tea/cup/Cup.java"]),
        (
            "java/src/tea/Brew.scala",
            "scala",
            "import tea.cup.{Cup => Mug, Other}",
            ["java/src/tea/cup/Cup.java"],
        ),
        ("java/src/tea/Pot.java", "java", "import java.util.List;", []),
        ("c/src/main.c", "c", '"util.h"', ["c/src/util.h"]),
        ("c/src/main.c", "c", "<tea/pot.h>", ["c/include/tea/pot.h"]),
        ("c/src/main.c", "c++", '"tea/pot.h"', ["c/include/tea/pot.h"]),
        ("c/src/main.c", "c", "<util.h>", []),
        ("c/src/main.c", "c", "<stdio.h>", []),
        ("cs/Pot.cs", "c#", "using Tea.House;", ["cs/Cup.cs"]),
        ("cs/Pot.cs", "c#", "using static Tea.House.Cup;", ["cs/Cup.cs"]),
        ("cs/Pot.cs", "c#", "using System;", []),
        ("go/main.go", "go", '"example.org/tea/brew"', ["go/brew"]),
        ("go/brew/brew.go", "go", '"example.org/tea"', ["go"]),
        ("go/main.go", "go", '"brew"', []),
        ("rs/src/lib.rs", "rust", "mod leaf", ["rs/src/leaf.rs"]),
        (
            "rs/src/leaf.rs",
            "rust",
            "crate::cup::{size::Big, Cup}",
            ["rs/src/cup/mod.rs", "rs/src/cup/size.rs"],
        ),
        ("rs/src/cup/size.rs", "rust", "super::Cup", ["rs/src/cup/mod.rs"]),
        ("rs/src/lib.rs", "rust", "tea_core::hot::Water", ["tea-core/src/hot.rs"]),
        ("rs/src/lib.rs", "rust", "std::io", []),
        ("rb/bin/run.rb", "ruby", "require_relative '../lib/tea'", ["rb/lib/tea.rb"]),
        ("rb/bin/run.rb", "ruby", "'tea/pot'", ["rb/lib/tea/pot.rb"]),
        ("rb/bin/run.rb", "ruby", "'json'", []),
        ("php/Pot.php", "php", "use Tea\\House\\Cup;", ["php/Cup.php"]),
        ("php/Pot.php", "php", "use Tea\\House\\{Cup as C, Lid};", ["php/Cup.php"]),
        ("php/Pot.php", "php", "__DIR__ . '/inc/cup.php'", ["php/inc/cup.php"]),
        ("sh/run.sh", "shell", "./lib.sh", ["sh/lib.sh"]),
        ("sh/run.sh", "cobol", "x", []),
        ("ex/main.ex", "elixir", "Tea.{Pot, Cup}", ["ex/cup.ex", "ex/pot.ex"]),
        ("ex/pot.ex", "elixir", "Tea.Cup", ["ex/cup.ex"]),
        ("ex/pot.ex", "elixir", "GenServer", []),
        ("hs/Main.hs", "haskell", "Tea.Pot", ["hs/Tea/Pot.hs"]),
        ("pl/run.pl", "perl", "Tea::Pot", ["pl/lib/Tea/Pot.pm"]),
        ("pl/run.pl", "perl", '"leaf.pl"', ["pl/leaf.pl"]),
        ("lua/main.lua", "lua", '"tea.pot"', ["lua/tea/pot.lua"]),
        ("lua/main.lua", "lua", "'tea.cup'", ["lua/tea/cup/init.lua"]),
        ("zig/main.zig", "zig", '"cup.zig"', ["zig/cup.zig"]),
        ("zig/main.zig", "zig", '"std"', []),
        ("jl/Tea.jl", "julia", '"cup.jl"', ["jl/cup.jl"]),
        ("ml/main.ml", "ocaml", "Tea_pot", ["ml/tea_pot.ml"]),
        ("ml/main.ml", "ocaml", "Leaf", ["ml/leaf.mli"]),
        ("ml/main.ml", "ocaml", "Stdlib", []),
        ("tf/main.tf", "hcl", '"./cup"', ["tf/cup/main.tf"]),
        ("tf/main.tf", "hcl", '"terraform-aws-modules/vpc/aws"', []),
    ],
)
def test_where_a_reference_leads(path: str, language: str, text: str, targets: list[str]) -> None:
    files = Files(PATHS, DECLARES, lambda path: "module example.org/tea\n" if path == "go/go.mod" else "")
    result = files.targets(path, [(language, text)])
    assert sorted(result["links" if language == "link" else "imports"]) == targets


def test_a_name_that_may_mean_many_files_leads_nowhere() -> None:
    paths = [f"a{number}.cs" for number in range(30)]
    files = Files(paths, {path: [("c#", "Tea")] for path in paths}, lambda _: "")
    assert files.targets("a1.cs", [("c#", "using Tea;")])["imports"] == set()


def _shared(path: str, near: str) -> int:
    pairs = list(zip(path.split("/")[:-1], near.split("/"), strict=False))
    return next((at for at, (one, other) in enumerate(pairs) if one != other), len(pairs))


@given(
    st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=5).map("/".join), unique=True),
    st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map("/".join),
    st.lists(st.sampled_from("abc"), max_size=4).map("/".join),
)
def test_of_many_files_of_one_name_the_nearest_is_meant(paths: list[str], end: str, near: str) -> None:
    found = NearestFiles((path, path) for path in paths).nearest(end, near)
    known = [path for path in paths if f"/{path}".endswith(f"/{end}")]
    best = min(known, key=lambda path: (-_shared(path, near), len(path)), default=None)
    if found is None or best is None:
        assert found is best
    else:
        assert (_shared(found, near), len(found)) == (_shared(best, near), len(best))


def test_links_to_a_name_that_many_notes_have_cost_no_more_for_each_note() -> None:
    """4,000 notes of one name and 20,000 links: their product would be 80 million comparisons."""
    steps = 0

    class Counted(str):
        def split(self, *args: Any) -> list[str]:
            nonlocal steps
            steps += 1
            return super().split(*args)

        def casefold(self) -> Counted:
            return Counted(super().casefold())

    files = Files([Counted(f"a{number}/Tea.md") for number in range(4_000)], {}, lambda _: "")
    for number in range(20_000):
        references = [("note", "tea"), ("c", "<tea/Tea.md>"), ("note", f"a{number}/tea")]
        assert len(files.targets(f"a{number}/x.md", references)["links"]) == 1
    assert steps < 50_000
