"""Outlines of code that others wrote, one project for each language."""

# ruff: noqa: E501, a project in one line each

from __future__ import annotations

import re
from pathlib import Path

import pytest
from metatree_memory_tools import build_tree

from metatree import Tree

pytestmark = pytest.mark.real

PROJECTS = {
    # package, suffix of its files, a definition that must be there: file, name, type, beginning of its signature
    "go": (
        "golang-github-spf13-cobra-dev",
        ".go",
        ("command.go", "Command.Execute", "method", "func (c *Command) Execute() error"),
    ),
    "rust": (
        "librust-regex-dev",
        ".rs",
        ("exec.rs", "ExecBuilder.build", "method", "pub fn build(self) -> Result<Exec, Error>"),
    ),
    "ruby": ("ruby-rack", ".rb", ("builder.rb", "Rack.Builder.map", "method", "def map(path, &block)")),
    "php": (
        "php-symfony-console",
        ".php",
        ("Application.php", "Application.run", "method", "public function run("),
    ),
    "c++": (
        "nlohmann-json3-dev",
        ".hpp",
        ("json_sax.hpp", "json_sax", "struct", "template<typename BasicJsonType> struct json_sax"),
    ),
    "javascript": (
        "node-express",
        ".js",
        ("application.js", "app.init", "function", "app.init = function init()"),
    ),
    "typescript": ("rxjs", ".ts", ("Observable.ts", "Observable.subscribe", "method", "subscribe(")),
    "java": ("capacitor-android", ".java", ("Bridge.java", "Bridge.getApp", "method", "public App getApp()")),
    "swift": (
        "capacitor-ios",
        ".swift",
        (
            "CapacitorBridge.swift",
            "CapacitorBridge.getWebView",
            "method",
            "public func getWebView() -> WKWebView?",
        ),
    ),
    "c#": (
        "edge-js",
        ".cs",
        ("coreclrembedding.cs", "CoreCLREmbedding", "class", "public class CoreCLREmbedding"),
    ),
    "c": (
        "bufferutil",
        ".c",
        ("bufferutil.c", "Unmask", "function", "napi_value Unmask(napi_env env, napi_callback_info info)"),
    ),
    "perl": ("libmojolicious-perl", ".pm", ("Mojo/File.pm", "copy_to", "function", "sub copy_to")),
    "lua": ("lua-penlight", ".lua", ("pl/List.lua", "List.append", "function", "function List:append(i)")),
    "ocaml": ("libcohttp-ocaml-dev", ".mli", ("header.mli", "get", "function", "val get : t -> string")),
}
IMPORTS = {
    "go": ("doc/man_docs.go", ""),
    "rust": ("src/exec.rs", "src/compile.rs"),
    "ruby": ("lib/rack/etag.rb", "lib/rack.rb"),
    "php": ("Console/Application.php", "Console/Command/Command.php"),
    "c++": ("detail/input/json_sax.hpp", "detail/exceptions.hpp"),
    "javascript": ("lib/express.js", "lib/application.js"),
    "typescript": ("src/internal/Observable.ts", "src/internal/Subscriber.ts"),
    "java": ("com/getcapacitor/Bridge.java", "com/getcapacitor/util/HostMask.java"),
    "perl": ("Mojo/Asset/File.pm", "Mojo/File.pm"),
    "lua": ("lua/5.1/pl/OrderedMap.lua", "lua/5.1/pl/List.lua"),
    "ocaml": ("cohttp/request.ml", "cohttp/header.ml"),
}
TRIVIAL = re.compile(
    r"\s*(?:import|package|using|use|extern crate|require|#\s*include|//|/\*|\*|#|\{|\}|\)|end\b|<\?php|namespace|mod |'use strict')"
)


@pytest.fixture(scope="module", params=PROJECTS)
def project(
    request: pytest.FixtureRequest, real_files: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Tree]:
    language: str = request.param
    tree = build_tree(real_files / PROJECTS[language][0], out=tmp_path_factory.mktemp("tree") / "t")
    request.addfinalizer(tree.close)
    return language, tree


def test_a_definition_is_where_and_what_it_is(project: tuple[str, Tree]) -> None:
    language, tree = project
    file, name, kind, signature = PROJECTS[language][2]
    found = [node for _, node in tree.walk() if node.title == name and (node.path or "").endswith("/" + file)]
    assert found, f"no {name}"
    assert found[0].attributes["type"] == kind
    assert found[0].attributes["signature"].startswith(signature)
    assert found[0].attributes["language"] == language


def test_every_line_that_says_something_lies_in_one_leaf(project: tuple[str, Tree]) -> None:
    language, tree = project
    suffix = PROJECTS[language][1]
    files = [node for _, node in tree.walk() if node.kind == "file" and node.id.endswith(suffix)]
    assert files
    root = tree.source_root
    assert root is not None
    with_parts = 0
    for file in files:
        text = (root / file.id).read_bytes().decode("utf-8", "replace").replace("\r\n", "\n")
        lines = text.split("\n")
        seen: dict[int, str] = {}
        heads: set[int] = set()
        for _, node in tree.walk(file):
            children = tree.children(node)
            assert not (children and node.has_content), node.id
            if node.source is None:
                first = node.attributes.get("start_line")
                inner = min((child.attributes.get("start_line") or 1 for child in children[-1:]), default=1)
                heads |= set(range(first, inner + 1)) if first else set()
                continue
            source = node.source
            for start, end in source.parts or ((source.start_line or 1, source.end_line or len(lines)),):
                for number in range(start, end + 1):
                    assert number not in seen, (node.id, seen[number], number)
                    seen[number] = node.id
        with_parts += bool(tree.children(file))
        missing = [
            n
            for n, line in enumerate(lines, start=1)
            if line.strip() and n not in seen and n not in heads and not TRIVIAL.match(line)
        ]
        # What is left out are comments that open a file and groups of imports; both go on over lines without a sign.
        comments = re.compile(
            r"/\*.*?\*/|\(\*.*?\*\)|^\ufeff//.*?$|^import \(.*?^\)|^\s*(?:pub )?use [^;]*;",
            re.DOTALL | re.MULTILINE,
        )
        inside = {
            text.count("\n", 0, m.start()) + 1 + k
            for m in comments.finditer(text)
            for k in range(m[0].count("\n") + 1)
        }
        assert not set(missing) - inside, (file.id, [lines[n - 1] for n in missing][:5])
    assert with_parts * 2 >= len(files) or language == "c"


def test_imports_are_links(project: tuple[str, Tree]) -> None:
    language, tree = project
    if language not in IMPORTS:
        pytest.skip("its project has no imports of its own files")
    importer, imported = IMPORTS[language]
    file = next(node.id for _, node in tree.walk() if node.kind == "file" and node.id.endswith(importer))
    targets = [target for _, target in tree.links(file, "imports")]
    if imported:
        assert any(target.endswith(imported) for target in targets), targets
    else:  # a package, the root of the module
        assert targets
