"""Ways around redaction that somebody might try: versions, spellings, unknown fields, digests."""

from __future__ import annotations

import msgpack
import pytest

from quorum.batch import encode_batch, first_headers, scan_batches
from quorum.varint import encode_uvarint
from statemachine.codec import encode_kafka, encode_record
from statemachine.payload import record_payload
from statemachine.producers import HEADER_FINGERPRINT
from statemachine.records import (
    AnsweredRequest,
    AnsweredRequestsRecord,
    ConfigRecord,
    ProducerStateRecord,
    UserScramCredentialRecord,
)
from statemachine.redacted_records import possible_secrets, redacted_batch, without_secrets
from statemachine.redaction import is_secret_config

SECRET = b"TOPVALUES"
CREDENTIAL = 11


def batch_of(value: bytes, headers: tuple[tuple[str, bytes], ...] = ()) -> bytes:
    return encode_batch([value], base_offset=0, epoch=1, timestamp=1, headers=headers)


def hidden_batch(data: bytes) -> bytes | None:
    return redacted_batch(data, scan_batches(data)[0])


@pytest.mark.parametrize(
    "value",
    [
        msgpack.packb((CREDENTIAL, 1, SECRET)),
        msgpack.packb((CREDENTIAL, 300, SECRET)),
        msgpack.packb((CREDENTIAL, 1, *range(20), SECRET)),
        b"\x93\xcc\x0b\x00" + msgpack.packb(SECRET),
        b"\x93\xd2\x00\x00\x00\x0b\x01" + msgpack.packb(SECRET),
        b"\xdd\x00\x00\x00\x03\x0b\x01" + msgpack.packb(SECRET),
        b"\x01\x0b\x01" + SECRET,
        b"\x01\x8b\x00\x01" + SECRET,
        b"\x01\x8b\x80\x80\x00\x01" + SECRET,
        b"\x01\x0b" + encode_uvarint(300) + SECRET,
    ],
    ids=["version 1", "version 300", "long array", "key of two bytes", "key of five bytes",
         "array of 32 bits", "frame, version 1", "frame, long key", "frame, longer key",
         "frame, version 300"],
)  # fmt: skip
def test_a_credential_is_hidden_however_it_is_written(value: bytes) -> None:
    """Another implementation may write another version, or numbers in more bytes than needed."""
    data = batch_of(value)
    assert possible_secrets(data)
    hidden = hidden_batch(data)
    assert hidden is not None
    assert SECRET not in hidden


def test_a_dump_hides_what_it_does_not_know_of_a_secret_record() -> None:
    """An unknown field of a credential may be one more key."""
    user = UserScramCredentialRecord("u", 1, b"salt", b"stored", b"server", 4096)
    user.extra = {"tags": ((7, SECRET),)}  # type: ignore[assignment]
    config = ConfigRecord(4, "1", "ssl.key.password", "x")
    config.extra = {"tags": ((7, SECRET),)}  # type: ignore[assignment]
    plain = ConfigRecord(4, "1", "retention.ms", "7")
    plain.extra = {"tags": ((7, b"kept"),)}  # type: ignore[assignment]
    shown = [str(record_payload(each, 0)) for each in (user, config, plain)]
    assert ["(unknown)" in each for each in shown] == [True, True, True]
    assert "VE9QVkFMVUVT" not in "".join(shown)
    assert "a2VwdA" in shown[2]
    assert "VE9QVkFMVUVT" in str(record_payload(user, 0, show_secrets=True))


def test_a_hidden_batch_has_no_digest_of_its_command() -> None:
    """With the digest, a reader could try passwords until it has the one that was set."""
    headers = (("principal", b"tls:admin"), (HEADER_FINGERPRINT, b"f" * 16))
    secret = ConfigRecord(4, "1", "ssl.key.password", "hunter2")
    native = batch_of(encode_record(secret), headers)
    hidden = hidden_batch(native)
    assert hidden is not None
    assert list(first_headers(hidden, scan_batches(hidden)[0])) == [headers[0]]
    kafka = hidden_batch(batch_of(encode_kafka(secret, headers=headers)))
    assert kafka is not None
    assert b"f" * 16 not in kafka
    assert b"tls:admin" in kafka
    assert hidden_batch(batch_of(encode_record(ConfigRecord(2, "t", "a", "b")), headers)) is None


def test_the_state_has_no_digests_of_commands() -> None:
    producer = ProducerStateRecord(7, 1, fingerprints=(b"f" * 16,), owner=b"o" * 16)
    shown = without_secrets(producer)
    assert isinstance(shown, ProducerStateRecord)
    assert (shown.fingerprints, shown.owner, shown.producer_id) == ((), b"o" * 16, 7)
    answered = AnsweredRequestsRecord(
        "w", (AnsweredRequest("r", 5, 1, b"a", b"f" * 16), AnsweredRequest("s", 6, 1))
    )
    other = without_secrets(answered)
    assert isinstance(other, AnsweredRequestsRecord)
    assert other.requests == (AnsweredRequest("r", 5, 1, b"a"), AnsweredRequest("s", 6, 1))


@pytest.mark.parametrize(
    "name",
    ["delegation.token.master.key", "rsm.config.azure.account.key", "x.api.key", "my.passphrase",
     "ldap.passwd", "rsm.config.storage.sas.token", "storage.aws.session.token",
     "oauth.access.token", "auth.token"],
)  # fmt: skip
def test_other_names_of_secrets(name: str) -> None:
    assert is_secret_config(name)
    assert possible_secrets(batch_of(encode_record(ConfigRecord(4, "1", name, "x"))))


@pytest.mark.parametrize(
    "name", ["delegation.token.max.lifetime.ms", "key.converter", "token.bucket.size"]
)
def test_names_that_only_look_alike(name: str) -> None:
    assert not is_secret_config(name)
