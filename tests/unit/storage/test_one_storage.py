"""Tables are defined beside their version, and connections to PostgreSQL begin in one way."""

import re
from pathlib import Path

from metatree_agents.service.database.schema import SERVICE

from metatree.storage.schema import FILES, POSTGRES, SHARED, SQLITE
from metatree.storage.trust import _META

ROOT = Path(__file__).parents[3]
SOURCES = [
    file
    for package in ("metatree", "routers", "memory_tools", "agents")
    for file in sorted((ROOT / package).rglob("*.py"))
]


def modules_with(pattern: str) -> set[str]:
    """Return the modules of the packages in whose text a pattern is."""
    return {str(file.relative_to(ROOT)) for file in SOURCES if re.search(pattern, file.read_text())}


def test_tables_are_defined_beside_their_version_alone() -> None:
    assert modules_with(r"CREATE TABLE (IF NOT EXISTS )?\w+\(") == {
        "metatree/storage/schema.py",
        "metatree/storage/trust.py",  # what the table of marks must be, to the letter
        "routers/metatree_routers/index/_schema.py",
        "agents/metatree_agents/service/database/schema.py",
        "agents/metatree_agents/service/replication/tree_schema.py",  # a part of that
    }
    assert f"{_META};" in FILES.start


def test_connections_to_postgresql_are_opened_in_few_places() -> None:
    assert (
        modules_with(r"\.connect\(\s*\**(self\._?)?address|psycopg\.(AsyncConnection\.)?connect\(")
        == {
            "metatree/storage/postgres_store.py",
            "agents/metatree_agents/cli/commands/service/check.py",  # before any server is started
            "agents/metatree_agents/service/database/postgres.py",
            "agents/metatree_agents/service/database/postgres_rights.py",
            "memory_tools/metatree_memory_tools/databases/_postgres.py",  # databases of others, which are read alone
        }
    )


def test_every_script_is_for_both_databases() -> None:
    for schema in (SHARED, SERVICE):
        for dialect in (SQLITE, POSTGRES):
            text = "\n".join(schema.statements(None, dialect))
            assert "{" not in text and len(re.findall(r"^CREATE TABLE", text, re.MULTILINE)) == len(
                schema.tables
            )
    assert SHARED.tables < FILES.tables and SHARED.version == FILES.version
