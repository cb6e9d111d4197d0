"""JSON Web Tokens: what is accepted, and that keys, times and algorithms are the node's choice."""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from quorate.config.security import SecurityConfig
from quorate.server.jwt_tokens import LEEWAY_S, JwtTokens, jwt_tokens
from quorate.services.tokens import Session
from quorum.errors import CommandError, ConfigError, ErrorCode
from statemachine.sections.security import SecurityImage

KEYS = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("one", "two")}
RSA = rsa.generate_private_key(65537, 2048)
PEM = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
NOW = 1_800_000_000.0
SECURITY = SecurityImage()
CLAIMS = {"iss": "https://login.test", "aud": "quorate", "sub": "alice", "exp": NOW + 600}


class Clock:
    """Both clocks of a verifier."""

    now = NOW


def jwk(key_id: str, key: Any = None, **changes: Any) -> dict[str, Any]:
    public = (key or KEYS[key_id]).public_key()
    maker = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    return {**json.loads(maker.to_jwk(public)), "kid": key_id, "use": "sig", **changes}


def write(path: Path, *keys: dict[str, Any]) -> None:
    new = path.with_suffix(".new")
    new.write_text(json.dumps({"keys": list(keys)}))
    new.replace(path)


def config(path: Path, **changes: Any) -> SecurityConfig:
    given = {"jwt_issuer": "https://login.test", "jwt_audience": "quorate", **changes}
    return SecurityConfig(mode="bound", jwt_jwks_file=path, **given)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "jwks.json"
    write(file, jwk("one", alg="ES256"))
    return file


def verifier(path: Path, **changes: Any) -> tuple[JwtTokens, Clock]:
    made, clock = jwt_tokens(config(path, **changes)), Clock()
    assert made is not None
    made.wall_s = made.now_s = lambda: clock.now
    return made, clock


def signed(key_id: str = "one", headers: Any = None, key: Any = None, **changes: Any) -> str:
    claims = {name: value for name, value in {**CLAIMS, **changes}.items() if value is not None}
    algorithm = "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"
    return jwt.encode(
        claims, key or KEYS[key_id], algorithm=algorithm, headers=headers or {"kid": key_id}
    )


def reason(tokens: JwtTokens, token: str) -> str:
    with pytest.raises(CommandError) as refused:
        tokens.session(token)
    assert refused.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    return str(refused.value)


