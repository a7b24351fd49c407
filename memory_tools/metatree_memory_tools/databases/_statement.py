"""What a statement for PostgreSQL may be made of, by its words; the server's own limits come on top."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from metatree.errors import UserError

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*)
    | (?P<string>[eE]'(?:[^'\\]|\\.|'')*'|(?:[bBxXnN])?'(?:[^']|'')*')
    | (?P<dollar>\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$)
    | (?P<quoted>"(?:[^"]|"")+")
    | (?P<word>[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*)
    | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)

_BEGINNINGS = frozenset({"select", "with", "values", "table", "explain", "show"})

# Functions that reach files, programs, other servers or sessions, that run a text as a statement, or that change
# settings; the server refuses most of them to who is no superuser, and a read-only transaction stops none of them.
_REFUSED = re.compile(
    r"pg_(?:read|ls|stat)_(?:binary_)?(?:file|dir|logdir|waldir|tmpdir|archive_statusdir|logicalmapdir|logicalsnapdir"
    r"|replslotdir|server_files?)\w*"
    r"|pg_logfile_rotate|pg_rotate_logfile\w*|pg_current_logfile|pg_read_\w+file\w*|pg_execute_\w+"
    r"|lo_\w+|loread|lowrite|lo(?:_)?(?:im|ex)port|dblink\w*|postgres_fdw\w*|file_fdw\w*|copy|adminpack\w*"
    r"|query_to_xml\w*|cursor_to_xml\w*|table_to_xml\w*|schema_to_xml\w*|database_to_xml\w*|xpath_table|crosstab\w*"
    r"|connectby|ts_stat|ts_rewrite"
    r"|set_config|setval|nextval|pg_notify|pg_sleep\w*|pg_terminate_backend|pg_cancel_backend|pg_reload_conf"
    r"|pg_(?:try_)?advisory\w*|pg_switch_\w+|pg_create_\w+|pg_drop_\w+|pg_logical_\w+|pg_replication_\w+|pg_promote"
    r"|pg_(?:start|stop)_backup|pg_backup_\w+|pg_wal_\w+|pg_export_snapshot|pg_import_\w+|pg_log_\w+"
    r"|pg_stat_reset\w*|pg_stat_statements_reset|pg_prewarm|pg_buffercache_\w+"
    # catalogues with passwords and with objects that may be files
    r"|pg_authid|pg_shadow|pg_user_mappings?|pg_subscription|pg_largeobject\w*|pg_hba_file_rules|pg_file_settings",
    re.IGNORECASE,
)
_WHOLE_ROWS = frozenset(
    {
        *(
            "row_to_json",
            "to_json",
            "to_jsonb",
            "json_agg",
            "jsonb_agg",
            "json_build_object",
            "jsonb_build_object",
        ),
        *(
            "json_agg_strict",
            "jsonb_agg_strict",
            "json_object_agg",
            "jsonb_object_agg",
            "array_to_json",
            "hstore",
        ),
        *("xmlforest", "xmlelement", "array_agg", "string_agg", "jsonb_populate_record", "format", "concat"),
        *("concat_ws", "record_out", "quote_literal", "quote_nullable", "text", "varchar", "json", "jsonb"),
    }
)


def checked(sql: str) -> list[str]:
    """Return the names in a statement, lower-cased where they are not quoted, when it is one that may be run.

    Raises:
        UserError: it does not read, holds several statements, or names a function that is refused.

    Example:
        >>> checked('SELECT "Id", name FROM users -- all')
        ['select', 'Id', 'name', 'from', 'users']
    """
    names: list[str] = []
    ended = False
    depth = 0
    for kind, text in _tokens(sql):
        if ended:
            raise UserError("refused: give one statement alone")
        if kind == "word":
            names.append(text.lower())
        elif kind == "quoted":
            names.append(text[1:-1].replace('""', '"'))
        elif text == ";":
            ended = depth == 0
    if not names:
        raise UserError("the statement is empty: begin with SELECT, WITH or VALUES")
    first = names[0]
    if first not in _BEGINNINGS:
        raise UserError(f"refused: {first.upper()} may change something; begin with SELECT, WITH or VALUES")
    if (
        first == "explain"
        and {"analyze", "analyse"} & set(names)
        and not {"select", "with", "values"} & set(names)
    ):
        raise UserError("refused: only statements that read may be explained so")
    for name in names:
        if _REFUSED.fullmatch(name):
            raise UserError(f"refused: {name!r} may reach more than the tables of this database")
    return names


def _tokens(sql: str) -> Iterator[tuple[str, str]]:
    at = 0
    previous = ""
    while at < len(sql):
        if sql.startswith("/*", at):
            at = _comment_end(sql, at)
            continue
        match = _TOKEN.match(sql, at)
        assert match is not None
        kind = str(match.lastgroup)
        text = match.group()
        at = match.end()
        if kind == "space":
            continue
        if kind == "dollar":
            end = sql.find(text, at)
            if end < 0:
                raise UserError("the statement is out of form: a text that $ begins does not end")
            at = end + len(text)
        if text == "'" or (kind == "other" and text == '"'):
            raise UserError("the statement is out of form: a text or a name does not end")
        if kind in ("quoted", "string") and previous == "&":
            # U&"\0070g_read_file" is a name that cannot be told by looking at it.
            raise UserError("refused: write names and texts without U&")
        previous = text
        yield kind, text


def _comment_end(sql: str, at: int) -> int:
    """Return where a comment ends; comments of PostgreSQL may hold comments."""
    depth = 0
    for match in re.compile(r"/\*|\*/").finditer(sql, at):
        depth += 1 if match.group() == "/*" else -1
        if depth == 0:
            return match.end()
    raise UserError("the statement is out of form: a comment does not end")


def refuse_secrets(names: Collection[str], secrets: Collection[str], tables: Collection[str]) -> None:
    """Refuse a statement that names columns which may hold secrets, or makes texts of whole rows that have such.

    Args:
        names: those in the statement, of `checked`.
        secrets: names of the columns that are not shown.
        tables: names of the tables that have such columns.

    Raises:
        UserError: it does.
    """
    named = sorted(set(names) & set(secrets))
    if named:
        raise UserError(f"refused: {', '.join(named)} may hold secrets; leave it out")
    if set(names) & set(tables) and (whole := sorted(set(names) & _WHOLE_ROWS)):
        raise UserError(
            f"refused: {', '.join(whole)} could show columns of {', '.join(sorted(set(names) & set(tables)))} that may"
            " hold secrets; name the columns that are wanted"
        )
