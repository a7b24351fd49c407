"""Cross a river with animals that eat each other: four knowledge sources around one blackboard, no pipeline.

usage: python examples/river_crossing/river.py

Which species eats which, and what an animal of each weighs, is asked of a model when METATREE_MODEL names one (and
its key or base URL is set), and taken from a small table otherwise.

Source: the sample blackboard on rete-next (Sfouflis). Its last production tests `(<w> + <w2>) < 100` with a `<w>` that
is any species' weight; here the weight on the trip, `<wt>`, is tested, as is said in its prose.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from metatree_agents.rules.sources import Structured

from metatree.parts import suite_named
from metatree.protocols import ToolCaller
from metatree.rules import ControlShell, Firing, KnowledgeSource, OverridingSelfTransition, ShellReport
from metatree.rules.shell.control import ending_lines, trace_lines

FACTS = """
(animal a1 -) (a1 species rabbit) (a1 gender male)
(animal a2 -) (a2 species rabbit) (a2 gender female)
(animal a3 -) (a3 species wolf) (a3 gender female)
(animal a4 -) (a4 species snake) (a4 gender male)
"""

KS1 = """
((<x> species <s>) -{(species <s> -)} -> "ks1 gather species")
((species <s> -) -> "ks1 determine food chain")
"""

KS2 = """
((species <s> -) -> "ks2 determine average weight")
"""

KS3 = """
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

SCHEDULE = """
# define symbols
a1   = 0; # First production of KS 1
a2   = 1; # Second production of KS 1
a3   = 2; # First production of KS 2
a4   = 3; # First production of KS 3
a5   = 4; # Second production of KS 3

# define main state machine pattern
main = a1+ a2 a3+ (a4 a5*)+;
"""

EATS = {"rabbit": ["grass"], "wolf": ["rabbit"], "snake": ["rabbit"]}
WEIGHTS = {"rabbit": 2, "wolf": 40, "snake": 1.5}


class Expert(Protocol):
    """Knows about animals."""

    async def food_chain(self, species: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return what each species eats."""
        ...

    async def weight(self, species: str) -> float:
        """Return the weight of an average animal in kilograms."""
        ...


class TableExpert:
    """Knows what is in the table."""

    async def food_chain(self, species: Sequence[str]) -> Mapping[str, Sequence[str]]:
        return {name: EATS.get(name, []) for name in species}

    async def weight(self, species: str) -> float:
        return WEIGHTS[species]


class ModelExpert:
    """Asks a model what animals eat and weigh: both through structured output."""

    def __init__(self, model: str | ToolCaller) -> None:
        """Take the tool caller of a suite, or the name of a router with a model, such as `openai/gpt-…`."""
        self._ask = Structured(suite_named(model).tool_caller if isinstance(model, str) else model)

    async def food_chain(self, species: Sequence[str]) -> dict[str, list[str]]:
        """Return what each species eats."""
        triple = {
            "type": "object",
            "properties": {"eater": {"type": "string"}, "eaten": {"type": "string"}},
            "required": ["eater", "eaten"],
            "additionalProperties": False,
        }
        said = await self._ask(
            f"Which of these species eats which: {', '.join(species)}?",
            {"eats": {"type": "array", "items": triple}},
            "Given a list of species, say which of them eats which. Leave out species that are not in the list.",
        )
        found: dict[str, list[str]] = {}
        for one in said["eats"]:
            if isinstance(one, dict) and one.get("eater") in species and one.get("eaten") in species:
                found.setdefault(str(one["eater"]), []).append(str(one["eaten"]))
        return found

    async def weight(self, species: str) -> float:
        """Return the weight of an average animal in kilograms."""
        said = await self._ask(
            f"What does an average {species} weigh, in kilograms?",
            {"kilograms": {"type": "number"}},
            "Given a species, say the average weight of an individual of the species in kilograms.",
        )
        return float(said["kilograms"])


def sources(expert: Expert) -> list[KnowledgeSource]:
    """Return the three knowledge sources."""
    species, weights, trips = (
        KnowledgeSource("KS1", KS1),
        KnowledgeSource("KS2", KS2),
        KnowledgeSource("KS3", KS3),
    )

    @species.fires("ks1 gather species")
    def gather(firing: Firing) -> None:
        token = firing.to_add[0]
        firing.commit(token)
        firing.add("species", token["s"], "-")
        firing.note(f"Added species: {token['s']}")

    @species.fires("ks1 determine food chain")
    async def food_chain(firing: Firing) -> None:
        names = [str(token["s"]) for token in firing.to_add]
        firing.note(f"Retrieving food chain for: {','.join(names)}")
        firing.commit(*firing.to_add)
        for eater, eaten in (await expert.food_chain(names)).items():
            for food in eaten:
                firing.add(eater, "eats", food)
                firing.note(f"Added: {eater} eats {food}")

    @weights.fires("ks2 determine average weight")
    async def weight(firing: Firing) -> None:
        token = firing.to_add[0]
        firing.note(f"Retrieving average weight for: {token['s']}")
        found = await expert.weight(str(token["s"]))
        firing.commit(token)
        firing.add(token["s"], "weight", found)
        firing.note(f"Added: {token['s']} weight {found:g}")

    @trips.fires("start trip")
    def start(firing: Firing) -> None:
        token, trip = firing.to_add[0], firing.new_id("gensym")
        firing.commit(token)
        firing.add("trip", trip, "-")
        firing.add(trip, "includes", token["a"])
        firing.note(f"Added trip {trip} with {token['a']}")

    @trips.fires("add compatible animal to trip")
    def join(firing: Firing) -> None:
        token = firing.to_add[0]
        firing.commit(token)
        firing.add(token["t"], "includes", token["b"])
        firing.note(f"To trip {token['t']} we added {token['b']}")

    return [species, weights, trips]


def crossing(expert: Expert | None = None, **options: Any) -> ControlShell:
    """Return the control shell of the sample."""
    resolver = OverridingSelfTransition(["add compatible animal to trip"])
    return ControlShell(sources(expert or TableExpert()), schedule=SCHEDULE, resolver=resolver, **options)


def expert_of_choice() -> Expert:
    """Return the model that METATREE_MODEL names, or the table."""
    if not os.environ.get("METATREE_MODEL"):
        return TableExpert()
    return ModelExpert(
        "openai"
    )  # any server that speaks its protocol, and the model that METATREE_MODEL names


def main() -> int:
    """Run the sample and print its trace; return 0 when it was accepted."""
    print("Current state is 1")

    def tell(entry: dict[str, Any]) -> None:
        print("\n".join(trace_lines(entry)))

    report: ShellReport = crossing(expert_of_choice()).run(FACTS, seed=1, on_entry=tell)
    print("\n".join(ending_lines(report)))
    print("\nThe final state of the blackboard:")
    print(report.memory.text())
    return 0 if report.ended == "accepted" else 1


if __name__ == "__main__":
    raise SystemExit(main())
