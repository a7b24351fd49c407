"""The sets by name; a new one implements `Benchmark` and is named here."""

from __future__ import annotations

from benchmarks.retrieval import code, documents, languages, memory, multihop, tools
from benchmarks.retrieval.dataset import Benchmark

_ALL: tuple[Benchmark, ...] = (
    documents.FINANCEBENCH,
    documents.FINANCEBENCH_ALL,
    documents.QASPER,
    memory.LOCOMO,
    memory.BEAM,
    multihop.MUSIQUE,
    multihop.HOTPOT,
    tools.METATOOL_SINGLE,
    tools.METATOOL_MULTI,
    tools.STABLETOOLBENCH,
    tools.LIVEMCPBENCH,
    tools.TMDB,
    *code.SETS,
    *languages.SETS,
)
SETS = {benchmark.name: benchmark for benchmark in _ALL}
