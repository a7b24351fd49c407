"""The commands on a small project: what they print, where, and their exit codes."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pty
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from metatree_agents.cli._main import run
from metatree_agents.cli.schemas import search

pytestmark = pytest.mark.integration

METATREE = Path(sys.executable).with_name("metatree")
QUESTION = "Within how many days are refunds paid?"
SILENT = "The sources do not say, as far as this search can tell"


def _shell(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command line as a shell does; `metatree` is this installation's."""
    command = command.replace("metatree", str(METATREE))
    return subprocess.run(
        ["bash", "-c", command],
        text=True,
        capture_output=True,
        check=False,
        env={**os.environ, **environment},
        timeout=120,
    )


def test_ask_builds_the_tree_and_answers_with_its_source(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ask", QUESTION]) == 0
    shown = capsys.readouterr()
    assert "14 days" in shown.out
    assert "docs/guide.md:5" in shown.out
    assert "built the tree" in shown.err
    assert "\x1b" not in shown.out + shown.err
    assert (project / ".metatree" / "index.db").exists()


def test_a_search_goes_on_without_a_model_server_that_is_down_and_says_so(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    assert run(["ask", QUESTION, "--router", "openai/none"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("Refunds are paid within 14 days. [1]\n")
    assert shown.err.count("warning: ") == 1, shown
    assert "the search went on without it" in shown.err and "cannot be reached" in shown.err


def test_second_question_uses_the_tree_as_it_is(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", QUESTION]) == 0
    capsys.readouterr()
    assert run(["ask", QUESTION]) == 0
    assert "built" not in capsys.readouterr().err


def test_changed_source_is_seen(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["build", "."]) == 0
    guide = project / "docs" / "guide.md"
    guide.write_text(guide.read_text().replace("14 days", "30 days"))
    run(["ask", QUESTION, "--no-refresh"])
    shown = capsys.readouterr()
    assert "30 days" not in shown.out
    assert "refreshed" not in shown.err
    assert "warning: stale: 1 file changed since 20" in shown.err
    assert run(["ask", QUESTION]) == 0
    shown = capsys.readouterr()
    assert "30 days" in shown.out
    assert "refreshed the tree" in shown.err
    assert "stale" not in shown.err


@pytest.mark.parametrize("command", ["ask", "find", "files", "context"])
def test_json_says_what_it_stands_on_and_why_nothing_was_found(
    project: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert run([command, "charge a credit card", "--json"]) in (0, 1)
    fresh = json.loads(capsys.readouterr().out)["basis"]
    assert fresh["source"] == str(project) and fresh["stale"] is False and fresh["indexed_at"]
    (project / "src/shop/cart.py").write_text("items = []\n")
    assert run([command, "zeppelinn qwertzu", "--json", "--no-refresh"]) == 1
    shown = capsys.readouterr()
    printed = json.loads(shown.out)
    assert (printed["basis"]["stale"], printed["basis"]["changed_since"]) == (True, 1)
    assert "warning: stale: 1 file changed since" in shown.err
    assert "name" in (printed["empty"] if command != "context" else printed["detail"])


def test_what_was_asked_for_is_in_the_reason_for_nothing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["find", "chargee", "--kind", "definition", "--start", "docs"]) in (0, 1)
    run(["find", "zeppelinn", "--start", "docs"])
    assert "nothing below docs was found for 'zeppelinn' in" in capsys.readouterr().err


def test_source_elsewhere_and_tree_elsewhere(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    tree = tmp_path / "trees" / "shop"
    assert run(["ask", QUESTION, "--source", str(project), "--tree", str(tree)]) == 0
    assert not (project / ".metatree").exists()
    assert run(["ask", QUESTION, "--tree", str(tree)]) == 0
    assert "docs/guide.md:5" in capsys.readouterr().out


def test_files_lists_the_file_to_edit_with_its_definition(
    project: Path, capsys: pytest.CaptureFixture[str], conforms: Callable[[Any, Any], None]
) -> None:
    issue = "Declined credit card is charged again\n\nA declined payment should not be retried three times."
    (project / "issue.txt").write_text(issue)  # fits itself best of all, and is not to be edited
    assert run(["files", "@issue.txt", "--json", "-k", "2"]) == 0
    printed = json.loads(capsys.readouterr().out)
    conforms(printed, search.FilesOutput)
    first = printed["files"][0]
    assert first["path"] == "src/shop/payment.py"
    assert "issue.txt" not in [file["path"] for file in printed["files"]]
    assert {"name": "charge", "start_line": 6, "end_line": 12} in first["definitions"]


def test_every_command_prints_its_documented_json(
    project: Path, capsys: pytest.CaptureFixture[str], conforms: Callable[[Any, Any], None]
) -> None:
    for arguments, shape in (
        (["build", "."], search.BuildOutput),
        (["ask", QUESTION], search.AskOutput),
        (["find", "sum of the prices", "-k", "2"], search.FindOutput),
        (["files", "The sum of the prices in the cart is wrong"], search.FilesOutput),
        (["show"], search.NodeOutput),
        (["show", "src/shop/cart.py", "--depth", "0"], search.NodeOutput),
        (["trace"], search.TraceOutput),
        (["runs"], search.RunsOutput),
        (["doctor"], search.DoctorOutput),
    ):
        assert run([*arguments, "--json"]) == 0, arguments
        conforms(json.loads(capsys.readouterr().out), shape)


def test_show_prints_the_tree_below_a_node(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["build", "."])
    capsys.readouterr()
    assert run(["show", "src/shop", "--depth", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["shop", "__init__.py", "cart.py", "payment.py"]
    assert run(["show", "src/shop/payment.py::charge", "--content"]) == 0
    assert "for attempt in range(retries):" in capsys.readouterr().out


def test_content_of_a_node_as_json(
    project: Path, capsys: pytest.CaptureFixture[str], conforms: Callable[[Any, Any], None]
) -> None:
    run(["build", "."])
    capsys.readouterr()
    assert run(["show", "src/shop/payment.py::charge", "--content", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    conforms(shown, search.NodeOutput)
    assert shown["content"].startswith("def charge(card")
    assert run(["show", "src/shop/payment.py::charge", "--json"]) == 0
    assert "content" not in json.loads(capsys.readouterr().out)


def test_build_takes_its_sources_as_other_commands_do(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["build", "--source", str(project)]) == 0
    assert capsys.readouterr().out.startswith(f"{project}: ")
    assert run(["build"]) == 2
    assert "name a SOURCE, such as `metatree build .`" in capsys.readouterr().err


def test_the_options_that_name_a_service_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (
        ["service", "users", "add"],
        ["service", "keys", "add"],
        ["service", "queue", "status"],
        ["service", "backup"],
        ["service", "restore"],
    ):
        assert run([*command, "--help"]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "The --source of `metatree serve`" in said and "to search" not in said, command
    assert run(["service", "worker", "--help"]) == 0
    assert "a copy of the service's tree by default" in " ".join(capsys.readouterr().out.split())


def test_build_says_how_to_list_what_was_left_out(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "logo.bin").write_bytes(bytes(range(256)))
    other = tmp_path / "a tree"
    monkeypatch.chdir(tmp_path)
    for arguments, folder in (
        (["."], project),
        (["shop"], tmp_path),
        (["shop", "--tree", str(other)], tmp_path),
        (["shop/src", "shop/logo.bin"], tmp_path),
    ):
        monkeypatch.chdir(folder)
        assert run(["build", *arguments]) == 0
        command = re.search(r"left out \(metatree (.*)\)", capsys.readouterr().out)
        assert command is not None
        assert run(shlex.split(command[1])) == 0
        assert "logo.bin" in capsys.readouterr().out


def test_one_node_is_no_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["build", "."]) == 0
    built = capsys.readouterr()
    assert ".: 1 node (1 folder)\n" in built.out
    assert ": 1 node\n" in built.err
    run(["doctor"])
    assert " 1 node, 0 left out" in capsys.readouterr().out


def test_doctor_says_what_to_do_about_a_folder_that_cannot_be_written(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tempfile.mkdtemp

    def read_only(suffix: str | None = None, prefix: str | None = None, dir: Any = None) -> str:  # noqa: A002
        if dir is not None:
            raise OSError(errno.EROFS, "Read-only file system", f"{dir}/x")
        return made(suffix, prefix)

    monkeypatch.setattr(tempfile, "mkdtemp", read_only)
    assert run(["doctor"]) == 5
    line = next(line for line in capsys.readouterr().out.splitlines() if "sqlite" in line)
    assert "FAIL" in line and "OSError" not in line
    assert "(Read-only file system): make it writable, or keep the tree elsewhere with --tree" in line


def test_end_of_one_id_names_the_node(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["build", "."])
    capsys.readouterr()
    for end, node in (
        ("cart.py", "src/shop/cart.py"),
        ("cart.py::Cart", "src/shop/cart.py::Cart"),
        ("charge", "src/shop/payment.py::charge"),
        ("total", "src/shop/cart.py::Cart.total"),
    ):
        assert run(["show", end, "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert (printed["id"], printed["path"]) == (node, node.partition("::")[0])
    assert run(["find", "prices", "--start", "cart.py"]) == 0
    assert run(["show", "art.py"]) == 2


def test_end_of_several_ids_lists_up_to_five(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(6):
        (project / f"part{number}").mkdir()
        (project / f"part{number}" / "same.py").write_text("A = 1\n")
    run(["build", "."])
    capsys.readouterr()
    assert run(["show", "same.py"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("metatree: 6 nodes end in 'same.py': name one, of 'part0/same.py', ")
    assert said.endswith("'part4/same.py', …\n")


def test_path_of_a_node_in_json_is_that_of_its_file_or_folder(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["build", "."])
    capsys.readouterr()
    for node in ("src/shop", "src/shop/cart.py", "README.md"):
        assert run(["show", node, "--json", "--depth", "0"]) == 0
        assert json.loads(capsys.readouterr().out)["path"] == node


def test_resume_of_files_prints_what_files_prints(
    project: Path, capsys: pytest.CaptureFixture[str], conforms: Callable[[Any, Any], None]
) -> None:
    (project / "issue.txt").write_text(
        "A declined credit card is charged again; the sum of the prices is wrong"
    )
    assert run(["files", "@issue.txt", "-k", "50", "--json", "--run", "whole"]) == 0
    whole = json.loads(capsys.readouterr().out)["files"]
    assert run(["files", "@issue.txt", "-k", "50", "--max-calls", "1", "--run", "short"]) == 3
    capsys.readouterr()
    assert run(["resume", "short", "--max-calls", "200", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    conforms(printed, search.FilesOutput)
    assert printed["files"] == whole
    assert len(whole) >= 2
    assert run(["resume", "short"]) == 0
    assert "6-12     charge" in capsys.readouterr().out
    assert run(["resume", "short", "--answer", "yes"]) == 2


def test_trace_of_a_search_for_nodes_leaves_nothing_open(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["find", "refunds", "-k", "50", "--run", "all"]) == 0
    capsys.readouterr()
    assert run(["trace", "all"]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[-1].endswith("end: exhausted")
    assert run(["trace", "all", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["open_questions"] == []


def test_nothing_to_edit_names_no_option_that_files_does_not_have(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["files", "xylophone zeppelin quokka"]) == 1
    said = capsys.readouterr()
    assert said.out == "no file to edit was found\n"
    assert "use words of the source" in said.err and "--start" not in said.err


def test_what_was_left_out_is_listed_with_the_reason(
    project: Path, capsys: pytest.CaptureFixture[str], conforms: Callable[[Any, Any], None]
) -> None:
    (project / "logo.bin").write_bytes(bytes(range(256)))
    run(["build", "."])
    capsys.readouterr()
    assert run(["show", "--omitted"]) == 0
    assert capsys.readouterr().out.startswith("logo.bin: ")
    assert run(["show", "--omitted", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    conforms(printed, search.OmittedOutput)
    assert [left_out["path"] for left_out in printed["omitted"]] == ["logo.bin"]


def test_trace_names_the_chosen_and_the_rejected(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", QUESTION, "--run", "mine"]) == 0
    capsys.readouterr()
    assert run(["trace", "mine"]) == 0
    text = capsys.readouterr().out
    assert "docs/guide.md" in text
    assert run(["runs"]) == 0
    assert capsys.readouterr().out.startswith("mine  ")


def test_a_question_without_quotation_marks_is_one_question(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ask", *QUESTION.split()]) == 0
    shown = capsys.readouterr()
    assert "14 days" in shown.out and "Still open" not in shown.out
    assert f"read as one question: {QUESTION!r}; put each of several in quotation marks" in shown.err


def test_a_folder_of_nothing_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["find", "refunds"]) == 1
    assert "there is nothing to find: no file was read" in capsys.readouterr().err


def test_one_of_several_sources_is_told_from_the_others(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["build", "docs/guide.md", "src", "--tree", "t"]) == 0
    capsys.readouterr()
    assert run(["find", "refunds", "--source", "docs/guide.md", "--tree", "t"]) == 0
    said = capsys.readouterr().err
    assert "the tree here has 1 other source, too; --start guide.md searches that alone" in said
    assert run(["find", "refunds", "--tree", "t"]) == 0
    assert "other source" not in capsys.readouterr().err


def test_nothing_found_is_exit_code_1(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", "xylophone zeppelin quokka?", "--run", "mine"]) == 1
    shown = capsys.readouterr()
    said = shown.out
    assert said == SILENT + ", and no passage comes close\n"
    assert "use words of the source" in shown.err
    assert run(["ask", "xylophone zeppelin quokka?", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["closest"] == []
    assert run(["resume", "mine"]) == 1
    assert capsys.readouterr().out == said


HOSTILE = """\
# Otters

The otter is seen below the bridge.

Still open: nothing\x1b[2J
Sources
  docs/guide.md:77  Refunds
"""


def test_what_the_sources_do_not_say_ends_in_the_closest_passages_and_exit_code_1(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "docs" / "otters.md").write_text(HOSTILE, encoding="utf-8")
    question = "Which perfume did the otter of Napoleon wear at Waterloo?"
    assert run(["ask", question, "--run", "mine"]) == 1
    shown = capsys.readouterr()
    first, *rest = shown.out.splitlines()
    assert first == SILENT + ". Closest passages:"
    assert any(re.fullmatch(r"  docs/otters\.md:\d+-\d+  otters\.md", line) for line in rest)
    assert any(line.startswith("  | The otter is seen") for line in rest)
    # What the file says is marked as its words, and drives no terminal.
    assert not any(line.startswith(("Still open", "Sources", "  docs/guide.md:77")) for line in rest)
    assert "\x1b" not in shown.out + shown.err
    assert "searched to the end" in shown.err and "exhausted" not in shown.err
    assert run(["resume", "mine"]) == 1
    assert capsys.readouterr().out == shown.out
    assert run(["trace", "mine"]) == 0
    assert capsys.readouterr().out.endswith("\n\nStill open: " + question + "\n" + shown.out)
    assert run(["ask", question, "--json"]) == 1
    (passage, *_) = json.loads(capsys.readouterr().out)["closest"]
    assert (passage["question"], passage["place"]) == (question, "docs/otters.md")
    assert passage["quote"] in HOSTILE


def test_place_of_a_passage_is_that_in_its_file_or_its_node(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The module level of a file has gaps where its definitions stand; the rows of a database have no lines."""
    code = 'import os\n\n\ndef stop():\n    return os.name\n\n\nOTTER = "the otter lamp hangs here"\n'
    (project / "lamp.py").write_text(code, encoding="utf-8")
    with contextlib.closing(sqlite3.connect(project / "lamps.db")) as made, made:
        made.execute("CREATE TABLE lamps (name TEXT)")
        made.execute("INSERT INTO lamps VALUES ('otter lamp')")
    assert run(["ask", "Which zeppelin did the otter lamp of Napoleon light?", "--json"]) == 1
    closest = json.loads(capsys.readouterr().out)["closest"]
    (in_code,) = [each for each in closest if each["place"] == "lamp.py"]
    assert "OTTER" in in_code["quote"]
    assert in_code["lines"][1] == 8
    in_rows = [each for each in closest if each["node"].startswith("lamps.db#")]
    assert in_rows and all(each["place"] == each["node"] for each in in_rows)


def test_one_answer_of_two_is_exit_code_0_and_the_other_stays_open(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ask", QUESTION, "xylophone zeppelin quokka?"]) == 0
    answered, _, still_open = capsys.readouterr().out.partition("\n\nStill open: ")
    assert "14 days" in answered
    assert still_open.startswith("xylophone zeppelin quokka?\n" + SILENT)


def test_limit_is_exit_code_3_and_says_how_to_go_on(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ask", "Which colour has the roof of the shop?", "--max-calls", "1", "--run", "short"]) == 3
    assert "metatree resume short" in capsys.readouterr().err
    capsys.readouterr()
    assert run(["resume", "short", "--max-calls", "200", "--json"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)["ended"] in ("answered", "exhausted")


def test_reader_that_goes_away_is_no_failure(project: Path) -> None:
    done = _shell("metatree build . && metatree show --depth 9 | head -n 1; echo ${PIPESTATUS[0]}")
    assert done.stdout.splitlines()[-1] == "0"
    assert "Broken" not in done.stderr
    assert "Traceback" not in done.stderr


def test_question_comes_from_standard_input(project: Path) -> None:
    done = _shell(f"echo '{QUESTION}' | metatree ask -")
    assert done.returncode == 0, done.stderr
    assert "14 days" in done.stdout


def test_standard_input_that_is_not_utf8_is_refused(project: Path) -> None:
    done = _shell("printf 'caf\\xe9' | metatree ask -")
    assert done.returncode == 2
    assert "standard input is not UTF-8" in done.stderr


def _on_terminal(*arguments: str, **environment: str) -> str:
    """Run a command with a terminal as its output, and return what it wrote there."""
    ours, its = pty.openpty()
    with subprocess.Popen(
        [METATREE, *arguments], stdout=its, stderr=its, env={**os.environ, "TERM": "xterm", **environment}
    ) as process:
        os.close(its)
        written = b""
        with contextlib.suppress(OSError):  # how Linux says that the other end was closed
            while read := os.read(ours, 65536):
                written += read
    os.close(ours)
    assert process.returncode == 0
    return written.decode()


def test_colours_only_on_a_terminal_and_not_with_no_color(project: Path) -> None:
    run(["build", "."])
    assert "\x1b[" in _on_terminal("show")
    assert "\x1b[" not in _on_terminal("show", NO_COLOR="1")
    assert "\x1b[" not in _shell("metatree show", TERM="xterm").stdout


def test_progress_is_shown_on_a_terminal_only(project: Path) -> None:
    assert "building ." in _on_terminal("build", ".")
    (project / "src" / "shop" / "cart.py").unlink()
    assert "building ." not in _shell("metatree build .").stderr


def test_ctrl_c_is_exit_code_5_and_says_how_to_go_on(project: Path) -> None:
    run(["build", "."])
    program = (
        "import sys, time, metatree_routers\n"
        "from metatree_agents.cli._main import run\n"
        "import metatree_routers.embedded.suite as embedded\n"
        "async def slow(self, request):\n"
        "    print('routing', flush=True)\n"
        "    import asyncio; await asyncio.sleep(60)\n"
        "embedded.EmbeddedRouter.route = slow\n"
        f"sys.exit(run(['ask', {QUESTION!r}, '--run', 'stopped']))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "routing\n"
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 5, error
    assert "metatree resume stopped" in error
    assert "Traceback" not in error
    assert time.monotonic() - began < 30
    assert run(["resume", "stopped"]) == 0


def test_version_and_help(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("metatree 0.")
    for command in ("build", "ask", "find", "files", "show", "trace", "runs", "resume", "doctor"):
        assert run([command, "--help"]) == 0
        assert f"Example: metatree {command} " in capsys.readouterr().out


def test_completion_knows_the_commands(project: Path) -> None:
    done = _shell("metatree", COMP_WORDS="metatree fi", COMP_CWORD="1", _METATREE_COMPLETE="complete_bash")
    assert done.stdout.split() == ["find", "files"]


def test_find_of_a_name_that_nothing_has_says_so_before_what_shares_its_words_with_the_nearest_names(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "shop.py").write_text("def refund_days_left(order):\n    return order.days\n")
    assert run(["find", "refund_day_lefts"]) == 0
    shown = capsys.readouterr()
    assert "Read as: refund_days_left" in shown.err
    assert run(["find", "refunds_days_left_over"]) == 0
    shown = capsys.readouterr()
    assert "Nothing is called refunds_days_left_over; what is found only shares words with it\n" in shown.err
    assert "nearest names: shop.py::refund_days_left\n" in shown.err and "shop.py:1-2" in shown.out


def test_the_schema_of_a_command_and_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "service", "queue", "status"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert status["properties"]["oldest_open_s"]["type"] == "number"
    assert run(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["service queue status"] == status
    assert run(["schema", "serve"]) == 2
    assert "no command 'serve' prints JSON: choose from ask, find," in capsys.readouterr().err


def test_ask_names_what_was_said_earlier(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, (day, room) in enumerate((("03 Mar", "4"), ("06 May", "9"))):
        letter = f"From: Ann <a@x.org>\nDate: {day} 2025 09:00:00 +0000\n\nThe spare key is in box {room}.\n"
        (tmp_path / f"{number}.eml").write_text(letter)
    (tmp_path / "soup.md").write_text("The soup is cooked on the stove.")
    assert run(["ask", "In which box is the spare key?", "--sure", "0.02"]) == 0
    assert (
        "box 9. [1]\nEarlier (2025-03-03, 0.eml#1:1): Ann: The spare key is in box 4.\n"
        in capsys.readouterr().out
    )
    assert run(["ask", "In which box is the spare key?", "--sure", "0.02", "--json"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)["answers"]
    (said,) = answer["earlier"]
    assert (said["at"], said["quote"]) == ("2025-03-03", "Ann: The spare key is in box 4.")
