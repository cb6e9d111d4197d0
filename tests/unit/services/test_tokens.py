"""Bearer tokens of one process: how long they are valid, and what is none."""

from __future__ import annotations

from typing import Any

import pytest
from immutables import Map

from quorate.services.tokens import TOKENS_KEPT_MAX, Tokens
from quorum.errors import CommandError, ErrorCode
from statemachine.records import UserScramCredentialRecord
from statemachine.sections.security import SecurityImage

RECORD = UserScramCredentialRecord("u", 1, b"s" * 32, b"k" * 32, b"v" * 32, 4096)
SECURITY = SecurityImage(scram=Map({("u", 1): RECORD}))


def session_of(tokens: Tokens, text: str, security: SecurityImage = SECURITY) -> Any:
    return tokens.session([("authorization", text)], security)


def reason(tokens: Tokens, text: str, security: SecurityImage = SECURITY) -> str:
    with pytest.raises(CommandError) as refused:
        session_of(tokens, text, security)
    assert refused.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    return str(refused.value)


def test_a_token_is_valid_for_its_lifetime_at_one_process() -> None:
    now = 1000.0
    tokens = Tokens(60.0, lambda: now)
    text = f"Bearer {tokens.give(RECORD)}"
    assert session_of(tokens, text).name == "u"
    assert session_of(tokens, text.replace("Bearer", "bearer")).audit_name == "scram:u"
    assert tokens.session([("other", "x")], SECURITY) is None
    assert "restarted" in reason(Tokens(60.0, lambda: now), text)
    now = 1059.9
    assert session_of(tokens, text).name == "u"
    now = 1060.0
    assert "expired" in reason(tokens, text)
    assert "expired" in reason(tokens, text)


@pytest.mark.parametrize(
    "text",
    ["", "Bearer", "Basic abc", "Bearer quorate.", "Bearer quorate.!!!", "Bearer quorate.AAAA",
     "Bearer other", "Bearer a.b.c", "Bearer " + "x" * 9000],
)  # fmt: skip
def test_anything_else_is_no_token(text: str) -> None:
    reason(Tokens(60.0, lambda: 0.0), text)


def test_every_bit_of_a_token_counts_and_two_are_none() -> None:
    tokens = Tokens(60.0, lambda: 0.0)
    given = tokens.give(RECORD)
    for place in range(len("quorate."), len(given) - 1):
        changed = given[:place] + ("A" if given[place] != "A" else "B") + given[place + 1 :]
        assert "not of this node" in reason(tokens, f"Bearer {changed}")
    pair = [("authorization", f"Bearer {given}")] * 2
    with pytest.raises(CommandError):
        tokens.session(pair, SECURITY)


def test_the_tokens_remembered_are_bounded() -> None:
    now = 0.0
    tokens = Tokens(60.0, lambda: now)
    for number in range(TOKENS_KEPT_MAX + 5):
        now = number / 1000
        session_of(tokens, f"Bearer {tokens.give(RECORD)}")
        assert len(tokens._known) <= TOKENS_KEPT_MAX
