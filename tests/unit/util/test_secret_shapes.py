"""Secrets by shape: keys of providers, private keys in each form, passwords in addresses, tokens that look random."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metatree._util._secret_shapes import _BETWEEN_TOKENS, PROVIDERS, SHAPES
from metatree._util.secret_text import masked, redacted
from metatree.trees.masking import masked_file

LINE = "A1b2C3d4E5f6G7h8" * 4
HEX_LINES = "".join(f"{number:02x}" * 16 + "\n" for number in range(40, 56))
FORMS = {
    "putty": "PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\nComment: ann@example.org\nPublic-Lines: 1\n"
    f"AAAAB3NzaC1yc2EAAAADAQAB\nPrivate-Lines: 3\n{LINE}\n{LINE}\nZq9Zq9==\nPrivate-MAC: 00ff00ff\n",
    "openvpn": f"-----BEGIN OpenVPN Static key V1-----\n{HEX_LINES}-----END OpenVPN Static key V1-----\n",
    "tls-crypt": f"-----BEGIN OpenVPN tls-crypt-v2 client key-----\n{LINE}\n{LINE}\nZq9Zq9==\n"
    "-----END OpenVPN tls-crypt-v2 client key-----\n",
    "ssh2": '---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: "1024-bit, ann@x"\n'
    f"{LINE}\n{LINE}\nZq9Zq9==\n---- END SSH2 ENCRYPTED PRIVATE KEY ----\n",
    "xml": f"<RSAKeyValue><Modulus>{LINE}</Modulus><P>{LINE}</P><Q>\n {LINE}\n {LINE}\n</Q><DP>{LINE}</DP>"
    f"<InverseQ>{LINE}</InverseQ><D>{LINE}Zq9Zq9==</D></RSAKeyValue>\n",
    "net": f'{{"D": "{LINE}Zq9Zq9==", "InverseQ": "{LINE}", "Modulus": "AQAB"}}\n',
    "jwk": f'{{"kty": "RSA", "n": "{LINE}", "d": "{LINE}Zq9Zq9", "p": "{LINE}", "qi": "{LINE}"}}\n',
    "jwk in a text": f'key = "{{\\"kty\\": \\"oct\\", \\"k\\": \\"{LINE}Zq9Zq9\\"}}"\n',
    "jwk in yaml": f"jwk:\n  kty: EC\n  x: {LINE}\n  d: {LINE}Zq9Zq9\n",
    "xml in xml": f"&lt;RSAKeyValue&gt;&lt;D&gt;{LINE}Zq9Zq9==&lt;/D&gt;&lt;/RSAKeyValue&gt;\n",
    "lower": f"-----begin rsa private key-----\n{LINE}\n{LINE}\nZq9Zq9==\n-----end rsa private key-----\n",
    "der": f"key: MIIEvQIBADANBgkqhkiG9w0BAQEFAAS{LINE}\n  {LINE}\n  Zq9Zq9==\n",
}
PUBLIC = ("n", "Modulus", "x")


@pytest.mark.parametrize("around", ["{}", "# {}", "> {}", "{}\r"])
@pytest.mark.parametrize("form", FORMS)
def test_a_private_key_is_masked_to_its_end_in_files_of_other_names(form: str, around: str) -> None:
    text = (
        "the kettle\n" + "\n".join(around.format(line) for line in FORMS[form].splitlines()) + "\nis blue\n"
    )
    if form in ("jwk", "net", "xml", "xml in xml", "der", "jwk in a text", "jwk in yaml") and around != "{}":
        return
    for name in ("a.md", "a.txt", "a.py")[: 2 if form == "xml in xml" else 3]:
        shown = masked_file(name, text.encode())[0].decode()
        assert (
            len(shown) == len(text.replace("\r", ""))
            and shown.startswith("the kettle\n")
            and shown.endswith("\nis blue\n")
        )
        assert "Zq9" not in shown
        left = re.sub(rf"(?:{'|'.join(PUBLIC)})\W{{1,6}}{LINE}", "", shown)
        assert LINE[:16] not in left and "2828282828" not in left


@pytest.mark.parametrize(
    ("address", "password"),
    [
        ("postgres://user:p@ss@host/db", "p@ss"),
        ("postgres://user:p@s@s@w@host:5432/db?email=a@b.org", "p@s@s@w"),
        ("https://ann@shop:pa55word@host.example.org/", "pa55word"),
        ("postgres://user:pa/ss@host/db", "pa/ss"),
        ("postgres://user:pa/s+s=@host:5432/db", "pa/s+s="),
        ("redis://:p@ss@localhost:6379", "p@ss"),
        (r"postgres:\/\/user:p@ss@host\/db", "p@ss"),
        ("amqp://a:p@55@one:1,amqp://b:p@66@two:2", "p@55"),
    ],
)
@pytest.mark.parametrize("code", [True, False])
def test_a_password_in_an_address_is_masked_to_the_last_at_before_the_host(
    address: str, password: str, code: bool
) -> None:
    shown, number = masked(f"db = '{address}'", code=code)
    assert number >= 1 and password not in shown
    assert f":{'*' * len(password)}@" in shown
    assert address.partition(":")[0] in shown and re.split("[@]", address)[-1] in shown


@pytest.mark.parametrize(
    "address",
    [
        "http://localhost:4873/@scope/package",
        "http://localhost:8080/path?mail=ann@example.org",
        "https://example.org/a:b/c@d",
        "file:///a:b@c",
        "see http://[::1]:80/ and mail ann@example.org",
    ],
)
def test_an_address_without_a_password_stays(address: str) -> None:
    assert masked(address) == (address, 0)


ALPHABETS = st.sampled_from(["0123456789abcdef", "abcdefghijklmnopqrstuvwxyz0123456789"])
BEGINS = sorted({(begin, body) for body, begins in PROVIDERS.items() for begin in begins.split()})


@given(data=st.data(), row=st.sampled_from(BEGINS), code=st.booleans())
@settings(max_examples=200)
def test_what_a_row_describes_is_masked_whole(data: st.DataObject, row: tuple[str, str], code: bool) -> None:
    begin, body = row
    plain = body.replace(r"[\w", "[A-Za-z0-9_").replace("(?![A-Za-z0-9])", "")
    rest = data.draw(st.from_regex(re.compile(plain, re.ASCII), fullmatch=True))
    digits = sum(map(str.isdigit, rest))
    if not digits or re.search(r"%s|%\(|\.\.\.|[*]", rest) or not re.search(r"\d", rest[:100]):
        return
    text = f'the kettle = "{begin}{rest}" is blue'
    shown, _ = masked(text, code=code)
    assert shown == f'the kettle = "{"*" * len(begin + rest)}" is blue'


@pytest.mark.parametrize(
    "begin, length", [("xoxb-", 10), ("k_test_", 10), ("sk-", 20), ("sm_pat_", 16), ("oy2", 26)]
)
@pytest.mark.parametrize("around", ["{}", "f({})", "<b>{}</b>", "[{}, 1]", "见{}。", "\udce9 {}"])
@pytest.mark.parametrize("code", [True, False])
def test_the_shortest_token_is_masked_beside_any_sign(
    begin: str, length: int, around: str, code: bool
) -> None:
    token = ("r" if begin.startswith("k_") else "") + begin + ("a1B2c3D4e5" * 3)[:length]
    assert masked(around.format(token), code=code)[0] == around.format("*" * len(token))


@pytest.mark.parametrize(
    "token",
    [
        "d1pL5NlryIrYIt.atlasv1." + "B5jYO1FayVU3aiF8vUef" * 3 + "F4Ix",
        "sc_Ab1cdE.k9fa.acc_a1b2c3d4e5f6." + "A1b2C3d4E5f6G7h8" * 3,
    ],
)
def test_a_sign_between_two_keys_belongs_to_none_of_them(token: str) -> None:
    """Some keys may end with `=`, as texts in base64 do."""
    for sign in "=,;: ":
        other = token.replace("1", "7").replace("av7", "av1").replace("atlasv7", "atlasv1")
        shown = masked(f"the kettle {token}{sign}{other} is blue")[0]
        assert re.fullmatch(rf"the kettle \*{{{len(token)},}}{sign}?\*{{{len(other)},}} is blue", shown), sign


NAMES = (
    "DATADOG_KEY",
    "algolia_api",
    "snyk.key",
    "webhookKey",
    "my-service-key",
    "APP_AUTH",
    "gitter",
    "x_creds",
)
TOKEN = "f3k9c71e04bq58w2a6z0"


@pytest.mark.parametrize("name", NAMES)
def test_a_token_that_looks_random_is_masked_behind_a_name_that_says_so(name: str) -> None:
    for text, code in (
        (f'{name} = "TOKEN"', True),
        (f"{name}=TOKEN", False),
        (f"{name}: TOKEN", False),
        (f"Set `{name}=TOKEN` first.", False),
        (f"The {name}: **TOKEN**", False),
        (f'{{"{name}": "TOKEN"}}', False),
        (f'set("{name}", "TOKEN")', True),
        (f"<a>{name}</a><{name}>TOKEN</{name}>", True),
    ):
        assert masked(text.replace("TOKEN", TOKEN), code=code) == (text.replace("TOKEN", "*" * 20), 1)


@pytest.mark.parametrize(
    "text",
    [
        'key = "550e8400-e29b-41d4-a716-446655440000"',
        'key: "3f786850e387550fdab836ed7e6dc881de23001b"',
        'commit = "3f786850e387550fdab836ed7e6dc881de23001b"',
        'content-hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"',
        'public_key = "f3k9c71e04bq58w2a6z0"',
        'github_sha: "f3a9c71e04bd58d2a6aa"',
        'image = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"',
        'cache_key = "getUserByName2Version3OfTheTree"',
        'auth = "my-auth-provider-v2-of-2024"',
        'vector = "f3k9c71e04bq58w2a6z0"',
        "{file = \"a.whl\", hash = \"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"}",
        '"MCSession", "MDLAnimatedMatrix4x4"',
        "License: Apache-2.0-with-GPL2-LGPL2-Exception",
        "key = lookup_of_f3k9c71e04bq58w2a6z0",
    ],
)  # fmt: skip
def test_hashes_ids_and_long_names_stay(text: str) -> None:
    assert masked(text, code=True) == (text, 0)
    if not text.startswith("key = lookup"):
        assert masked(text) == (text, 0)


def test_values_of_a_secret_of_a_cluster_are_masked_whatever_their_names() -> None:
    text = (
        "apiVersion: v1\nkind: ConfigMap\ndata:\n  colour: blue\n---\napiVersion: v1\nkind: Secret\nmetadata:\n"
        "  name: shop\ndata:\n  user: YW5uYW5u\n  colour: Ymx1ZQ==\n---\nkind: Other\ndata:\n  pot: tea\n"
    )
    shown = masked_file("a.yaml", text.encode())[0].decode()
    assert shown == text.replace("YW5uYW5u", "*" * 8).replace("Ymx1ZQ==", "*" * 8)


def test_blocks_and_json_of_a_secret_of_a_cluster() -> None:
    text = (
        "- kind: Secret\n  stringData:\n    a: |\n      two words\n\n      and more\n    b: zap\n  type: x\n"
    )
    shown = text.replace("two words", "*** *****").replace("and more", "*** ****").replace("zap", "***")
    assert masked_file("a.yaml", text.encode())[0].decode() == shown
    json = '{"kind": "Secret", "data": {"user": "YW5uYW5u"}, "metadata": {"name": "x"}}'
    assert masked(json) == (json.replace("YW5uYW5u", "*" * 8), 1)


@pytest.mark.parametrize(
    "text",
    [
        "kind: Secret\nstringData:\n\n  a: SECRET\n\n  b: SECRET\n",
        "kind: Secret # ours\nstringData: # theirs\n  # a note\n  a: SECRET\n",
        '"kind": "Secret"\n"stringData":\n  "a": "SECRET"\n  \'b\': \'SECRET\'\n',
        'kind: Secret\nstringData:\n  a: "#SECRET"\n  b: "x\'SECRET"\n  c:\n    SECRET\n  d: SECRET\n    SECRET\n',
        "kind: Secret\nstringData:\n  a: |- # text\n    SECRET: SECRET\n    # SECRET\n  b c: SECRET\n",
        "kind: Secret\ndata:\n  a: !!binary |\n    SECRET\n  b: !!str SECRET\n  c: SECRET\n",
        '{"kind":"Secret","stringData":{"template":"{x}","a":"SECRET","b":"x\\"SECRET"}}\n',
    ],
)
def test_values_of_a_secret_of_a_cluster_are_masked_however_they_are_written(text: str) -> None:
    shown = masked_file("a.yaml", text.encode())[0].decode()
    assert "SECRET" not in shown.replace("kind: Secret", "")
    assert [line.partition(":")[0] for line in shown.splitlines() if line.startswith("  a")] == [
        line.partition(":")[0] for line in text.splitlines() if line.startswith("  a")
    ]


def test_other_objects_beside_a_secret_of_a_cluster_stay() -> None:
    text = (
        "kind: Secret\ndata:\n  a: YW5uYW5u\nmetadata:\n  name: shop\n---\nkind: Other\ndata:\n  pot: tea\n"
    )
    assert masked(text) == (text.replace("YW5uYW5u", "*" * 8), 1)


@pytest.mark.parametrize(
    "colour", ["\x1b[01;31m\x1b[K", "\x1b[38;2;255;255;255;48;2;100;100;100m", "\x1b[38:2::255:100:0m"]
)
def test_a_colour_is_no_letter_before_a_key(colour: str) -> None:
    assert masked(f"key {colour}AKIAQ3EGRB7TZ5KMX2WD\x1b[m\x1b[K is") == (
        f"key {colour}{'*' * 20}\x1b[m\x1b[K is",
        1,
    )


@pytest.mark.parametrize("font", ["B", "I", "R", "P"])
def test_a_font_of_a_manual_page_is_no_letter_before_a_key(font: str) -> None:
    assert masked(f"the key\\f{font}AKIAQ3EGRB7TZ5KMX2WD\\fR is") == (f"the key\\f{font}{'*' * 20}\\fR is", 1)


@pytest.mark.parametrize(
    "text",
    [
        r'{"hook":"https:\/\/hooks.slack.com\/services\/T0AB12CD3\/B0AB12CD3\/aBcDeFgHiJkLmNoPqRsTuVwX"}',
        r'{"hook":"https:\/\/discord.com\/api\/webhooks\/123456789012345678\/aBcDeFgHiJkLmNoPqRsTuVwXaBcDeFgHiJkLmNoPqRsTuVwX12"}',
        r'{"google":"1\/\/0gAbCdEfGh1234567890-AbCdEfGh1234567890AbCdEfGh1234567890"}',
        r'{"kty":"RSA","d":"abcdEFGH1234\/abcdEFGH1234abcdEFGH5678"}',
    ],
)
def test_escaped_slashes_hide_no_key(text: str) -> None:
    shown = masked(text)[0]
    assert not set(re.findall(r"\w{12,}", text)) & set(re.findall(r"\w{12,}", shown)) - {
        "discord",
        "webhooks",
    }


@pytest.mark.parametrize(
    "begin",
    [
        "MIICXQIBAAKBgQ",  # RSA of 1,024 bits
        "MIIDfgIBAAKBwQ",  # of 1,536
        "MHQCAQEEI",  # secp256k1
        "MIGkAgEBBDC85O",  # P-384
        "MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGb",
        "LS0tLS1CRUdJTiBQR1AgUFJJVkFURSBLRVkg",
        "LS0tLS1CRUdJTiBEU0EgUFJJVkFURSBLRVkt",
    ],
)
def test_private_keys_in_base64_are_masked(begin: str) -> None:
    key = begin + "aB3dE5gH" * 12 + "=="
    assert masked(f"blob: {key}") == (f"blob: {'*' * len(key)}", 1)


def test_a_token_with_a_short_payload_is_masked() -> None:
    token = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpZCI6N30.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
    assert masked(f"note {token} x") == (f"note {'*' * len(token)} x", 1)


def test_a_bracket_in_a_password_makes_no_call_of_it() -> None:
    text = "postgres://ann:hunter(hunter77@db.example.org/shop and machine h login u password net(abc77"
    assert masked(text) == (text.replace("hunter(hunter77", "*" * 15).replace("net(abc77", "*" * 9), 2)
    assert masked("password = get_password(name77)") == ("password = get_password(name77)", 0)


@pytest.mark.parametrize("before", ["\x1b[", "\\e[", "[", "\x1b[m", "\x1b[1m["])
def test_a_line_of_netrc_in_brackets_is_none_of_colours(before: str) -> None:
    text = f"{before}machine tea.example.org login ann password Xk7vQ2mZp9Lw ]"
    assert "Xk7vQ2mZp9Lw" not in masked(text)[0]


@pytest.mark.parametrize(
    "begin", ["sha256~", "pscale_tkn_", "fio-u-", "glpat-", "hf_", "SG.", "hvs.", "dp.pt.", "whsec_", "ABSK"]
)
@pytest.mark.parametrize("sign", "=:,; ")
def test_of_two_keys_with_a_sign_between_none_is_left(begin: str, sign: str) -> None:
    first, second = (
        f"{begin}qdo1py8DXdALaIpOLMvCddQi7RrrZk1uHn0pQw2Xy5s",
        "k9J0SJ9RlcOhDDmxh52O74aVbT3uYcWq8ZpLr6MnEf",
    )
    assert second not in masked(f"the pair {first}{sign}{begin}{second} of it")[0]


@pytest.mark.parametrize("mark", ["</u>", "</c>", "=\n", "=\r\n"])
def test_a_key_is_masked_behind_a_mark_in_it(mark: str) -> None:
    """Of a caption, or where a letter that is kept as a text ends a line."""
    first, rest = (
        "hvs.ne4MW60sDtGWz2I365zwPB90HU9L4i8eTo",
        "Lk00ocE4YhiTHQd1FoFe3UNkXoltKphPSuct7cgchYL6dNwMg7k4KuV",
    )
    said = masked(f"Content-Transfer-Encoding: quoted-printable\n\nthe token <u>{first}{mark}{rest} of it")[0]
    assert first not in said and rest not in said and said.endswith(" of it")


@pytest.mark.parametrize("sign", ["\\-", "\\&.", "\\_"])
@pytest.mark.parametrize("before", ["token: ", "the token \\f(CW\\*(C`", "token \\fB"])
def test_a_key_is_masked_behind_a_sign_that_a_manual_page_escapes(before: str, sign: str) -> None:
    rest = "Lk00ocE4YhiTHQd1FoFe3UNkXoltKphPSuct7cgchYL6dNwMg7k4KuV"
    assert rest not in masked(f"{before}hvs.ne4MW60sDtGWz2I365zwPB90HU9L4i8eTo{sign}{rest} of it")[0]


@pytest.mark.parametrize("before", ["", " port 587", " port imap protocol tls"])
@pytest.mark.parametrize("between", ["", " account shop", " port 587"])
def test_a_password_behind_a_login_is_masked(before: str, between: str) -> None:
    text = f"machine shop.example.org{before} login ann{between} password kettle\n"
    assert masked(text) == (text.replace("kettle", "******"), 1)


def test_a_value_in_quotes_is_masked_to_its_quote() -> None:
    assert masked('password: "hunter71Zq7,and;more", x') == (f'password: "{"*" * 20}", x', 1)
    assert redacted("password='hunter71Zq7;x' y")[0] == "password='[left out: a password or key]' y"


@pytest.mark.parametrize(
    "text",
    [
        'key="f3k9c71e04bq58w2a6z0",',
        "a1" * 9 + "=",
        "a b c d e f g h i=f3k9c71e04bq58w2a6z0 ",
        "Private-Lines: 9\n" + LINE + "\n",
        "-----BEGIN OpenVPN Static key V1-----\n",
        "kind: Secret\ndata:\n  a: b\n",
        "kind: Secret\ndata:\n  a: |\n   b\n",
        '"kind": "Secret", "data": {"a": "b',
        '"kind": "Secret", "data": {"a": "b", "c": "d", ',
        "kind: Secret\n" + "".join(" " * n + "data:\n" for n in range(20)),
        "-----begin private key-----\n",
        "machine a login b ",
        "://a:b@",
        "://a:b/",
        "kty d:",
        "InverseQ D>AAAAAAAAAAAAAAAAAAAA ",
        "MHcCAQEEI" + LINE + "\n",
        "1234567890123456|",
        "api_key=f3k9c71e04bq58w2a6z0",
        "eyJapi_key=Modulus\\_A1b2C3d4",
        "s.a1",
        "eyJrIjoi",
        "A3-AAAAA-",
    ],
)
@pytest.mark.parametrize("code", [True, False])
def test_no_shape_takes_long(text: str, code: bool) -> None:
    whole = text * (300_000 // len(text))
    assert len(masked(whole, code=code)[0]) == len(whole)


@pytest.mark.parametrize("name", ["api_\u212aey", "auth-to\u212aen", "İ access \u212aEY", "İ TO\u212aEN"])
def test_a_name_in_letters_that_are_the_same_in_lower_case_is_one(name: str) -> None:
    assert masked(f"{name.replace(' ', '_')} = 'hunter2hunter2'", code=True)[1] == 1


def _signs(parsed: Iterable[Any], quoted: str) -> Iterator[str]:
    """Yield the ASCII signs that a parsed expression may take, without what it only looks at."""
    for kind, value in parsed:
        if str(kind) == "LITERAL" and chr(value) in quoted:
            yield chr(value)
        elif str(kind) == "IN":
            yield from (sign for sign in quoted if _takes(value, sign))
        elif str(kind) == "SUBPATTERN":
            yield from _signs(value[-1], quoted)
        elif str(kind) == "BRANCH":
            yield from chain.from_iterable(_signs(branch, quoted) for branch in value[1])
        elif str(kind) in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            yield from _signs(value[2], quoted)
        else:
            assert str(kind) in ("LITERAL", "ASSERT", "ASSERT_NOT", "AT"), kind


def _takes(items: Iterable[Any], sign: str) -> bool:
    ranges = [value for kind, value in items if str(kind) == "RANGE"]
    literals = [value for kind, value in items if str(kind) == "LITERAL"]
    assert not any(str(kind) == "NEGATE" for kind, _ in items)
    return ord(sign) in literals or any(low <= ord(sign) <= high for low, high in ranges)


def test_shapes_that_are_looked_for_in_tokens_stand_in_one() -> None:
    """All but the further lines of a key: what one shape takes beside them is found in no token."""
    between = "".join(chr(code) for code in range(128) if _BETWEEN_TOKENS[code] == 32)
    for kind, marks, shape, spaced in SHAPES:
        if not spaced:
            signs = set(_signs(_parser.parse(shape), between))
            assert signs <= set("\\\r\n\t "), (kind, marks, signs)
