"""Stack traces as the runtimes of many languages print them: which files they name, and which lines are theirs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metatree_routers.query.mentions import find_mentions
from metatree_routers.query.parse import sections
from metatree_routers.query.stack_frames import frames, is_frame

JAVA = """\
Exception in thread "main" java.lang.IllegalStateException: Expected BEGIN_OBJECT but was STRING
\tat com.google.gson.stream.JsonReader.beginObject(JsonReader.java:393)
\tat com.google.gson.Gson.fromJson(Gson.java:879)
\tat java.base/java.lang.reflect.Method.invoke(Method.java:580)
\tat com.acme.Main$Inner.lambda$main$0(Main.java:12)
\tat sun.reflect.NativeMethodAccessorImpl.invoke0(Native Method)
\t... 17 more"""
NODE = """\
TypeError: Cannot read properties of undefined (reading 'status')
    at settle (/app/node_modules/axios/lib/core/settle.js:19:12)
    at IncomingMessage.handleStreamEnd (file:///app/node_modules/axios/lib/adapters/http.js:599:11)
    at async Axios.request [as get] (/app/node_modules/axios/lib/core/Axios.js:45:41)
    at /app/src/index.ts:7:3
    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)"""
GO = """\
panic: runtime error: invalid memory address or nil pointer dereference
goroutine 19 [running]:
github.com/gin-gonic/gin.(*Context).Next(0xc0003a2000)
\t/root/go/pkg/mod/github.com/gin-gonic/gin@v1.9.1/context.go:174 +0x2b
created by net/http.(*Server).Serve
\t/usr/local/go/src/net/http/server.go:3086 +0x5cb"""
RUST = """\
thread 'main' panicked at src/printer.rs:412:29:
index out of bounds: the len is 3 but the index is 7
stack backtrace:
   0: rust_begin_unwind
             at /rustc/9fc6b4312/library/std/src/panicking.rs:645:5
   3: bat::printer::InteractivePrinter::print_line
             at ./src/printer.rs:412:29"""
RUBY = """\
/usr/lib/ruby/gems/3.2.0/gems/jekyll-4.3.2/lib/jekyll/reader.rb:106:in `get_entries': undefined method (NoMethodError)
\tfrom /usr/lib/ruby/gems/3.2.0/gems/jekyll-4.3.2/lib/jekyll/site.rb:178:in 'Jekyll::Site#read'"""
PHP = """\
PHP Fatal error:  Uncaught TypeError: bad in /app/vendor/nesbot/carbon/src/Carbon/Traits/Units.php:263
#0 /app/vendor/nesbot/carbon/src/Carbon/CarbonPeriod.php(512): Carbon\\Carbon->addUnit('day', 1)
#1 {main}
  thrown in /app/index.php on line 9"""
CSHARP = """\
Unhandled exception. System.NullReferenceException: Object reference not set
   at Acme.Tills.Till.Pay(String amount) in C:\\work\\src\\Tills\\Till.cs:line 42
   at System.Threading.Tasks.Task.Execute()"""
C = """\
==1==ERROR: AddressSanitizer: heap-buffer-overflow
    #0 0x55d0c1 in jv_string_append /src/jq/src/jv.c:1201:5
#1  0x00005555 in main (argc=2) at src/main.c:310"""
DART = "#0      Till.pay (package:acme/src/till.dart:12:5)"
ELIXIR = "    (acme 0.1.0) lib/acme/till.ex:12: Acme.Till.pay/2"


@pytest.mark.parametrize(
    ("trace", "paths", "others"),
    [
        pytest.param(
            JAVA,
            [
                "com/google/gson/stream/JsonReader.java",
                "com/google/gson/Gson.java",
                "java/lang/reflect/Method.java",
                "com/acme/Main.java",
            ],
            1,
            id="Java",
        ),
        pytest.param(
            NODE,
            [
                "/app/node_modules/axios/lib/core/settle.js",
                "///app/node_modules/axios/lib/adapters/http.js",
                "/app/node_modules/axios/lib/core/Axios.js",
                "/app/src/index.ts",
            ],
            1,
            id="JavaScript",
        ),
        pytest.param(
            GO,
            [
                "/root/go/pkg/mod/github.com/gin-gonic/gin@v1.9.1/context.go",
                "/usr/local/go/src/net/http/server.go",
            ],
            2,
            id="Go",
        ),
        pytest.param(
            RUST,
            ["src/printer.rs", "/rustc/9fc6b4312/library/std/src/panicking.rs", "./src/printer.rs"],
            4,
            id="Rust",
        ),
        pytest.param(
            RUBY,
            [
                "/usr/lib/ruby/gems/3.2.0/gems/jekyll-4.3.2/lib/jekyll/reader.rb",
                "/usr/lib/ruby/gems/3.2.0/gems/jekyll-4.3.2/lib/jekyll/site.rb",
            ],
            1,
            id="Ruby",
        ),
        pytest.param(
            PHP,
            [
                "/app/vendor/nesbot/carbon/src/Carbon/Traits/Units.php",
                "/app/vendor/nesbot/carbon/src/Carbon/CarbonPeriod.php",
                "/app/index.php",
            ],
            2,
            id="PHP",
        ),
        pytest.param(CSHARP, ["C:\\work\\src\\Tills\\Till.cs"], 1, id="C#"),
        pytest.param(C, ["/src/jq/src/jv.c", "src/main.c"], 1, id="C"),
        pytest.param(DART, ["acme/src/till.dart"], 0, id="Dart"),
        pytest.param(ELIXIR, ["lib/acme/till.ex"], 0, id="Elixir"),
    ],
)
def test_a_stack_trace_names_its_files(trace: str, paths: list[str], others: int) -> None:
    assert list(frames(trace)) == paths
    assert sum(not is_frame(line) for line in trace.split("\n")) == others


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("\tat app//com.acme.Till.pay(Till.java:12)", "com/acme/Till.java"),
        ("\tat app/app@1.2/com.acme.TillKt.pay-IoAF18A(Till.kt:12)", "com/acme/Till.kt"),
        ("    at async Promise.all (index 0)", ""),
        ("    at Till.get open [as open] (/app/till.js:1:2)", "/app/till.js"),
        ("    at C:\\app\\till.js:1:2", "C:\\app\\till.js"),
        ("    at http://localhost:80/app/till.js?v=3f:1:2", "80/app/till.js"),
        ("pay@http://localhost/app/till.js:1:2", "//localhost/app/till.js"),
        ("@webpack-internal:///./app/till.vue:1:2", "///./app/till.vue"),
        ("   at Acme.Till..ctor(String amount) in /app/Till.cs:line 42", "/app/Till.cs"),
        ("\tfrom /gems/acme-1.0/exe/acme:18:in `<top (required)>'", ""),
        ("#2 [internal function]: Acme\\Till->pay()", ""),
        ("==42==    by 0x10915F: pay (till.c:310)", "till.c"),
        (
            "/go/pkg/mod/acme.org/till@v1.2.3/till.go:174 (0x8c1d2a)",
            "/go/pkg/mod/acme.org/till@v1.2.3/till.go",
        ),
        ("created by net/http.(*Server).Serve in goroutine 1", ""),
        ("  12: <alloc::boxed::Box<F,A> as core::ops::FnOnce<Args>>::call_once", ""),
        ("   3: <&F as Fn<A>>::call", ""),
        ("   4: std::rt::lang_start::{{closure}}", ""),
        ("\tlib/till.lua:12: in function 'pay'", "lib/till.lua"),
    ],
)
def test_runtimes_write_frames_in_many_ways(line: str, path: str) -> None:
    assert is_frame(line)
    assert list(frames(line)) == ([path] if path else [])


