"""SCRAM: the vectors of RFC 5802 and RFC 7677, and what each side refuses."""

from __future__ import annotations

from base64 import b64decode, b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISMS,
    MESSAGE_BYTES_MAX,
    SHA_256,
    SHA_512,
    ClientExchange,
    Mechanism,
    ScramError,
    ServerExchange,
    credential_of,
)

SHA_1 = Mechanism("SCRAM-SHA-1", 0, "sha1")
"""Of RFC 5802 only: we serve no SHA-1."""
VECTORS = {
    "RFC 5802, section 5": (
        SHA_1,
        "fyko+d2lbbFgONRv9qkxdawL",
        "3rfcNHYJY1ZVvWVs7j",
        "QSXCR+Q6sek8bf92",
        "v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
        "rmF9pqV8S7suAoZWja4dJRkFsKQ=",
    ),
    "RFC 7677, section 3": (
        SHA_256,
        "rOprNGfwEbeRWgbNEkqO",
        "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
        "W22ZaJ0SNY7soEsUEjb6gQ==",
        "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    ),
}
NONCE, MORE, SALT = "client-nonce", "server-nonce", b"s" * 32


@pytest.mark.parametrize("source", VECTORS)
def test_the_published_exchange_byte_by_byte(source: str) -> None:
    mechanism, nonce, more, salt, proof, signature = VECTORS[source]
    client = ClientExchange(mechanism, "user", "pencil", nonce)
    assert client.first() == f"n,,n=user,r={nonce}".encode()
    server = ServerExchange(mechanism, client.first(), more)
    assert server.name == "user"
    credential = credential_of(mechanism, "pencil", b64decode(salt), 4096)
    challenge = server.challenge(credential.salt, credential.iterations)
    assert challenge == f"r={nonce}{more},s={salt},i=4096".encode()
    final = client.final(challenge)
    assert final == f"c=biws,r={nonce}{more},p={proof}".encode()
    answer = server.verify(final, credential)
    assert answer == f"v={signature}".encode()
    client.verify(answer)


def test_only_the_mechanisms_of_kafka_are_served() -> None:
    assert {name: each.number for name, each in MECHANISMS.items()} == {
        "SCRAM-SHA-256": 1,
        "SCRAM-SHA-512": 2,
    }
    assert (ITERATIONS_MIN, ITERATIONS_MAX) == (4096, 16384)
    assert (SHA_256.key_bytes, SHA_512.key_bytes) == (32, 64)


@given(st.text(min_size=1, max_size=40), st.text(min_size=1, max_size=40), st.booleans())
def test_any_name_and_password_pass_and_another_password_does_not(
    name: str, password: str, is_wrong: bool
) -> None:
    """Commas and equals signs are escaped. 1 iteration would do, the client asks for 4096."""
    client = ClientExchange(SHA_512, name, password + ("!" if is_wrong else ""), NONCE)
    server = ServerExchange(SHA_512, client.first(), MORE)
    assert server.name == name
    credential = credential_of(SHA_512, password, SALT)
    final = client.final(server.challenge(SALT, 4096))
    if is_wrong:
        with pytest.raises(ScramError):
            server.verify(final, credential)
        return
    client.verify(server.verify(final, credential))


def exchange() -> tuple[ClientExchange, ServerExchange, bytes]:
    client = ClientExchange(SHA_256, "user", "pencil", NONCE)
    server = ServerExchange(SHA_256, client.first(), MORE)
    return client, server, server.challenge(SALT, 4096)


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n,,",
        b"n,,n=user",
        b"n,,r=abc,n=user",
        b"n,,n=,r=abc",
        b"n,,n=user,r=",
        b"p=tls-unique,,n=user,r=abc",
        b"n,a=other,n=user,r=abc",
        b"n,,m=ext,n=user,r=abc",
        b"n,,n=a=2c,r=abc",
        b"n,,n=a=,r=abc",
        b"n,,n=user,r=abc,zz",
        b"n,,n=\xff,r=abc",
        b"n,,n=" + b"a" * 1025 + b",r=abc",
        b"n,,n=user,r=" + b"r" * 513,
        b"n,,n=user,r=" + b"r" * MESSAGE_BYTES_MAX,
    ],
)
def test_a_server_refuses_a_first_message(first: bytes) -> None:
    with pytest.raises(ScramError):
        ServerExchange(SHA_256, first, MORE)


def test_a_user_may_name_itself_as_the_one_it_acts_for_and_use_extensions() -> None:
    assert ServerExchange(SHA_256, b"y,a=us=2Cer,n=us=2Cer,r=abc,t=1", MORE).name == "us,er"


@pytest.mark.parametrize(
    "change",
    [
        (b"r=client", b"r=Client"),
        (b"c=biws", b"c=eSws"),
        (b",p=", b",q="),
        (b"p=", b"p=AAAA"),
        (b"p=", b"p=*"),
        (b"c=biws,", b"c=biws,m=1,"),
    ],
)
def test_a_server_refuses_a_final_message(change: tuple[bytes, bytes]) -> None:
    client, server, challenge = exchange()
    final = client.final(challenge)
    with pytest.raises(ScramError):
        server.verify(final.replace(*change), credential_of(SHA_256, "pencil", SALT))
    server.verify(final, credential_of(SHA_256, "pencil", SALT))


def test_what_a_server_stores_does_not_log_in() -> None:
    """A proof made from the stored key in place of the client's key is refused."""
    client, server, challenge = exchange()
    client.final(challenge)
    credential = credential_of(SHA_256, "pencil", SALT)
    forged = b"c=biws,r=" + f"{NONCE}{MORE}".encode() + b",p=" + b64encode(credential.stored_key)
    with pytest.raises(ScramError):
        server.verify(forged, credential)


@pytest.mark.parametrize(
    "challenge",
    [
        f"r={NONCE},s=AAAA,i=4096",
        f"r=other{MORE},s=AAAA,i=4096",
        f"r={NONCE}{MORE},s=AAAA,i={ITERATIONS_MIN - 1}",
        f"r={NONCE}{MORE},s=AAAA,i={ITERATIONS_MAX + 1}",
        f"r={NONCE}{MORE},s=AAAA,i=-1",
        f"r={NONCE}{MORE},s=AAAA,i=" + "9" * 5000,
        f"r={NONCE}{MORE},s=?,i=4096",
        f"r={NONCE}{MORE},i=4096,s=AAAA",
        f"m=x,r={NONCE}{MORE},s=AAAA,i=4096",
    ],
)
def test_a_client_refuses_a_challenge(challenge: str) -> None:
    """A server that asks for few iterations would get a password that is cheap to guess."""
    client, _, _ = exchange()
    with pytest.raises(ScramError):
        client.final(challenge.encode())


@pytest.mark.parametrize("answer", [b"v=AAAA", b"e=invalid-proof", b"", b"v="])
def test_a_client_refuses_a_server_without_the_credential(answer: bytes) -> None:
    client, _, challenge = exchange()
    client.final(challenge)
    with pytest.raises(ScramError):
        client.verify(answer)


def test_a_client_does_not_trust_an_empty_signature_before_its_proof() -> None:
    client, _, _ = exchange()
    with pytest.raises(ScramError):
        client.verify(b"v=")
