"""What secrets look like, as data: one row for each kind of token, and one for each way in which keys go on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from metatree._util._secret_names import compiled


class SecretShape(NamedTuple):
    kind: str
    marks: tuple[str, ...]
    """One of these is in every text that has such a secret."""
    shape: str
    """The expression; see `compiled`."""
    spaced: bool
    """Whether blanks, quotes or other signs may stand in it, so that it may not be in one of the `long_tokens`."""


def _shape(kind: str, marks: str, shape: str, *, inside: bool = False, spaced: bool = False) -> SecretShape:
    """Return a shape that no ASCII letter or digit stands before, unless it may be inside of a word.

    Not a boundary as `\\b` has it: between two Chinese letters there is none, and a key may stand there.
    """
    before = "" if inside else "(?<![A-Za-z0-9])"
    return SecretShape(kind, tuple(marks.split()), before + f"(?:{shape})", spaced)


_LEAST_LENGTH: Final = 15
"""No token that a shape takes is shorter, with what it begins with."""
_BETWEEN_TOKENS: Final = bytes(
    code if code > 127 or chr(code).isalnum() or chr(code) in "_-.=:%+/~|" else 32 for code in range(256)
)


def long_tokens(text: str) -> str:
    """Return the tokens of a text that are long enough for a key, each once: a small part of what is to be searched.

    Some hundred marks are looked for in each text, and code says the same words again and again.
    """
    tokens = text.encode("utf-8", "surrogatepass").translate(_BETWEEN_TOKENS).split()
    long = {token for token in tokens if len(token) >= _LEAST_LENGTH}
    return b" ".join(long).decode("utf-8", "replace")


_DIGIT: Final = re.compile(r"\d")
_LETTERS: Final = re.compile(r"[A-Za-z]{20}")


def mixed_tokens(tokens: str) -> str:
    """Return those of `long_tokens` that have a digit, or letters in a row: names of code have neither, mostly."""
    return " ".join(each for each in tokens.split(" ") if _DIGIT.search(each) or _LETTERS.search(each))


SHAPES: Final = (
    _shape(
        "an AWS access key",
        "AKIA ASIA ABIA ACCA A3T",
        r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[0-9A-Z]{16}(?![A-Za-z0-9])",
    ),
    _shape(
        "a GitHub token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        r"(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{40,255})",
    ),
    _shape("a Slack token", "xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,255}"),
    _shape("a Google key", "AIza", r"AIza[0-9A-Za-z_-]{35}"),
    _shape("a Stripe key", "k_live_ k_test_ k_prod_", r"[rs]k_(?:live|test|prod)_[0-9A-Za-z]{10,255}"),
    _shape("a package registry token", "npm_ pypi-", r"(?:npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,255})"),
    _shape("a key of a model provider", "sk-", r"sk-(?=[A-Za-z_-]{0,200}\d)[A-Za-z0-9_-]{20,255}"),
    _shape("a private key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{50,60}"),
    _shape(
        "a private key",  # as a text of base64, in settings of clusters, in one line or many: -----BEGIN … PRIVATE
        "LS0tLS1CRUdJTi",
        r"LS0tLS1CRUdJTi(?:BSU0EgUFJJVkFU|BQUklWQVRF|BFQyBQUklWQVRF|BPUEVOU1NI|BFTkNSWVBURUQg|BQR1AgUFJJVkFU|BEU0EgUFJJVkFU|BPcGVuVlBOIFN0"
        r"YXRpYyBrZX)[A-Za-z0-9+/=]{40,}+"
        r"(?:(?:\\r)?(?:\\n|\r?\n)[ \t]{0,40}[A-Za-z0-9+/]{4,}+={0,2}(?![^\s\"'\\]))*+",
        inside=True,
    ),
    _shape(  # three parts that are signed, or five that are encrypted; what is none is passed over as a whole
        "a JSON web token",
        "eyJ .ey .ew",
        r"(?P<value>(?:ey|ew[0ko])(?=[a-z_-]{0,99}[A-Z\d])[\w-]{10,}+(?:\.e[yw][\w-]{6,}+\.[\w-]{5,}+|\.[\w-]*+\.[\w-]{10,}+\.[\w-]{10,}+\.[\w-]{10,}+))"
        r"|e[yw][\w-]*+",
    ),
    _shape(  # the same once more in base64
        "a JSON web token",
        "ZXlK",
        r"ZXlK[A-Za-z0-9+/]{60,}+={0,2}",
    ),
    _shape(  # JWK, also without quotes, as YAML has it
        "a key in JSON",
        "kty",
        r"(?:d|p|q|dp|dq|qi|k|r|t)[\"'\\]{0,4}\s{0,9}:\s{0,9}[\"'\\]{0,4}(?P<value>[\w+/-]{16,}+={0,2})",
        spaced=True,
    ),
    _shape(  # of .NET, as JSON and as XML; D of an elliptic curve, X of DSA
        "a private key",
        "InverseQ Modulus KeyValue>",
        r"(?:D|P|Q|DP|DQ|InverseQ|X|PrivateKey)(?:[\"'\\]{1,4}\s{0,9}:\s{0,9}[\"'\\]{1,4}|>\s{0,99})(?P<value>[A-Za-z0-9+/]{16,}+"
        r"(?:\s{1,99}[A-Za-z0-9+/]{4,}+)*+={0,2})",
        spaced=True,
    ),
    _shape(  # in DER as base64, without the lines of PEM around it
        "a private key",
        "IBADANBgkqhkiG9w0B IBAAKCA IBAAKB IBAAJB MBMGByqGSM49AgEGC AgEAMBAGByqGSM49 MHcCAQEEI MHQCAQEEI MIGkAgEBBD"
        " MIHcAgEBBEI MC4CAQAwBQYDK2VwBCIEI",
        r"(?:MII[A-Za-z0-9+/]{2,6}(?:IBADANBgkqhkiG9w0BAQEFAAS|IBAAK[BC]|IBAAJB)|M[EI][A-Za-z0-9+/]{1,4}AgEAMB[MA]GByqGSM49AgEG"
        r"|MH[cQ]CAQEEI|MIGkAgEBBD|MIHcAgEBBEI|MC4CAQAwBQYDK2VwBCIEI)[A-Za-z0-9+/]{20,}+"
        r"(?:(?:\\r)?(?:\\n|\r?\n)[ \t]{0,40}[A-Za-z0-9+/]{4,}+={0,2})*+={0,2}",
    ),
    _shape(
        "a private key",
        "xprv nsec1 RWRTY0Iy RWRCS",
        r"(?:[xyz]prv[A-Za-z0-9]{100,112}|nsec1[a-z0-9]{58}|RWRTY0Iy[A-Za-z0-9+/]{60,}+|RWRCS[A-Za-z0-9+/]{60,}+)",
    ),
    _shape(
        "a password or key",  # of registries, in the settings of Docker
        '"auths"',
        r"\"auth\"\s{0,9}:\s{0,9}\"(?P<value>[A-Za-z0-9+/]{12,}+={0,2})\"",
        spaced=True,
    ),
    _shape(
        "a key of a provider",
        "hooks.slack.com/",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/+-]{20,200}",
    ),
    _shape("a key of a provider", "/api/webhooks/", r"/api/webhooks/\d{15,25}/[\w-]{40,100}", inside=True),
    _shape(  # in addresses behind `bot`
        "a key of a provider", ":AA", r"(?:bot)?(?P<value>\d{8,12}:AA[\w-]{32,40})"
    ),
    _shape("a key of a provider", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,80}={0,2}"),
    _shape(
        "a key of a provider",
        " ".join(f"-us{digit}" for digit in range(1, 10)),
        r"[0-9a-f]{32}-us\d{1,2}(?![A-Za-z0-9])",
    ),
    _shape("a key of a provider", "Q~", r"[\w.~-]{3}\dQ~[\w.~-]{31,34}"),
    _shape(
        "a bearer token",
        "bearer Bearer BEARER",
        r"(?i:bearer)\s{1,5}(?P<value>(?=[^\s\d]{0,200}\d)[A-Za-z0-9_.~+/-]{16,2000}=*)",
        spaced=True,
    ),
    _shape(
        "a password or key",
        "uthorization UTHORIZATION",
        r"(?i:authorization)[\"'\\]{0,3}\s{0,3}[:=,]\s{0,3}[\"'\\]{0,3}[A-Za-z]{2,20}\s{1,3}"
        r"(?P<value>(?=[^\s\d]{0,200}\d)[A-Za-z0-9_.~+/-]{8,2000}=*)",
        spaced=True,
    ),
    _shape(
        "a password or key",
        "curl",
        r"curl(?=\s)[^\n]{0,300}?\s(?:-u|--user)[\s=]{1,3}[\"']?[^\s:\"'$]{1,60}:(?P<value>[^\s\"'\\]{3,200})",
        spaced=True,
    ),
    _shape(  # to the last `@` before the host; the `\` is that of JSON of PHP and of properties of Java
        "a password in an address",
        "://",
        r"://(?!/)[^\s/:\"'\\]{0,100}:(?P<value>[^\s/\"'\\]{3,5000})@",
        inside=True,
        spaced=True,
    ),
    _shape(
        "a password in an address",
        ":\\/\\/ \\://",
        r":(?:\\?/){2}[^\s/:\"'\\]{0,100}\\?:(?P<value>[^\s/\"'\\]{3,5000})@",
        inside=True,
        spaced=True,
    ),
    _shape(  # of a user of a domain, `CORP\\ann`
        "a password in an address",
        "\\",
        r"://[\w.-]{1,100}\\{1,2}[^\s/:@\"'\\]{1,100}:(?P<value>[^\s/@\"'\\]{3,5000})@",
        inside=True,
        spaced=True,
    ),
    _shape(  # one with `/` in it, which no port is before
        "a password in an address",
        "://",
        r"://[^\s/:@\"'\\]{1,100}:(?!\d{1,5}[/?#])(?P<value>[^\s/@\"'\\]{0,200}/[^\s@\"'\\:?&]{1,200})@(?=[\w.-]{1,253}(?:[:/?\s\"'\\]|\Z))",
        inside=True,
        spaced=True,
    ),
    _shape(
        "a password or key",
        "machine",
        r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
        r"(?:machine\s+\S{1,253}|default)(?=(?:\s+\S{1,200}){0,8}\s+login\s)"
        r"(?:\s+(?:account|login|port|protocol)\s+\S{1,200}){0,4}\s+password\s+(?!(?:machine|login|account|port|protocol)\s)"
        r"(?P<value>(?:(?![\"'`,;()\[\]{}<>=:|]\S{0,40}machine\s|\\[nrt]|[\"'`](?:[,\]}]|\s|\Z))\S){3,200})",
        inside=True,
        spaced=True,
    ),
    _shape("a key of a provider", "hf_ api_org_", r"(?:hf|api_org)_[A-Za-z]{34}(?![A-Za-z0-9])"),
    _shape("a key of a provider", "A3-", r"A3(?:-[A-Z0-9]{5,11}){5,6}(?![A-Za-z0-9])"),
    _shape("a key of a provider", "cmVmd", r"(?<![+/])cmVmd[A-Za-z0-9]{59}(?![A-Za-z0-9+/])"),
    _shape("a key of a provider", "4b1d", r"4b1d(?=[^A-Z]{0,37}[A-Z])[A-Za-z0-9]{38}(?![A-Za-z0-9])"),
    _shape("a key of a provider", "EAA", r"(?<![+/])EAA[A-Z](?:[A-Za-z0-9]{90,500}|[\w-]{60})(?![\w+/-])"),
    _shape("a key of a provider", "EAAA", r"(?<![+/])EAAA(?=[A-Za-z_-]{0,60}\d)[\w-]{22,60}(?![\w+/=-])"),
    _shape("a key of a provider", "eyJrIjoi", r"eyJrIjoi[A-Za-z0-9]{60,400}={0,3}"),
    _shape("a key of a provider", "_mmk", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    _shape(
        "a key of a provider",
        "| %",
        r"[|%](?<=\d{15}.)(?:7C)?(?P<value>(?=[A-Za-z_-]{0,40}\d)[\w-]{27,40}(?![\w-]))",
        inside=True,
    ),
    _shape(
        "a key of a provider",
        ".acc_ .acc-",
        r"(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[\w+/-]{30,120}={0,2}",
    ),
    _shape("a key of a provider", "pat. sat.", r"[ps]at\.[\w-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}"),
    _shape(
        "a key of a provider",
        ".office.com/webhook",
        r"webhook\.office\.com/webhook(?P<value>b?2?/[\w@-]{20,200}/IncomingWebhook/[\w/-]{20,200})",
        spaced=True,
    ),
    _shape(
        "a key of a provider",  # it has digits apart from each other
        "s.",
        r"s\.(?<![\w./-]s\.)(?=[A-Za-z]{0,22}\d[A-Za-z0-9]{0,22}[A-Za-z]\d)[A-Za-z0-9]{24}(?![\w.(-])",
        inside=True,
    ),
)


def shapes_of(text: str, tokens: str) -> Iterator[tuple[str, re.Pattern[str], bool]]:
    """Yield kind, expression and whether it is `spaced` of the shapes that a text may have, by their marks.

    Args:
        text: the text.
        tokens: its `long_tokens`.
    """
    for kind, marks, shape, spaced in SHAPES:
        looked = text if spaced else tokens
        for mark in marks:
            if mark in looked:
                expression = compiled(shape)
                # What stands in one token is found in the tokens, which are a sixth of a text of code.
                if spaced or expression.search(tokens):
                    yield kind, expression, spaced
                break


PROVIDERS: Final = {
    r"[A-Za-z0-9]{26,255}": (
        "hf_ api_org_ gsk_ r8_ lin_api_ lin_oauth_ ntn_ xai- pplx- sbp_ rubygems_ CLOJARS_ clojars_ dop_v1_ doo_v1_"
        " dor_v1_ shpat_ shpss_ shpca_ shppa_ sntryu_ pul- EZAK EZTK ATBB AKID oy2 sqp_ squ_ sqa_ jina_ NRAK-"
        " aio_ napi_ e2b_ pnu_ rdme_"
    ),
    r"[\w-]{20,255}": (
        "gldt- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct- GR1348941 glsa_ figd_"
        " GOCSPX- dckr_pat_ dckr_oat_ sq0csp- sq0atp- tskey- lsv2_ pcsk_ nvapi- CFPAT- HRKU- PMAK- sb_secret_"
        " nfp_ bkua_ tvly- xkeysib- shippo_live_ shippo_test_ rzp_live_ sgp_ FLWSECK LTAI xapp- NRII- NRJS-"
    ),
    r"[\w.=-]{24,255}": (
        "pscale_tkn_ pscale_oauth_ pscale_pw_ duffel_test_ duffel_live_ fio-u- tk-us- sha256~ fo1_ tfp_"
    ),
    r"[\w=.:%+/-]{32,20000}": (
        "SG. hvs. hvb. hvr. ya29. whsec_ sntrys_ ATATT3 ATCTT3 ABSK AKCp fm1_ fm2_ fm1a_ fm1r_ glc_ ops_eyJ dt0c01."
        " dp.pt. dp.st. dp.ct. dp.sa. xoxe. 1//0 sk.eyJ"
    ),
    r"[\w-]{20,300}(?:\.[0-9a-z.]{9,12})?": "glpat- glrt-",
    r"[A-Za-z0-9%+/]{40,120}=?": "sig=",
    r"[A-Za-z0-9%+/]{24,20000}={0,2}": "bedrock-api-key-",
    r"[0-9a-fA-F]{32}(?![A-Za-z0-9])": "dapi key- SK",
    r"[A-Za-z0-9]{14}\.[0-9a-f]{64}": "pat",
    r"[A-Za-z0-9]{6,10}_[A-Za-z0-9]{20,30}": "re_",
    r"[0-9a-f]{8}-[0-9a-f-]{27,60}": "pat-na1- pat-eu1- sdk- access-production- access-sandbox- access-development-",
    r"[A-Za-z0-9]{32}(?![A-Za-z0-9])": "p8e- ico- _gitlab_session=",
    r"[A-Za-z0-9]{16}(?![A-Za-z0-9])": "sm_aat_ sm_pat_ sm_sat_",
    r"[A-Z0-9]{26}(?![A-Za-z0-9])": "API-",
    r"[0-9a-f]{24}-[0-9a-f]{100,300}": "v1.0-",
    r"[0-9a-f]{64}": "s-s4t2ud- s-s4t2af-",
    r"[a-h0-9]{12,32}(?:-X)?": "FLWSECK_TEST-",
}
"""How keys of providers go on behind what they begin with; each is of `mixed_tokens`."""
_MIXED: Final = r"[A-Za-z_=.:%+/-]{0,100}\d|(?=[A-Za-z]{20})[a-z]{0,20}[A-Z]{1,20}[a-z]{1,20}[A-Z]"


def keys_of_provider(text: str, begin: str, body: str) -> Iterator[re.Match[str]]:
    shape, at = _provider(begin, body), text.find(begin)
    while at >= 0:
        if match := shape.match(text, at):
            yield match
        # What follows may begin in the end of a match: of `sha256~…=sha256~…` the first one takes `=sha256`.
        at = text.find(begin, max(at, match.end() - len(begin)) + 1 if match else at + 1)


@cache
def _provider(begin: str, body: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9]){re.escape(begin)}(?={_MIXED}){body}")