def test_a_place_is_told_in_words_as_well() -> None:
    assert list(frames('Called from Till.pay in file "src/till.ml", line 12, characters 3-4')) == [
        "src/till.ml"
    ]


def test_what_a_java_exception_was_caused_by_comes_first() -> None:
    trace = "E: a\n\tat x.Outer.run(Outer.java:1)\nCaused by: F: b\n\tat x.Inner.run(Inner.java:2)\n\t... 1 more\n"
    assert list(frames(trace)) == ["x/Inner.java", "x/Outer.java"]


@pytest.mark.parametrize(
    "line",
    [
        "at noon (or later) it fails: see below",
        "at least once (see #12) it works",
        "#12 is the same",
        "# 1. Installation",
        "1: install it",
        "created by me",
        "see lib/core/settle.js:19",
        "It fails at settle (in lib/core/settle.js:19)",
        "from lib/a.rb, line 3",
        "#3 it happens at startup:3 for me",
        "2: use foo::bar here",
        "2: std::vector is what I use",
        "created by acme.org in spring",
        "at 10:30",
        "write to me@acme.org:1:2",
        "",
    ],
)
def test_prose_is_no_frame(line: str) -> None:
    assert not is_frame(line)


def test_frames_are_apart_from_the_prose_around_them() -> None:
    report = (
        f"Requests fail\n\nAfter an upgrade nothing works:\n\n{NODE}\n\nIt worked before. {'Really. ' * 30}"
    )
    parts = sections(report)
    assert "settle.js" in parts.traceback
    assert "settle.js" not in parts.prose
    assert "Cannot read properties of undefined" in parts.prose
    assert "It worked before." in parts.prose
    kinds = [mention.text for mention in find_mentions(parts) if mention.kind == "frame"]
    assert kinds[0] == "app/node_modules/axios/lib/core/settle.js"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("`handler::any` takes too much", "handler.any"),
        ("Gson#toJson(Object) drops nulls", "Gson.toJson"),
        ("$period->addUnit() is wrong", "period.addUnit"),
    ],
)
def test_members_are_named_in_many_ways(text: str, name: str) -> None:
    assert name in [mention.text for mention in find_mentions(sections(text)) if mention.kind == "name"]


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("https://github.com/axios/axios/blob/v1.x/lib/core/settle.js", "link"),
        ("https://github.com/axios/axios/blob/v1.x/lib/core/settle.js#L12-L20", "link"),
        ("https://example.org/settle.js?raw=true", "link"),
        ("at settle (http://localhost:5173/lib/core/settle.js:19:12)", "frame"),
        ("at settle (http://localhost:5173/lib/core/settle.js?t=16983:19:12)", "frame"),
    ],
)
def test_the_scripts_of_a_browser_are_no_links(address: str, kind: str) -> None:
    kinds = {
        mention.kind
        for mention in find_mentions(sections(f"It stops\n{address}"))
        if "settle.js" in mention.text
    }
    assert kind in kinds
    assert len(kinds & {"link", "frame"}) == 1