@pytest.fixture(autouse=True)
def at_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyJWT asks the system for the time."""
    from datetime import datetime as real
    from datetime import tzinfo

    class Fixed(real):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Fixed:  # type: ignore[override]
            return cls.fromtimestamp(NOW, tz)

    monkeypatch.setattr("jwt.api_jwt.datetime", Fixed)


def test_a_token_names_its_user(path: Path) -> None:
    tokens, _ = verifier(path)
    session = tokens.session(signed())
    assert (session.name, session.audit_name) == ("alice", "jwt:alice")
    assert session.problem(SECURITY) == ""
    other, _ = verifier(path, jwt_principal_claim="email")
    assert other.session(signed(email="a@b.test")).name == "a@b.test"


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://other.test"},
        {"iss": None},
        {"aud": "other"},
        {"aud": None},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": "a\nb"},
        {"exp": None},
        {"exp": NOW - LEEWAY_S - 1},
        {"nbf": NOW + LEEWAY_S + 5},
    ],
)
def test_a_claim_that_is_wrong_or_missing_is_refused(path: Path, changes: Any) -> None:
    tokens, _ = verifier(path)
    reason(tokens, signed(**changes))


def unsigned(algorithm: str, secret: bytes = b"") -> str:
    """Return a token without a signature, or with one by a common secret."""
    parts = [{"alg": algorithm, "kid": "one", "typ": "JWT"}, CLAIMS]
    text = ".".join(encoded(json.dumps(part).encode()) for part in parts)
    mac = hmac.digest(secret, text.encode(), "sha256") if secret else b""
    return f"{text}.{encoded(mac)}"


def encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "HS256"])
def test_a_token_does_not_choose_its_algorithm(path: Path, algorithm: str) -> None:
    tokens, _ = verifier(path)
    reason(tokens, unsigned(algorithm))


@pytest.mark.parametrize(
    "header",
    [
        b"[" * 5000,
        b'{"a":' * 1000,
        b'{"alg": "ES256", "kid": ["one"]}',
        b'{"alg": "ES256", "kid": {}}',
        b'{"alg": ["ES256"], "kid": "one"}',
        b'{"alg": "ES256", "kid": "one", "crit": ["b64"], "b64": false}',
        b"\xff\xfe{}",
        b"null",
        b"1e999",
    ],
)
def test_a_header_made_to_break_the_parser_is_refused(path: Path, header: bytes) -> None:
    tokens, _ = verifier(path)
    reason(tokens, f"{encoded(header)}.{encoded(json.dumps(CLAIMS).encode())}.{encoded(b'x' * 64)}")


@pytest.mark.parametrize(
    "value",
    [float("inf"), float("nan"), 10**400, "soon", [1]],
    ids=["infinite", "no number", "huge", "text", "list"],
)
@pytest.mark.parametrize("claim", ["exp", "nbf", "iat"])
def test_a_time_that_is_none_is_refused(path: Path, claim: str, value: Any) -> None:
    """Signed by a login service that is broken, so that the verification gets that far."""
    tokens, _ = verifier(path)
    reason(tokens, signed(**{claim: value}))


def test_a_public_key_is_no_common_secret(path: Path) -> None:
    """The oldest attack: an HMAC with the public key, which everybody has."""
    write(path, jwk("one", RSA, alg="RS256"))
    tokens, _ = verifier(path)
    for secret in (json.dumps(jwk("one", RSA)).encode(), PEM):
        reason(tokens, unsigned("HS256", secret))
    assert tokens.session(signed(key=RSA)).name == "alice"


@pytest.mark.parametrize("name", ["none", "HS256", "XY"])
def test_only_algorithms_with_public_keys_can_be_configured(path: Path, name: str) -> None:
    from quorate.config.sections import ListenerConfig, TlsConfig

    problems = config(path, jwt_algorithms=(name,)).problems(ListenerConfig(), TlsConfig())
    assert any(f"security.jwt_algorithms: {name}" in each for each in problems)


def test_issuer_and_audience_must_be_configured(path: Path) -> None:
    from quorate.config.sections import ListenerConfig, TlsConfig

    made = SecurityConfig(mode="bound", jwt_jwks_file=path)
    problems = " ".join(made.problems(ListenerConfig(), TlsConfig()))
    assert "security.jwt_issuer must be set" in problems
    assert "security.jwt_audience must be set" in problems
    other = SecurityConfig(mode="tls", jwt_jwks_file=path)
    assert "needs security.mode bound" in " ".join(
        other.problems(ListenerConfig(), TlsConfig(Path("c"), Path("k"), Path("a")))
    )


def test_keys_rotate_while_the_node_runs(path: Path) -> None:
    tokens, clock = verifier(path)
    session = tokens.session(signed())
    assert "does not know" in reason(tokens, signed("two"))
    write(path, jwk("one", alg="ES256"), jwk("two", alg="ES256"))
    clock.now += 2
    assert tokens.session(signed("two")).name == "alice"
    assert session.problem(SECURITY) == ""
    write(path, jwk("two", alg="ES256"))
    clock.now += 2
    assert "no longer accepted" in session.problem(SECURITY)
    assert "does not know" in reason(tokens, signed())


def test_an_unusable_file_keeps_the_keys_and_is_reported_once(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tokens, clock = verifier(path)
    path.write_text("{")
    for _ in range(3):
        clock.now += 2
        assert tokens.session(signed()).name == "alice"
    assert caplog.text.count("event=jwks_unusable") == 1
    path.unlink()
    clock.now += 2
    assert tokens.session(signed()).name == "alice"


OF_ANOTHER_KIND = {"kty": "oct", "k": "AAAA", "alg": "HS256"}


@pytest.mark.parametrize("keys", [[], [OF_ANOTHER_KIND]])
def test_a_file_without_a_usable_key_ends_all_tokens(
    path: Path, keys: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    """That is how the only key is withdrawn. A key that comes back counts again."""
    tokens, clock = verifier(path)
    session = tokens.session(signed())
    write(path, *keys)
    clock.now += 2
    assert "no longer accepted" in session.problem(SECURITY)
    assert "does not know" in reason(tokens, signed())
    assert caplog.text.count("event=jwks_without_keys") == 1
    write(path, jwk("one", alg="ES256"))
    clock.now += 2
    assert tokens.session(signed()).name == "alice"


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"keys": {}}', '{"keys": [', '{"keys": 1}'])
def test_a_file_that_is_no_jwks_keeps_the_keys(
    path: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    tokens, clock = verifier(path)
    session = tokens.session(signed())
    path.write_text(content)
    clock.now += 2
    assert session.problem(SECURITY) == ""
    assert tokens.session(signed()).name == "alice"
    assert caplog.text.count("event=jwks_unusable") == 1


def test_a_session_ends_with_its_token(path: Path) -> None:
    tokens, clock = verifier(path)
    session: Session = tokens.session(signed())
    clock.now = CLAIMS["exp"] + LEEWAY_S - 1  # type: ignore[operator,assignment]
    assert session.problem(SECURITY) == ""
    clock.now += 1
    assert "expired" in session.problem(SECURITY)


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"keys": []}', '{"keys": [{"kty": "oct", "k": "AAAA", "alg": "HS256"}]}'],
)
def test_a_node_does_not_start_without_a_usable_key(tmp_path: Path, content: str) -> None:
    file = tmp_path / "jwks.json"
    file.write_text(content)
    with pytest.raises(ConfigError, match="jwt_jwks_file"):
        jwt_tokens(config(file))
    with pytest.raises(ConfigError, match="jwt_jwks_file"):
        jwt_tokens(config(tmp_path / "none"))


@pytest.mark.parametrize("content", ["[]", "{}", '{"keys": "x"}', '{"keys": ["x"]}', "1"])
def test_a_file_that_is_no_jwks_is_named_so(tmp_path: Path, content: str) -> None:
    file = tmp_path / "jwks.json"
    file.write_text(content)
    with pytest.raises(ConfigError, match=r"jwks\.json: it is no JWKS: an object with a list"):
        jwt_tokens(config(file))
    file.write_text("{")
    with pytest.raises(ConfigError, match=r"jwks\.json: it is not JSON: "):
        jwt_tokens(config(file))


@pytest.mark.parametrize("token", ["", "a.b.c", "x", "a.b", "é.é.é"])
def test_what_is_no_token_is_refused(path: Path, token: str) -> None:
    tokens, _ = verifier(path)
    reason(tokens, token)


def test_a_key_for_encryption_is_not_used(path: Path) -> None:
    write(path, jwk("one", alg="ES256", use="enc"), jwk("two", alg="ES256"))
    tokens, _ = verifier(path)
    assert "does not know" in reason(tokens, signed())
