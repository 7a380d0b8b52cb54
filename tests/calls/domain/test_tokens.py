"""Bearer tokens."""

from __future__ import annotations

import hashlib

import pytest

from muniment_server.domain import tokens
from muniment_server.domain.ids import RandomIds, TenantNumber
from muniment_server.domain.tokens import Token, TokenKind
from tests.support.each import for_each

SECRET = bytes(range(32))
TOKEN = "mun_s_7_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8_138a3e96"
OLD_TOKEN = "mun_s_7_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
"""As version 0.1 made them."""


def test_a_token_names_its_kind_and_tenant_and_carries_256_bits():
    assert tokens.mint(TokenKind.SESSION, tenant=TenantNumber(7), secret=SECRET) == TOKEN
    assert len(RandomIds().new_secret()) * 8 == 256


def test_only_the_parts_of_a_token_that_are_looked_up_are_kept():
    assert tokens.parse(TOKEN) == Token(TokenKind.SESSION, TenantNumber(7), hashlib.sha256(TOKEN.encode()).digest())


def test_a_token_without_a_checksum_stays_valid():
    assert tokens.parse(OLD_TOKEN) == Token(
        TokenKind.SESSION, TenantNumber(7), hashlib.sha256(OLD_TOKEN.encode()).digest()
    )


@for_each("place", range(len(TOKEN)))
def test_a_token_with_a_wrong_character_is_refused_without_the_database(place):
    wrong = "0" if TOKEN[place] != "0" else "1"

    assert tokens.parse(TOKEN[:place] + wrong + TOKEN[place + 1 :]) is None


def test_a_host_key_parses_as_a_host_key():
    parsed = tokens.parse(tokens.mint(TokenKind.HOST, tenant=TenantNumber(2**63 - 1), secret=SECRET))

    assert parsed is not None
    assert (parsed.kind, parsed.tenant) == (TokenKind.HOST, 2**63 - 1)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", TOKEN[:-1], TOKEN + "A", TOKEN + "\n", " " + TOKEN, TOKEN.upper(), TOKEN.replace("_s_", "_x_"),
        TOKEN.replace("_7_", "_0_"), TOKEN.replace("_7_", "_07_"), TOKEN.replace("_7_", "_-7_"),
        TOKEN.replace("_7_", "__"), TOKEN.replace("_7_", "_٧_"), TOKEN.replace("_7_", f"_{2**63}_"),
        TOKEN.replace("_7_", "_" + "9" * 30 + "_"), TOKEN[:-1] + "=", TOKEN[:-1] + "+", "x" * 10_000,
        *(changed(OLD_TOKEN) for changed in (
            lambda token: token[:-1], lambda token: token + "A", lambda token: token + "_", str.upper,
            lambda token: token.replace("_7_", "_0_"), lambda token: token.replace("_7_", f"_{2**63}_"),
        )),
    ],
)  # fmt: skip
def test_a_malformed_token_is_refused(text):
    assert tokens.parse(text) is None


def test_every_bit_of_a_token_counts():
    """No other text has the hash that is looked up."""
    others = {tokens.digest(TOKEN[:place] + "~" + TOKEN[place + 1 :]) for place in range(len(TOKEN))}

    assert len(others | {tokens.digest(TOKEN)}) == len(TOKEN) + 1


def test_made_up_ids_are_random_uuids():
    """C16: version 4, for other versions tell a time."""
    made = {RandomIds().new_uuid() for _ in range(100)}

    assert {made_id.version for made_id in made} == {4}
    assert len(made) == 100