@pytest.mark.parametrize("path", ["lib/core/settle.js", "src/Carbon/Units.php", "jv.c", "src\\Till.cs"])
def test_files_of_any_language_are_named(path: str) -> None:
    mentions = [mention.text for mention in find_mentions(sections(f"The fault is in {path}, I think"))]
    assert path.replace("\\", "/") in mentions


@pytest.mark.parametrize(
    ("named", "path"),
    [
        (".github/scripts/pay.js", ".github/scripts/pay.js"),
        (".eslintrc.cjs", ".eslintrc.cjs"),
        ("./src/till.rs", "src/till.rs"),
        ("../../src/till.rs", "src/till.rs"),
        (".../src/till.rs", "src/till.rs"),
        ("~/src/till.rs", "src/till.rs"),
        ("/src/till.rs", "src/till.rs"),
    ],
)
def test_a_path_keeps_the_dot_of_a_hidden_file(named: str, path: str) -> None:
    assert path in [
        mention.text for mention in find_mentions(sections(f"Wrong in {named}")) if mention.kind == "path"
    ]


@given(st.text(alphabet="at #0(:1.)/\\x-jsrb<>[]_\n", max_size=400))
def test_any_text_has_frames_or_none(text: str) -> None:
    assert all(path in text or path.rpartition("/")[2] in text for path in frames(text))
    assert all(isinstance(is_frame(line), bool) for line in text.split("\n"))


@pytest.mark.parametrize("start", ["#0 ", "0: ", "at ", "(a ", ""])
@pytest.mark.parametrize("blank", [" ", "\t", "\r"])
def test_a_line_of_blanks_is_read_once(start: str, blank: str) -> None:
    """Took minutes while the time grew with the square of the length."""
    assert not is_frame(f"{start}{blank * 200_000}!")
