"""Tokens that look random, behind a name that says secret or names a provider of keys.

One rule for what has no shape of its own: 16 letters and digits or more, mixed as words and numbers are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TOKEN = re.compile(r"(?<![A-Za-z0-9_+/.~-])[A-Za-z0-9_+/.~-]{15,}+={0,3}")
_QUOTED_TOKEN = re.compile(r"(?<=[\"'`>])" + _TOKEN.pattern)
"""As code has them: most tokens of code are names, which need not be looked at one by one."""
_REST = re.compile(r"[A-Za-z0-9_+/.~=-]*")
_PIECES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
"""What a reader takes for one word or number."""
_PARTS = re.compile(r"[A-Za-z0-9]+")
_MOST_PIECES: Final = 10_000
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HEX = re.compile(r"[0-9a-fA-F]+")
_TWO_DIGITS = re.compile(r"\d[^\d]*\d")
_BACKWARDS = re.compile(r"[\w.-]{1,60}(?:[ \t][\w.-]{1,30}){0,2}")
"""A name, from its last letter to its first."""
_BEFORE: Final = 100
_SIGNS: Final = ("=", ":", ">", "<-", ",", "|")
_QUOTES: Final = "\"'`"
_SECRET_WORDS: Final = _words(
    """
    access apikey auth bearer cookie cred credential credentials creds dsn key keys
    login pass passphrase passwd password pat pepper psk pwd salt secret secrets token
    tokens webhook
    """
)
_PROVIDERS: Final = _words(
    """
    adafruit adobe airtable algolia alibaba aliyun amplitude anthropic asana atlassian auth0 aws azure
    beamer bitbucket bittrex braintree brevo browserstack bugsnag buildkite circleci clearbit cloudflare
    cloudinary codeclimate codecov cohere coinbase confluence confluent contentful coveralls datadog
    deepgram deepl deepseek digitalocean discord dockerhub doppler droneci dropbox dynatrace elastic
    elevenlabs etsy facebook fastly figma finicity finnhub firebase flickr fontawesome foursquare
    freshbooks fullstory gemini github gitlab gitter gocardless grafana groq heroku hubspot huggingface
    infura instagram intercom jenkins jfrog jira kraken kucoin launchdarkly line linear linkedin lob
    logzio looker mailchimp mailgun mailjet mandrill mapbox mapquest mattermost meraki messagebird
    mistral mixpanel netlify newrelic newyorktimes ngrok notion nytimes okta openai opsgenie pagerduty
    paypal percy pinecone pingdom plaid postmark privateai pusher rapidapi readme recaptcha replicate
    rollbar sauce scaleway segment sendbird sendgrid sendinblue sentry shodan shopify slack snyk sonar
    sourcegraph spotify square squarespace stripe sumo sumologic supabase telegram travis travisci
    trello twilio twitch twitter typeform unsplash vercel virustotal vonage wakatime weather wistia
    yandex youtube zapier zendesk zoom
    """
)
_LONG_PROVIDERS: Final = re.compile("|".join(sorted(name for name in _PROVIDERS if len(name) > 6)))
_NO_SECRET: Final = _words(
    """
    blake2 branch cache checksum commit crc csrf digest endpoint etag file files fingerprint foreign
    group guid hash hashes host id ids image img integrity length md5 model name names nonce path paths
    prefix pub public ref rev revision sha sha1 sha224 sha256 sha384 sha512 size sort tag test type uri
    url urls uuid version versions
    """
)
"""Words of a name whose value is none, whatever else the name says."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_LEAST_LENGTH: Final = 15
_SHARES: Final = ((20, 0.36), (32, 0.3), (_MOST_PIECES, 0.25))
"""How many changes a letter has at least in a token of fewer letters than that."""
_LEAST_SHARE: Final = 0.12
"""The same where the name says both who gave it and that it is secret."""


def looks_random(token: str, *, named: bool = False) -> bool:
    """Whether a token has more changes between letters, capitals and digits than words and numbers have.

    Args:
        token: the token.
        named: whether its name says who gave it and that it is secret, so that a few changes do.

    Example:
        >>> [looks_random(text) for text in ("f3a9c71e04bd58d2a6", "getUserByName2Version", "2024-01-02T03-04-05")]
        [True, False, False]
    """
    said = token[:_MOST_PIECES]
    pieces = _PIECES.findall(said)
    letters = sum(map(len, pieces))
    least = next((share for length, share in _SHARES if letters < length), _SHARES[-1][1])
    changes = len(pieces) - len(_PARTS.findall(said)) + 1
    if letters < _LEAST_LENGTH or changes < letters * (_LEAST_SHARE if named else least):
        return False
    digits = sum(map(str.isdigit, said))
    return 1 < digits < letters - 1 and len({char for char in said if char.isalnum()}) > 7


def has_random(tokens: str) -> bool:
    """Whether one of the long tokens of a text with digits in them may be such; hardly any text of code has one."""
    return any(_may_be_random(match[0]) for match in _TOKEN.finditer(tokens))


def _may_be_random(token: str) -> bool:
    return _TWO_DIGITS.search(token) is not None and looks_random(token, named=True)


def random_tokens(text: str, *, code: bool) -> Iterator[tuple[int, int]]:
    """Yield where such tokens stand, from start to end.

    Args:
        text: the text.
        code: whether a token counts in quotes alone.
    """
    end = 0
    for match in (_QUOTED_TOKEN if code else _TOKEN).finditer(text):
        # One that lies in the rest of another is in its span already.
        if match.start() >= end and _may_be_random(match[0]) and _is_named(text, match, code=code):
            end = _REST.match(text, match.end()).end()  # type: ignore[union-attr]  # of nothing at least
            yield match.start(), end


def _is_named(text: str, token: re.Match[str], *, code: bool) -> bool:
    head = text[max(0, token.start() - _BEFORE) : token.start()]
    quoted = head[-1:] in _QUOTES and bool(head)
    if code and not quoted and not head.endswith(">"):
        return False
    before = head.rstrip("\"'`*( \t\\")
    if not before.endswith(_SIGNS):
        return False
    sign, named = before[-1], before.rstrip("=:>,|?+<- \t*")
    bare = named.rstrip("\"'`*])")
    if sign == "," and (bare == named or not quoted):  # a list, and no pair of a name and a value
        return False
    name = _BACKWARDS.match(bare[::-1])
    return name is not None and _says_secret(name[0][::-1], token[0])


def _says_secret(name: str, value: str) -> bool:
    last = re.split(r"[.:]", name.strip("."))[-1]
    words = [word.lower() for word in _WORD.findall(last)]
    plain = [word for word in words if not word.isdigit()]
    if not plain or not _NO_SECRET.isdisjoint(words):
        return False
    joined = "".join(words)
    is_provider = not _PROVIDERS.isdisjoint(plain) or _LONG_PROVIDERS.search(joined) is not None
    says_so = not _SECRET_WORDS.isdisjoint(plain) or joined.endswith(("apikey", "token", "secret"))
    if not (is_provider or says_so):
        return False
    if says_so and is_provider:
        return True
    if not looks_random(value):
        return False
    # One word alone, `key` or the name of a provider, stands before hashes and ids, too.
    named = says_so and len(plain) > 1
    return named or (not _UUID.fullmatch(value) and (len(value) not in (40, 64) or not _HEX.fullmatch(value)))
