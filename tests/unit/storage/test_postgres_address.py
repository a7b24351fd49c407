"""Addresses of PostgreSQL databases: nothing secret is ever in what is shown of one."""

from __future__ import annotations

import sys
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metatree.errors import MissingExtra, UserError
from metatree.storage.postgres import refusal
from metatree.storage.postgres_address import address_of, without_secrets


def test_an_address_is_read_by_the_rules_of_libpq() -> None:
    address = address_of("postgresql://ann:s%40crt@db1:5433,db2/shop?sslmode=require&schema=mine", schema="s")
    assert address.schema == "mine"
    assert address.shown == "postgresql://ann@db1:5433,db2/shop?sslmode=require&schema=mine"
    wanted = {"user": "ann", "password": "s@crt", "host": "db1,db2", "dbname": "shop", "sslmode": "require"}
    assert wanted.items() <= address.arguments.items()
    assert "schema" not in address.arguments
    assert "s@crt" not in repr(address)
    assert address_of("postgres:///?service=shop", schema="s").arguments["service"] == "shop"
    assert address_of("postgresql://h/d?keepalives_idle=99", schema="s").arguments["keepalives_idle"] == "99"


@pytest.mark.parametrize(
    "wrong",
    [
        "postgresql://u:s3cret@@h/d",
        "postgresql://u:s3/cret@h/d",
        "postgresql://u:s3?cret@h/d",
        "postgresql://u:s3#cret@h/d",
        "postgresql://u:s3%cret@h/d",
        "postgresql://u:x@h/s3cret@d",
        "postgresql://u:x@h:s3cret/d",
        "postgresql://u:x@h/d?s3cret",
        "postgresql://u:x@h/d?colour=s3cret",
        "postgresql://[s3cret/d",
    ],
)
def test_what_is_out_of_form_is_refused_without_showing_it(wrong: str) -> None:
    with pytest.raises(UserError, match="no address of a PostgreSQL database") as caught:
        address_of(wrong, schema="s")
    assert "s3" not in str(caught.value) and "cret" not in str(caught.value)


def test_a_schema_must_be_a_plain_name() -> None:
    for wrong in ('a"b', "", "a b", "1", "x" * 41):
        with pytest.raises(UserError, match="no schema"):
            address_of(f"postgresql://h/d?schema={quote(wrong)}", schema="s")


@given(st.text("é0@:/?#%&=[]+ ", min_size=4, max_size=12))
def test_no_password_is_ever_shown(password: str) -> None:
    for address in (
        f"postgresql://~:{quote(password, safe='')}@~/~?schema=z",
        f"postgresql://~@~/~?password={quote(password, safe='')}",
    ):
        parsed = address_of(address, schema="s")
        assert parsed.arguments["password"] == password
        assert password not in parsed.shown + repr(parsed) + str(refusal(parsed, ValueError(f"<{password}>")))
    # As people write it, without escaping.
    assert password not in without_secrets(f"postgresql://~:{password}@~/~")


def test_a_missing_driver_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"metatree-memory\[postgres\]"):
        address_of("postgresql://h/d", schema="s")
