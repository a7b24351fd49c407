"""Changes of a memory layer: whoever applies the same ones has the same memory."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from metatree import Node, Source, Tree
from metatree.errors import UserError
from metatree.notes.feedback import flag, flags, take_back
from metatree.notes.notes import forget, memories, remember
from metatree.notes.replication import RowChange, apply_changes, changes_since, flag_changes, is_well_formed
from metatree.storage.store import Store
from metatree.trees.edits import create_root, ready
from metatree.trees.layer import ROOT, Layer
from tests.profiles import examples

BUILT = ["a", "a/one.py", "a/one.py::f", "b", "b/two.py"]


def built_tree() -> Tree:
    """Return a tree with a built layer, as every machine has it, and a memory of its own."""
    index = Store.open(":memory:")
    layer = Layer(index)
    create_root(layer, Node(ROOT, "memory", kind="folder"))
    with index.transaction():
        layer.set_fact("generation", "the same everywhere")
    tree = Tree(index)
    for node_id in BUILT:
        parent = node_id.rpartition("::")[0] or node_id.rpartition("/")[0] or ROOT
        tree.add(Node(node_id, f"title of {node_id}", content=None), parent=parent)
    return Tree(Store.open(":memory:"), index)


def test_a_node_of_somebody_else_takes_no_place_of_a_built_one() -> None:
    tree = built_tree()
    body = {
        "parent": "a",
        "position": 1,
        "kind": "memory",
        "title": "Theirs",
        "description": "",
        "content": "Theirs.",
    }
    rest: dict[str, object] = {
        "source": None,
        "provenance": {},
        "attributes": {},
        "links": [],
        "imported": True,
    }
    changes = [RowChange("node", node_id, json.dumps({**body, **rest})) for node_id in ("a/one.py", "theirs")]
    with tree.memory.transaction():
        assert apply_changes(tree, changes) == 1
    assert tree.get("a/one.py").title == "title of a/one.py"
    assert tree.get("theirs").title == "Theirs" and tree.is_imported("theirs")


def test_a_memory_outlives_the_group_that_another_machine_took_away() -> None:
    here, there = Machine(), Machine()
    shared: dict[tuple[str, str], tuple[int, RowChange]] = {}
    remember(here.tree, "Fact 0.", evidence=False)
    memory = memories(here.tree)[0]
    remember(there.tree, "Fact 1.", evidence=False)
    forget(there.tree, memories(there.tree)[0])  # and the group, in which nothing is left there
    for machine in (here, there, here):
        machine.pull(shared)
    assert [memories(machine.tree) for machine in (here, there)] == [[memory]] * 2


def test_what_came_by_an_import_is_known_for_that_in_a_copy() -> None:
    tree, copy = built_tree(), built_tree()
    tree.add_imported(Node("evil", "evil"), ROOT)
    tree.add(Node("own", "own"), ROOT)
    changes, _ = changes_since(tree, 0)
    with copy.memory.transaction():
        apply_changes(copy, changes)
    assert [copy.is_imported(node_id) for node_id in ("evil", "own")] == [True, False]
    with copy.memory.transaction():
        assert apply_changes(copy, changes) == 0
    unmarked = [
        replace(each, body=each.body and each.body.replace('"imported":true,', "")) for each in changes
    ]
    assert unmarked != changes
    with copy.memory.transaction():
        assert apply_changes(copy, unmarked) == 0
    assert copy.is_imported("evil")


def contents(tree: Tree) -> list[tuple[int, Node]]:
    return list(tree.walk())


class Machine:
    """A tree, and what of it was sent to a list of changes that all machines have."""

    def __init__(self) -> None:
        self.tree = built_tree()
        self.sent = self.received = 0

    def push(self, shared: dict[tuple[str, str], tuple[int, RowChange]]) -> None:
        changes, self.sent = changes_since(self.tree, self.sent)
        for change in changes:
            key = (change.what, change.id)
            if key not in shared or shared[key][1] != change:
                shared[key] = (max((number for number, _ in shared.values()), default=0) + 1, change)

    def pull(self, shared: dict[tuple[str, str], tuple[int, RowChange]]) -> None:
        self.push(shared)
        news = sorted((pair for pair in shared.values() if pair[0] > self.received), key=lambda pair: pair[0])
        with self.tree.memory.transaction():
            apply_changes(self.tree, [change for _, change in news])
        self.received = news[-1][0] if news else self.received
        self.sent = Layer(self.tree.memory).last_seq()


STEPS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(["add", "remember", "forget", "rename", "move", "delete", "pull", "purge"]),
        st.integers(0, 6),
    ),
    max_size=25,
)


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
@example([(0, "remember", 0), (1, "remember", 1), (1, "forget", 0)])
def test_machines_that_hear_of_all_changes_have_the_same_memory(steps: list[tuple[int, str, int]]) -> None:
    machines = [Machine() for _ in range(3)]
    shared: dict[tuple[str, str], tuple[int, RowChange]] = {}
    for number, (who, what, which) in enumerate(steps):
        machine = machines[who]
        tree = machine.tree
        ids = [node.id for _, node in tree.walk() if node.id != ROOT]
        chosen = ids[which % len(ids)] if ids else ROOT
        match what:
            case "add":
                tree.add(Node(f"n{number}", f"note {number}", content=f"text {which}"), parent=chosen)
            case "remember":
                remember(tree, f"Fact {which}.", who=f"m{who}", evidence=False)
            case "forget" if memories(tree):
                forget(tree, memories(tree)[0])
            case "rename" if chosen in BUILT:
                tree.update(
                    Node(
                        chosen, f"renamed {number}", tree.get(chosen).description, kind=tree.get(chosen).kind
                    )
                )
            case "move" if chosen.startswith("n"):
                with suppress(UserError):  # below itself
                    tree.move(chosen, ids[(which + number) % len(ids)])
            case "delete" if chosen.startswith("n"):
                tree.delete(chosen)
            case "purge":
                tree.purge()
            case "pull":
                machine.pull(shared)
    for _ in range(3):
        for machine in machines:
            machine.pull(shared)
    before = dict(shared)
    first, *others = [contents(machine.tree) for machine in machines]
    assert all(other == first for other in others)
    for machine in machines:
        machine.pull(shared)
    assert shared == before, "what changed nowhere goes back and forth"
    fresh = Machine()
    fresh.pull(shared)
    assert contents(fresh.tree) == first, "one that comes later has the same"


def test_a_change_of_a_node_below_one_that_is_missing_waits_for_it() -> None:
    mine, other = Machine(), Machine()
    mine.tree.add(Node("p", "parent"), parent="a")
    mine.tree.add(Node("c", "child", content="text"), parent="p")
    changes, _ = changes_since(mine.tree, 0)
    with other.tree.memory.transaction():
        apply_changes(other.tree, changes[::-1])
    assert other.tree.ancestors("c") == [ROOT, "a", "p"]


@pytest.mark.parametrize("names", ["pq", "qp"])
def test_two_nodes_that_were_moved_below_each_other_are_both_there_everywhere(
    names: str, caplog: pytest.LogCaptureFixture
) -> None:
    here, there = Machine(), Machine()
    shared: dict[tuple[str, str], tuple[int, RowChange]] = {}
    for name in names:
        here.tree.add(Node(name, f"note {name}"), parent="a")
    for machine in (here, there):
        machine.pull(shared)
    here.tree.move("p", "q")
    there.tree.move("q", "p")
    here.tree.move("a", "b")
    there.tree.move("b", "a")
    for machine in (here, there, here, there):
        machine.pull(shared)
    fresh = Machine()
    fresh.pull(shared)
    for tree in (here.tree, there.tree, fresh.tree):
        assert tree.ancestors("q") == [ROOT, "p"] and tree.ancestors("b") == [ROOT, "a"]
    assert "'p' is at the top now" in caplog.text


@pytest.mark.parametrize("names", ["pq", "qp"])
def test_changes_that_name_each_other_as_parents_make_no_circle(names: str) -> None:
    mine, other = Machine(), Machine()
    one, two = names[0], names[1]
    mine.tree.add(Node(one, "one"))
    mine.tree.add(Node(two, "two"), parent=one)
    wrong = [
        replace(change, body=json.dumps(json.loads(change.body or "") | {"parent": two}))
        if change.id == one
        else change
        for change in changes_since(mine.tree, 0)[0]
    ]
    with other.tree.memory.transaction():
        apply_changes(other.tree, wrong)
    assert other.tree.ancestors("p") == [ROOT] and other.tree.ancestors("q") == [ROOT, "p"]


def test_changes_out_of_form_are_left_out_and_those_beside_them_are_taken(
    caplog: pytest.LogCaptureFixture,
) -> None:
    mine, other = Machine(), Machine()
    mine.tree.add(Node("c", "child", content="text", source=Source(path="x.md", parts=((1, 2),))), parent="a")
    mine.tree.update(replace(mine.tree.get("b"), title="another"))
    flag(mine.tree, "a/one.py", "Which bulb fits?", who="ann")
    good = [*changes_since(mine.tree, 0)[0], *flag_changes(mine.tree, ())]
    assert {change.what for change in good} == {"node", "override", "flag"}
    bad = [
        RowChange(change.what, change.id, body)
        for change in good
        for body in ("{}", "[]", "no JSON", "\ud800")
    ]
    for change in good:
        row = json.loads(change.body or "")
        for name in row:
            wrong = (
                ([1], "\ud800", 2**63)
                if (change.what, name) != ("node", "source")
                else ([1], "x", ["text", "x", 1, 1, [[1]]])
            )
            bad += [replace(change, body=json.dumps(row | {name: value})) for value in wrong]
            bad.append(replace(change, body=json.dumps({key: row[key] for key in row if key != name})))
    bad.append(replace(good[-1], body=json.dumps(json.loads(good[-1].body or "") | {"more": "x"})))
    assert all(map(is_well_formed, good))
    assert [change for change in bad if is_well_formed(change)] == []
    with other.tree.memory.transaction():
        assert apply_changes(other.tree, [*bad, *good]) == len(good)
    assert contents(other.tree) == contents(mine.tree) and flags(other.tree.memory) == flags(mine.tree.memory)
    assert len([line for line in caplog.messages if "out of form" in line]) == len(bad)


def test_flags_go_along_and_are_taken_back() -> None:
    mine, other = Machine(), Machine()
    made = flag(mine.tree, "a/one.py", "Which bulb fits?", who="ann")
    changes = flag_changes(mine.tree, ())
    for _ in range(2):
        with other.tree.memory.transaction():
            apply_changes(other.tree, changes)
        assert flags(other.tree.memory) == [made]
    take_back(mine.tree, made.id)
    assert flag_changes(mine.tree, [made.id]) == [RowChange("flag", made.id, None)]
    with other.tree.memory.transaction():
        assert apply_changes(other.tree, flag_changes(mine.tree, [made.id])) == 1
    assert not flags(other.tree.memory)


def test_what_is_forgotten_leaves_no_word_behind() -> None:
    mine, other = Machine(), Machine()
    shared: dict[tuple[str, str], tuple[int, RowChange]] = {}
    made = remember(mine.tree, "The code is 4711.", who="ann", evidence=False)
    mine.pull(shared)
    other.pull(shared)
    assert memories(other.tree)[0].content == "The code is 4711."
    forget(mine.tree, made.node)
    mine.pull(shared)
    other.pull(shared)
    assert "4711" not in str(shared)
    for table in ("content", "node", "meta"):
        assert "4711" not in str(other.tree.memory.rows(f"SELECT * FROM {table}"))


def test_what_is_known_already_is_no_change() -> None:
    mine, other = Machine(), Machine()
    mine.tree.add(Node("n", "note", content="text", attributes={"a": 1}), parent="a")
    mine.tree.move("b/two.py", "a")
    remember(mine.tree, "A fact.", who="ann", evidence=False)
    changes, _ = changes_since(mine.tree, 0)
    with other.tree.memory.transaction():
        assert apply_changes(other.tree, changes) == len(changes)
    last = Layer(other.tree.memory).last_seq()
    with other.tree.memory.transaction():
        assert apply_changes(other.tree, changes) == 0
    assert Layer(other.tree.memory).last_seq() == last, "an index would look at it again"
    assert sorted(changes_since(other.tree, 0)[0], key=str) == sorted(changes, key=str)


def test_a_note_on_a_file_that_is_missing_here_hangs_near_it_and_keeps_its_wish() -> None:
    mine, other = Machine(), Machine()
    with mine.tree.index.transaction():
        layer = Layer(mine.tree.index)
        layer.insert([(layer.next_seq(), ready(Node("a/new.py", "new")), "a", 1)])
    mine.tree.add(Node("n", "note", content="text"), parent="a/new.py")
    changes, _ = changes_since(mine.tree, 0)
    with other.tree.memory.transaction():
        apply_changes(other.tree, changes)
    assert other.tree.parent("n") == "a"
    assert changes_since(other.tree, 0)[0] == changes, "what is told on is the wish"
