"""Secrets are hidden from people: in dumps, exports and descriptions of configurations."""

from __future__ import annotations

import pytest

from audit.typed_rows import config_effect
from quorate.services.describe import add_configs
from quorum.v1 import metadata_pb2
from statemachine.payload import record_payload
from statemachine.records import ConfigRecord, UserScramCredentialRecord
from statemachine.redaction import REDACTED, is_secret_config
from tests.support.image_builder import replayed

SECRET = "listener.name.internal.ssl.key.password"


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("ssl.key.password", True), ("ssl.keystore.key", True), (SECRET, True),
        ("sasl.jaas.config", True), ("delegation.token.secret.key", True),
        ("password.encoder.secret", True), ("SSL.Truststore.PASSWORD", True),
        ("retention.ms", False), ("ssl.keystore.location", False), ("cleanup.policy", False),
        ("min.insync.replicas", False),
    ],
)  # fmt: skip
def test_which_configurations_are_secrets(name: str, is_secret: bool) -> None:
    assert is_secret_config(name) is is_secret


def test_a_dump_hides_secrets_unless_they_are_asked_for() -> None:
    record = ConfigRecord(4, "1", SECRET, "hunter2")
    assert record_payload(record, 0)["data"]["value"] == REDACTED  # type: ignore[index]
    assert record_payload(record, 0, show_secrets=True)["data"]["value"] == "hunter2"  # type: ignore[index]
    removed = record_payload(ConfigRecord(4, "1", SECRET, None), 0)
    assert removed["data"]["value"] is None  # type: ignore[index]
    plain = record_payload(ConfigRecord(2, "t", "retention.ms", "7"), 0)
    assert plain["data"]["value"] == "7"  # type: ignore[index]
    user = UserScramCredentialRecord("u", 1, b"salt", b"stored", b"server", 4096)
    assert "c3RvcmVk" not in str(record_payload(user, 0))


def test_an_export_hides_the_old_value_too() -> None:
    assert config_effect((4, "1"), SECRET, "new", "old").values[-2:] == (REDACTED, REDACTED)
    assert config_effect((4, "1"), SECRET, None, "old").values[-2:] == (None, REDACTED)
    assert config_effect((2, "t"), "retention.ms", "2", "1").values[-2:] == ("2", "1")


def test_a_description_leaves_secrets_out() -> None:
    image = replayed(
        ConfigRecord(4, "", SECRET, "hunter2"), ConfigRecord(4, "", "log.retention.ms", "7")
    )
    resource = metadata_pb2.ConfigResource(type="CONFIG_RESOURCE_TYPE_BROKER", name="")
    described = metadata_pb2.ResourceConfigs(resource=resource)
    add_configs(image, described, include_defaults=False)
    found = {each.name: each for each in described.entries}
    assert found[SECRET].is_sensitive
    assert not found[SECRET].HasField("value")
    assert (found["log.retention.ms"].value, found["log.retention.ms"].is_sensitive) == ("7", False)
