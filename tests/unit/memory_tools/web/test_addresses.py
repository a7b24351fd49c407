"""Addresses that may not be reached are refused, in whatever way they are written."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metatree_memory_tools.web.addresses import AddressRules, origin_of, port_of

from metatree.errors import RefusedAddress, UserError

PUBLIC = AddressRules()

PRIVATE_BLOCKS = [
    ("10.0.0.0", 8),
    ("172.16.0.0", 12),
    ("192.168.0.0", 16),
    ("127.0.0.0", 8),
    ("169.254.0.0", 16),
    ("100.64.0.0", 10),
    ("0.0.0.0", 8),
    ("224.0.0.0", 4),
    ("240.0.0.0", 4),
    ("198.18.0.0", 15),
    ("192.0.0.0", 24),
]


@st.composite
def unreachable(draw: st.DrawFn) -> IPv4Address:
    base, bits = draw(st.sampled_from(PRIVATE_BLOCKS))
    return IPv4Address(int(IPv4Address(base)) + draw(st.integers(0, 2 ** (32 - bits) - 1)))


def _written(address: IPv4Address) -> list[str]:
    number = int(address)
    a, b, c, d = address.packed
    return [
        str(address),
        f"[::ffff:{address}]",
        f"[::{address}]",
        f"[64:ff9b::{address}]",
        f"[2002:{number >> 16:x}:{number & 0xFFFF:x}::]",
        str(number),
        hex(number),
        f"0{number:o}",
        f"0{a:o}.0{b:o}.0{c:o}.0{d:o}",
        f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}",
        f"{a}.{(b << 16) + (c << 8) + d}",
        f"{address}.",
    ]


@given(unreachable(), st.sampled_from(["http", "https"]), st.sampled_from(["", ":80", ":8080"]))
def test_no_way_of_writing_an_address_gets_around_the_rules(
    address: IPv4Address, scheme: str, port: str
) -> None:
    for host in _written(address):
        with pytest.raises(RefusedAddress):
            PUBLIC.check_url(f"{scheme}://{host}{port}/")


@given(unreachable())
def test_what_a_name_resolves_to_counts_and_not_the_name(address: IPv4Address) -> None:
    for ip in (address, IPv6Address(f"::ffff:{address}"), IPv6Address(f"64:ff9b::{address}")):
        with pytest.raises(RefusedAddress):
            PUBLIC.check_address(ip, "www.example.org", 80)


@given(st.ip_addresses(v=4) | st.ip_addresses(v=6))
def test_what_python_takes_for_private_is_refused(address: IPv4Address | IPv6Address) -> None:
    inside = address.version == 6 and (address.ipv4_mapped or address in ip_network("64:ff9b::/96"))
    if inside or getattr(address, "sixtofour", None):
        return  # it is the IPv4 address in it
    if not address.is_global or address.is_multicast or address.is_reserved:
        with pytest.raises(RefusedAddress):
            PUBLIC.check_address(address, "www.example.org", 80)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_public_addresses_are_allowed(address: str) -> None:
    PUBLIC.check_address(ip_address(address), "www.example.org", 443)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.org/",
        "gopher://example.org/",
        "data:text/html,hi",
        "javascript:alert(1)",
        "jar:http://example.org!/",
        "//example.org/",
        "/etc/passwd",
        "",
        "http://",
        "http:///path",
        "http://user:secret@example.org/",
        "http://example.org@127.0.0.1/",
        "http://127.0.0.1\\@example.org/",
        "http://example.org/\r\nHost: evil",
        "http://example.org:99999/",
        "http://[::1",
        "http://①②⑦.⓪.⓪.①/",
        "http://" + "a" * 9_000,
    ],
)
def test_what_is_no_plain_address_on_the_web_is_refused(url: str) -> None:
    with pytest.raises(RefusedAddress):
        PUBLIC.check_url(url)


def test_a_refusal_says_how_to_allow_it() -> None:
    with pytest.raises(RefusedAddress, match=r"a loopback address; allow it .* METATREE_WEB_ALLOW=127"):
        PUBLIC.check_url("http://127.0.0.1/")


def test_private_addresses_can_be_allowed_and_metadata_stays_refused() -> None:
    rules = AddressRules(allow_private=True)
    for host in ("127.0.0.1", "10.1.2.3", "[::1]", "192.168.0.1"):
        rules.check_url(f"http://{host}/")
    for host in ("169.254.169.254", "[fd00:ec2::254]", "168.63.129.16", "224.0.0.1", "0.0.0.0", "[fe80::1]"):
        with pytest.raises(RefusedAddress):
            rules.check_url(f"http://{host}/")


def test_a_named_host_is_allowed_at_its_port_alone() -> None:
    rules = AddressRules(allow=("wiki.lan:8080", "10.1.0.0/16"))
    rules.check_address("192.168.0.7", "wiki.lan", 8080)
    rules.check_address("10.1.200.3", "anything", 80)
    for address, host, port in (
        ("192.168.0.7", "wiki.lan", 80),
        ("192.168.0.7", "other.lan", 8080),
        ("10.2.0.1", "anything", 80),
        ("169.254.169.254", "wiki.lan", 8080),
    ):
        with pytest.raises(RefusedAddress):
            rules.check_address(address, host, port)


def test_metadata_can_be_named_by_number() -> None:
    AddressRules(allow=("169.254.169.254",)).check_url("http://169.254.169.254/latest")


@pytest.mark.parametrize("options", [{"allow": 7}, {"allow": ["http://x/"]}, {"allow_private": "yes"}])
def test_options_out_of_form_are_errors(options: dict[str, object]) -> None:
    with pytest.raises(UserError):
        AddressRules.of(options)


def test_the_environment_names_hosts_for_all_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METATREE_WEB_ALLOW", "127.0.0.1:81, wiki.lan")
    rules = AddressRules.of({"allow": "10.0.0.1"})
    assert rules.allow == ("10.0.0.1", "127.0.0.1:81", "wiki.lan")


def test_parts_of_an_address() -> None:
    parts = PUBLIC.check_url("https://Example.org/a?b#c")
    assert (origin_of(parts), port_of(parts), parts.geturl()) == (
        "https://example.org",
        443,
        "https://Example.org/a?b",
    )
