"""Write transport problems of any size in HDDL: packages, trucks with room for a few, and a road map.

usage: python -m benchmarks.planning.transport FOLDER [--packages 60 120 240 300 600 1000] [--seed 0]

FOLDER/ordered and FOLDER/unordered get a domain and a problem for each number of packages: there is a truck for each 30
packages, with room for 3, and a place for each 4, on a ring with short cuts. `ordered` gives the deliveries, and the
parts of each, a total order; `unordered` leaves the order of deliveries open.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path
from random import Random

DOMAIN = """(define (domain transport)
  (:requirements :typing :hierarchy :negative-preconditions)
  (:types truck package - thing  place room - object  thing)
  (:predicates (road ?a ?b - place) (at ?x - thing ?p - place) (in ?x - package ?t - truck)
               (free ?t - truck ?r - room) (less ?r ?s - room))
  (:task deliver :parameters (?x - package ?to - place))
  (:task reach :parameters (?t - truck ?to - place))
  (:method by-truck
    :parameters (?x - package ?from ?to - place ?t - truck ?r ?s - room)
    :task (deliver ?x ?to)
    :ordered-subtasks (and (reach ?t ?from) (load ?x ?t ?from ?r ?s) (reach ?t ?to) (unload ?x ?t ?to ?r ?s)))
  (:method there :parameters (?t - truck ?to - place) :task (reach ?t ?to) :subtasks (stay ?t ?to))
  (:method straight
    :parameters (?t - truck ?from ?to - place) :task (reach ?t ?to) :subtasks (drive ?t ?from ?to))
  (:method by-way-of
    :parameters (?t - truck ?via ?to - place) :task (reach ?t ?to)
    :ordered-subtasks (and (reach ?t ?via) (drive ?t ?via ?to)))
  (:action drive
    :parameters (?t - truck ?a ?b - place)
    :precondition (and (at ?t ?a) (road ?a ?b))
    :effect (and (not (at ?t ?a)) (at ?t ?b)))
  (:action stay :parameters (?t - truck ?a - place) :precondition (at ?t ?a))
  (:action load
    :parameters (?x - package ?t - truck ?a - place ?r ?s - room)
    :precondition (and (at ?t ?a) (at ?x ?a) (less ?r ?s) (free ?t ?s))
    :effect (and (not (at ?x ?a)) (in ?x ?t) (not (free ?t ?s)) (free ?t ?r)))
  (:action unload
    :parameters (?x - package ?t - truck ?a - place ?r ?s - room)
    :precondition (and (at ?t ?a) (in ?x ?t) (less ?r ?s) (free ?t ?r))
    :effect (and (at ?x ?a) (not (in ?x ?t)) (not (free ?t ?r)) (free ?t ?s))))
"""


def problem(packages: int, *, ordered: bool, seed: int = 0) -> str:
    """Return a problem with so many packages; the same seed gives the same problem."""
    rng = Random(f"{seed}:{packages}")
    places = [f"place{n}" for n in range(max(3, packages // 4))]
    trucks = [f"truck{n}" for n in range(max(1, packages // 30))]
    rooms = [f"room{n}" for n in range(4)]
    roads = {(a, b) for a, b in zip(places, places[1:] + places[:1], strict=True)}
    roads |= {tuple(rng.sample(places, 2)) for _ in range(len(places) // 2)}  # type: ignore[misc]
    facts = [f"(road {a} {b}) (road {b} {a})" for a, b in sorted(roads)]
    facts += [f"(less {a} {b})" for a, b in pairwise(rooms)]
    facts += [f"(at {truck} {rng.choice(places)}) (free {truck} {rooms[-1]})" for truck in trucks]
    wanted = []
    for n in range(packages):
        start, end = rng.sample(places, 2)
        facts.append(f"(at package{n} {start})")
        wanted.append(f"(deliver package{n} {end})")
    key = ":ordered-subtasks" if ordered else ":subtasks"
    return f"""(define (problem transport-{packages}) (:domain transport)
  (:objects {" ".join(places)} - place {" ".join(trucks)} - truck {" ".join(rooms)} - room
    {" ".join(f"package{n}" for n in range(packages))} - package)
  (:htn :parameters () {key} (and
    {"    ".join(one + chr(10) for one in wanted)}))
  (:init
    {"    ".join(one + chr(10) for one in facts)}))
"""


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--packages", type=int, nargs="+", default=[60, 120, 240, 300, 600, 1000])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for name, ordered in (("ordered", True), ("unordered", False)):
        folder = arguments.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "domain.hddl").write_text(DOMAIN)
        for count in arguments.packages:
            text = problem(count, ordered=ordered, seed=arguments.seed)
            (folder / f"p{count:04}.hddl").write_text(text)


if __name__ == "__main__":
    main()
