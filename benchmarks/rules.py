"""Measure the matcher beside CLIPS (through clipspy) and SQLite queries, each job in a process of its own.

usage: python benchmarks/rules.py [--quick]

Needs `pip install clipspy` for the second column; without it that column is left out. CPU time of the process, with
the productions loaded; memory is what the process grew by, at its peak.

facts      the five productions of the river crossing; (animal a -) (a species s) (a gender g): microseconds for one
trips      the same productions distribute animals of 20 species over trips, one firing after the other
manners    seats guests so that neighbours share a hobby and not their sex (the rules of Miss Manners)
waltz      filters the labels of line drawings of cubes until they fit each other (Waltz 1975)

SQLite holds the same triples with three indexes, and runs each production's query when it wants to know.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

Triple = tuple[Any, Any, Any]

RULES = """
((<x> species <s>) -{(species <s> -)} -> "ks1 gather species")
((species <s> -) -> "ks1 determine food chain")
((species <s> -) -> "ks2 determine average weight")
((animal <a> -) -{(<t> includes <a>)} -> "start trip")
(
 (trip <t> -)
 (<wt> <- #sum(<w>)) from {(<t> includes <aa>) (<aa> species <ss>) (<ss> weight <w>)}
 (animal <b> -)
 -{(trip <t2> -) (<t2> includes <b>)}
 (<b> species <s2>)
 -{(<t> includes <aa>) (<aa> species <ss>) (<s2> eats <ss>)}
 -{(<t> includes <aa>) (<aa> species <ss>) (<ss> eats <s2>)}
 (<s2> weight <w2>)
 ((<w2> + <wt>) < 100)
 -> "add compatible animal to trip"
)
"""

# CLIPS has no aggregates that are kept up to date: the load of a trip is a fact that firings replace.
CLIPS_TRIPS = (
    "(deftemplate t (slot i) (slot a) (slot v))",
    "(defrule gather (t (i ?x) (a species) (v ?s)) (not (t (i species) (a ?s) (v -))) =>)",
    "(defrule chain (t (i species) (a ?s) (v -)) =>)",
    "(defrule weight (t (i species) (a ?s) (v -)) =>)",
    """(defrule start (declare (salience 5))
        (t (i animal) (a ?a) (v -)) (not (t (a includes) (v ?a)))
        (t (i ?a) (a species) (v ?s)) (t (i ?s) (a weight) (v ?w))
        => (bind ?t (gensym*)) (assert (t (i trip) (a ?t) (v -))) (assert (t (i ?t) (a includes) (v ?a)))
           (assert (t (i ?t) (a load) (v ?w))))""",
    """(defrule join (declare (salience 10))
        (t (i trip) (a ?t) (v -)) ?load <- (t (i ?t) (a load) (v ?wt)) (t (i animal) (a ?b) (v -))
        (not (and (t (i trip) (a ?t2) (v -)) (t (i ?t2) (a includes) (v ?b))))
        (t (i ?b) (a species) (v ?s2))
        (not (and (t (i ?t) (a includes) (v ?aa)) (t (i ?aa) (a species) (v ?ss)) (t (i ?s2) (a eats) (v ?ss))))
        (not (and (t (i ?t) (a includes) (v ?aa)) (t (i ?aa) (a species) (v ?ss)) (t (i ?ss) (a eats) (v ?s2))))
        (t (i ?s2) (a weight) (v ?w2)) (test (< (+ ?w2 ?wt) 100))
        => (retract ?load) (assert (t (i ?t) (a includes) (v ?b))) (assert (t (i ?t) (a load) (v (+ ?w2 ?wt)))))""",
)

SQL_START = """SELECT i.a FROM t i WHERE i.i = 'animal' AND i.v = '-'
    AND NOT EXISTS (SELECT 1 FROM t n WHERE n.a = 'includes' AND n.v = i.a) LIMIT 1"""
SQL_JOIN = """SELECT tr.a, b.a FROM t tr, t b, t sp, t w2 WHERE tr.i = 'trip' AND tr.v = '-' AND b.i = 'animal'
    AND b.v = '-' AND sp.i = b.a AND sp.a = 'species' AND w2.i = sp.v AND w2.a = 'weight'
    AND NOT EXISTS (SELECT 1 FROM t u, t x WHERE u.i = 'trip' AND u.v = '-' AND x.i = u.a AND x.a = 'includes'
        AND x.v = b.a)
    AND NOT EXISTS (SELECT 1 FROM t x, t y, t e WHERE x.i = tr.a AND x.a = 'includes' AND y.i = x.v
        AND y.a = 'species' AND e.i = sp.v AND e.a = 'eats' AND e.v = y.v)
    AND NOT EXISTS (SELECT 1 FROM t x, t y, t e WHERE x.i = tr.a AND x.a = 'includes' AND y.i = x.v
        AND y.a = 'species' AND e.i = y.v AND e.a = 'eats' AND e.v = sp.v)
    AND w2.v + (SELECT coalesce(sum(w.v), 0) FROM t x, t y, t w WHERE x.i = tr.a AND x.a = 'includes'
        AND y.i = x.v AND y.a = 'species' AND w.i = y.v AND w.a = 'weight') < 100 LIMIT 1"""
SQL_ALL = (
    """SELECT count(*) FROM t x WHERE x.a = 'species'
        AND NOT EXISTS (SELECT 1 FROM t n WHERE n.i = 'species' AND n.a = x.v AND n.v = '-')""",
    "SELECT count(*) FROM t WHERE i = 'species' AND v = '-'",
    SQL_START,
    SQL_JOIN,
)


def animals(count: int) -> list[Triple]:
    found: list[Triple] = []
    for n in range(count // 3 + 1):
        a = f"a{n}"
        found += [
            ("animal", a, "-"),
            (a, "species", f"s{n % 20}"),
            (a, "gender", "male" if n % 2 else "female"),
        ]
    return found[:count]


def crossing(count: int) -> list[Triple]:
    rng = random.Random(7)
    found: list[Triple] = [(f"s{s}", "weight", rng.choice([1, 2, 5, 10, 20, 30, 40])) for s in range(20)]
    for s in range(20):
        found += [(f"s{s}", "eats", f"s{e}") for e in rng.sample(range(20), 3)]
    for n in range(count):
        found += [("animal", f"a{n}", "-"), (f"a{n}", "species", f"s{rng.randrange(20)}")]
    return found


def timed(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


# Ours ---------------------------------------------------------------------------------------------------------------


def our_memory(rules: str) -> Any:
    from metatree.rules import WorkingMemory

    memory = WorkingMemory()
    memory.add_productions(rules)
    return memory


def our_facts(count: int) -> dict[str, float]:
    memory = our_memory(RULES)
    facts = animals(count)
    some = random.Random(1).sample(facts, min(1000, count))
    assert_fact, retract_fact = memory.add, memory.retract
    load = timed(lambda: [assert_fact(i, a, v) for i, a, v in facts])
    for fact in some[:50]:  # compile what is compiled when it first happens
        retract_fact(*fact)
        assert_fact(*fact)
    retract = timed(lambda: [retract_fact(i, a, v) for i, a, v in some])
    again = timed(lambda: [assert_fact(i, a, v) for i, a, v in some])
    return {"load": load / count, "assert": again / len(some), "retract": retract / len(some)}


def our_trips(count: int) -> dict[str, float]:
    memory = our_memory(RULES)
    for fact in crossing(count):
        memory.add(*fact)
    start, join = memory.agenda("start trip"), memory.agenda("add compatible animal to trip")
    trips = 0
    while join.to_add or start.to_add:
        agenda = join if join.to_add else start
        values = next(iter(agenda.to_add))
        token = agenda.token(values)
        memory.commit(agenda.production.name, add=[values])
        if agenda is join:
            memory.add(token["t"], "includes", token["b"])
        else:
            trips += 1
            memory.add("trip", f"trip{trips}", "-")
            memory.add(f"trip{trips}", "includes", token["a"])
    return {"check": len(memory.query("(<t> includes <a>)")), "trips": trips}


MANNERS = """
((context state assign) (<s> done yes) (<s> seat <n>) (<s> guest <g>) (<g> sex <x>) (<g> hobby <h>) (<g2> hobby <h>)
 (<g2> sex <x2>) (<x2> <> <x>) -{(<s> path <g2>)} -{(<s> <h> <g2>)} -> "find seating")
((context state path) (<s> done no) (<s> pid <p>) (<p> path <g>) -{(<s> path <g>)} -> "make path")
"""


def guests(count: int) -> list[Triple]:
    rng = random.Random(count)
    found: list[Triple] = []
    for n in range(count):
        found.append((f"g{n}", "sex", "m" if n % 2 else "f"))
        found += [(f"g{n}", "hobby", f"h{h}") for h in sorted(rng.sample(range(1, 4), rng.randint(2, 3)))]
    return found


def our_manners(count: int) -> dict[str, float]:
    memory = our_memory(MANNERS)
    for fact in guests(count):
        memory.add(*fact)
    find, path = memory.agenda("find seating"), memory.agenda("make path")
    number = itemgetter(find.variables.index("n"))
    state, seats = "assign", 1
    for fact in (("s1", "seat", 1), ("s1", "guest", "g0"), ("s1", "path", "g0"), ("s1", "done", "yes")):
        memory.add(*fact)
    memory.add("context", "state", state)
    while seats < count:
        token = find.token(max(find.to_add, key=number))  # beside the last guest
        seats += 1
        seat = f"s{seats}"
        memory.retract("context", "state", "assign")
        memory.add(token["s"], token["h"], token["g2"])
        for attribute, value in (
            ("seat", token["n"] + 1),
            ("guest", token["g2"]),
            ("pid", token["s"]),
            ("path", token["g2"]),
            ("done", "no"),
        ):
            memory.add(seat, attribute, value)
        memory.add("context", "state", "path")
        while path.to_add:
            made = path.token(next(iter(path.to_add)))
            memory.add(made["s"], "path", made["g"])
        memory.retract("context", "state", "path")
        memory.retract(seat, "done", "no")
        memory.add(seat, "done", "yes")
        memory.add("context", "state", "assign")
    return {"check": len(memory.query("(<s> path <g>)"))}


WALTZ = """
((<c> at <j>) (<c> <e> <l>) (<e> joins <j>) (<l> fits <m>) (<e> joins <k>) (<k> <> <j>)
 -{(<d> at <k>) (<d> <e> <m>)} -> "unsupported")
"""
LABELS: dict[str, list[tuple[str, ...]]] = {
    "L": [("<", ">"), (">", "<"), ("+", ">"), ("<", "+"), ("-", "<"), (">", "-")],
    "fork": [("+", "+", "+"), ("-", "-", "-"), ("<", ">", "-"), ("-", "<", ">"), (">", "-", "<")],
    "arrow": [("<", "+", ">"), ("-", "+", "-"), ("+", "-", "+")],
}


def cubes(count: int) -> list[Triple]:
    """Return drawings of cubes: a fork, three arrows around it, three Ls between those; and all labels of each."""
    found: list[Triple] = [("+", "fits", "+"), ("-", "fits", "-"), ("<", "fits", ">"), (">", "fits", "<")]
    for n in range(count):
        middle, arrows, corners = f"c{n}", [f"c{n}m{k}" for k in range(3)], [f"c{n}o{k}" for k in range(3)]
        ring = [j for both in zip(arrows, corners, strict=True) for j in both]
        outline = {frozenset(p): f"e{n}r{k}" for k, p in enumerate(pairwise([*ring, ring[0]]))}
        spokes = {m: f"e{n}s{k}" for k, m in enumerate(arrows)}
        lines: dict[str, list[str]] = {middle: [*spokes.values()]}
        for k, arrow in enumerate(arrows):
            lines[arrow] = [
                outline[frozenset((corners[k - 1], arrow))],
                spokes[arrow],
                outline[frozenset((arrow, corners[k]))],
            ]
        for k, corner in enumerate(corners):
            lines[corner] = [
                outline[frozenset((arrows[k], corner))],
                outline[frozenset((corner, arrows[(k + 1) % 3]))],
            ]
        for junction, edges in lines.items():
            kind = "fork" if junction == middle else "arrow" if len(edges) == 3 else "L"
            found += [(edge, "joins", junction) for edge in edges]
            # One corner is known to lie before the background; from there the others follow.
            known = LABELS[kind][:1] if junction == corners[0] else LABELS[kind]
            for number, labels in enumerate(known):
                candidate = f"{junction}x{number}"
                found.append((candidate, "at", junction))
                found += [(candidate, edge, label) for edge, label in zip(edges, labels, strict=True)]
    return found


def our_waltz(count: int) -> dict[str, float]:
    memory = our_memory(WALTZ)
    for fact in cubes(count):
        memory.add(*fact)
    agenda = memory.agenda("unsupported")
    while agenda.to_add:
        token = agenda.token(next(iter(agenda.to_add)))
        memory.retract(token["c"], "at", token["j"])
    return {"check": len(memory.query("(<c> at <j>)"))}


# CLIPS --------------------------------------------------------------------------------------------------------------


class Clips:
    """An environment with a template for triples."""

    def __init__(self, *constructs: str) -> None:
        import clips

        self._symbol = clips.Symbol
        self.environment = clips.Environment()
        for construct in constructs:
            self.environment.build(construct)
        self._template = self.environment.find_template("t")

    def value(self, value: Any) -> Any:
        return self._symbol(value) if isinstance(value, str) else value

    def add(self, fact: Triple) -> Any:
        i, a, v = map(self.value, fact)
        return self._template.assert_fact(i=i, a=a, v=v)

    def count(self, attribute: str) -> int:
        return sum(1 for fact in self._template.facts() if fact["a"] == attribute)


def clips_facts(count: int) -> dict[str, float]:
    engine = Clips(*CLIPS_TRIPS)
    # Symbols are made before the clock starts: the price of a fact is asked for, not that of a string.
    symbols: dict[Any, Any] = {}
    rows = [tuple(symbols.setdefault(part, engine.value(part)) for part in fact) for fact in animals(count)]
    assert_fact = engine.environment.find_template("t").assert_fact
    held: list[Any] = []
    load = timed(lambda: held.extend(assert_fact(i=i, a=a, v=v) for i, a, v in rows))
    numbers = random.Random(1).sample(range(count), min(1000, count))
    retract = timed(lambda: [held[n].retract() for n in numbers])
    again = timed(lambda: [assert_fact(i=rows[n][0], a=rows[n][1], v=rows[n][2]) for n in numbers])
    return {"load": load / count, "assert": again / len(numbers), "retract": retract / len(numbers)}


def clips_trips(count: int) -> dict[str, float]:
    engine = Clips(*CLIPS_TRIPS)
    for fact in crossing(count):
        engine.add(fact)
    engine.environment.run()
    return {"check": engine.count("includes"), "trips": engine.count("load")}


def clips_manners(count: int) -> dict[str, float]:
    engine = Clips(
        "(deftemplate t (slot i) (slot a) (slot v))",
        "(deftemplate made (slot n))",
        """(defrule find-seating
            ?c <- (t (i context) (a state) (v assign)) (t (i ?s) (a done) (v yes)) (t (i ?s) (a seat) (v ?n))
            (t (i ?s) (a guest) (v ?g)) (t (i ?g) (a sex) (v ?x)) (t (i ?g) (a hobby) (v ?h))
            (t (i ?g2) (a hobby) (v ?h)) (t (i ?g2) (a sex) (v ~?x))
            (not (t (i ?s) (a path) (v ?g2))) (not (t (i ?s) (a ?h) (v ?g2))) ?m <- (made (n ?last))
            => (bind ?new (sym-cat s (+ ?last 1))) (retract ?c ?m)
               (assert (made (n (+ ?last 1)))) (assert (t (i ?s) (a ?h) (v ?g2)))
               (assert (t (i ?new) (a seat) (v (+ ?n 1)))) (assert (t (i ?new) (a guest) (v ?g2)))
               (assert (t (i ?new) (a pid) (v ?s))) (assert (t (i ?new) (a path) (v ?g2)))
               (assert (t (i ?new) (a done) (v no))) (assert (t (i context) (a state) (v path))))""",
        """(defrule make-path (declare (salience 10))
            (t (i context) (a state) (v path)) (t (i ?s) (a done) (v no)) (t (i ?s) (a pid) (v ?p))
            (t (i ?p) (a path) (v ?g)) (not (t (i ?s) (a path) (v ?g)))
            => (assert (t (i ?s) (a path) (v ?g))))""",
        """(defrule path-done
            ?c <- (t (i context) (a state) (v path)) ?d <- (t (i ?s) (a done) (v no))
            => (retract ?c ?d) (assert (t (i ?s) (a done) (v yes))) (assert (t (i context) (a state) (v check))))""",
        f"""(defrule go-on
            ?c <- (t (i context) (a state) (v check)) (made (n ~{count}))
            => (retract ?c) (assert (t (i context) (a state) (v assign))))""",
    )
    for fact in guests(count):
        engine.add(fact)
    for fact in (("s1", "seat", 1), ("s1", "guest", "g0"), ("s1", "path", "g0"), ("s1", "done", "yes")):
        engine.add(fact)
    engine.environment.assert_string("(made (n 1))")
    engine.add(("context", "state", "assign"))
    engine.environment.run()
    return {"check": engine.count("path")}


def clips_waltz(count: int) -> dict[str, float]:
    engine = Clips(
        "(deftemplate t (slot i) (slot a) (slot v))",
        """(defrule unsupported
            ?f <- (t (i ?c) (a at) (v ?j)) (t (i ?c) (a ?e) (v ?l)) (t (i ?e) (a joins) (v ?j))
            (t (i ?l) (a fits) (v ?m)) (t (i ?e) (a joins) (v ?k&~?j))
            (not (and (t (i ?d) (a at) (v ?k)) (t (i ?d) (a ?e) (v ?m))))
            => (retract ?f))""",
    )
    for fact in cubes(count):
        engine.add(fact)
    engine.environment.run()
    return {"check": engine.count("at")}


# SQLite -------------------------------------------------------------------------------------------------------------


def table() -> Any:
    import sqlite3

    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE t(i, a, v, PRIMARY KEY(i, a, v)) WITHOUT ROWID")
    connection.execute("CREATE INDEX av ON t(a, v)")
    connection.execute("CREATE INDEX iv ON t(i, v)")
    return connection


def sqlite_facts(count: int) -> dict[str, float]:
    db = table()
    facts = animals(count)
    some = random.Random(1).sample(facts, min(1000, count))
    insert, delete = "INSERT INTO t VALUES (?, ?, ?)", "DELETE FROM t WHERE i = ? AND a = ? AND v = ?"
    load = timed(lambda: [db.execute(insert, f) for f in facts])
    retract = timed(lambda: [db.execute(delete, f) for f in some])
    again = timed(lambda: [db.execute(insert, f) for f in some])
    asked = timed(lambda: [db.execute(sql).fetchall() for sql in SQL_ALL])
    return {"load": load / count, "assert": again / len(some), "retract": retract / len(some), "ask": asked}


def sqlite_trips(count: int) -> dict[str, float]:
    db = table()
    for fact in crossing(count):
        db.execute("INSERT INTO t VALUES (?, ?, ?)", fact)
    db.execute("ANALYZE")
    trips = 0
    while True:
        found = db.execute(SQL_JOIN).fetchone()
        if found is not None:
            db.execute("INSERT INTO t VALUES (?, 'includes', ?)", found)
            continue
        found = db.execute(SQL_START).fetchone()
        if found is None:
            break
        trips += 1
        db.execute("INSERT INTO t VALUES ('trip', ?, '-')", (f"trip{trips}",))
        db.execute("INSERT INTO t VALUES (?, 'includes', ?)", (f"trip{trips}", found[0]))
    return {"check": db.execute("SELECT count(*) FROM t WHERE a = 'includes'").fetchone()[0], "trips": trips}


# Running ------------------------------------------------------------------------------------------------------------

JOBS: dict[str, dict[str, Callable[[int], dict[str, float]]]] = {
    "facts": {"metatree": our_facts, "clips": clips_facts, "sqlite": sqlite_facts},
    "trips": {"metatree": our_trips, "clips": clips_trips, "sqlite": sqlite_trips},
    "manners": {"metatree": our_manners, "clips": clips_manners},
    "waltz": {"metatree": our_waltz, "clips": clips_waltz},
}
ENGINES = ("metatree", "clips", "sqlite")
LIMIT_S = 300


def one(job: str, engine: str, size: int) -> None:
    """Do one job in this process and print its figures."""
    if engine == "clips":
        import clips  # noqa: F401
    elif engine == "metatree":
        import metatree.rules  # noqa: F401
    else:
        import sqlite3  # noqa: F401
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    figures = JOBS[job][engine](size)
    figures["seconds"] = time.process_time() - began
    figures["mb"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(json.dumps(figures))


def measured(job: str, engine: str, size: int) -> dict[str, float] | str:
    """Do one job in a process of its own; a text says why there are no figures."""
    command = [sys.executable, __file__, "--one", job, engine, str(size)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return f"> {LIMIT_S} s"
    if done.returncode:
        return (
            "not installed" if "No module named 'clips'" in done.stderr else "failed: " + done.stderr[-200:]
        )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def restored_s(count: int) -> float:
    """Return the CPU seconds that a kept working memory takes to come back, with the tokens of a production."""
    from metatree.rules import open_memory
    from metatree.storage.store import Store

    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "facts.db") as store:
        open_memory(store).add_all((f"a{n}", "species", f"s{n % 20}") for n in range(count))
        began = time.process_time()
        again = open_memory(store)
        again.add_production('((<x> species <s>) -{(<s> species -)} -> "gather")')
        took = time.process_time() - began
        assert len(again) == len(again.agenda("gather")) == count
    return took


def main() -> int:
    """Print the tables."""
    quick = "--quick" in sys.argv
    print("One assert / one retract, in microseconds; SQLite besides: all queries once, in milliseconds\n")
    print(f"{'facts':>8} {'metatree':>16} {'clips':>16} {'sqlite':>16} {'ask':>10}")
    for size in (1_000, 10_000) if quick else (1_000, 10_000, 100_000):
        row = {engine: measured("facts", engine, size) for engine in ENGINES}
        cells = [
            c if isinstance(c, str) else f"{c['assert'] * 1e6:.1f} / {c['retract'] * 1e6:.1f}"
            for c in row.values()
        ]
        sqlite = row["sqlite"]
        ask = "" if isinstance(sqlite, str) else f"{sqlite['ask'] * 1e3:.0f} ms"
        print(f"{size:>8,} " + " ".join(f"{cell:>16}" for cell in cells) + f" {ask:>10}", flush=True)
    print("\nWhole jobs: seconds, and megabytes at the peak\n")
    print(f"{'job':<14} {'metatree':>20} {'clips':>20} {'sqlite':>20}   metatree beside clips")
    sizes = [
        ("trips", 200),
        ("trips", 1000),
        ("manners", 64),
        ("manners", 128),
        ("waltz", 100),
        ("waltz", 400),
    ]
    for job, size in sizes if not quick else [(j, s) for j, s in sizes if s <= 200]:
        row = {engine: measured(job, engine, size) for engine in JOBS[job]}
        cells = [c if isinstance(c, str) else f"{c['seconds']:.2f} s {c['mb']:.0f} MB" for c in row.values()]
        checks = {c["check"] for c in row.values() if not isinstance(c, str)}
        compared = ""
        ours, theirs = row["metatree"], row["clips"]
        if not isinstance(ours, str) and not isinstance(theirs, str):
            time_ratio, memory_ratio = (
                theirs["seconds"] / ours["seconds"],
                theirs["mb"] / max(ours["mb"], 0.1),
            )
            compared = f"{time_ratio:.2f} x the speed, {memory_ratio:.1f} x less memory"
        if len(checks) > 1:
            compared += f"   results differ: {sorted(checks)}"
        padded = [*cells, *[""] * (3 - len(cells))]
        print(
            f"{f'{job} {size:,}':<14} " + " ".join(f"{c:>20}" for c in padded) + f"   {compared}", flush=True
        )
    print(f"\n100,000 facts restored from a file, with their tokens: {restored_s(100_000):.2f} s   (goal 5)")
    return 0


if __name__ == "__main__":
    if "--one" in sys.argv:
        _, _, job_name, engine_name, size_text = sys.argv
        one(job_name, engine_name, int(size_text))
    else:
        raise SystemExit(main())
