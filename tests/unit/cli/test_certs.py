"""``quorate certs``: what is made works for TLS, belongs to its owner, and is never overwritten."""

from __future__ import annotations

import json
import ssl
import stat
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from quorate.cli import certs
from quorate.cli.main import main
from quorate.services.revoked_certificates import RevokedCertificates
from quorum.errors import ConfigError
from quorum.transport.security import TlsFiles, load_tls

NODE = "node-1.quorate.internal"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "certs"
    assert main(["certs", "init", "--dir", str(made), "--quiet"]) == 0
    return made


def asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    assert main([*arguments, "-o", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def issue(folder: Path, *arguments: str) -> int:
    return main(["certs", "issue", *arguments, "--dir", str(folder)])


def files(folder: Path, stem: str, *own_names: str) -> TlsFiles:
    return TlsFiles(folder / f"{stem}.pem", folder / f"{stem}.key", folder / "ca.pem", own_names)


def handshake(folder: Path, server: str, client: str, host: str) -> list[tuple[str, str]]:
    """Return the names that the server sees; both verify with the authority of the folder."""
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    dialling = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    serving.verify_mode = ssl.CERT_REQUIRED
    for context, stem in ((serving, server), (dialling, client)):
        context.load_cert_chain(folder / f"{stem}.pem", folder / f"{stem}.key")
        context.load_verify_locations(folder / "ca.pem")
        context.verify_flags |= ssl.VERIFY_X509_STRICT
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    left = dialling.wrap_bio(back, there, server_hostname=host)
    right = serving.wrap_bio(there, back, server_side=True)
    for _ in range(4):
        for side in (left, right):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return list((right.getpeercert() or {})["subjectAltName"])  # type: ignore[arg-type]


def test_a_node_takes_its_certificate_and_a_client_is_known_by_its_name(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert issue(folder, "voter", "1", "--host", "127.0.0.1", "--host", "localhost") == 0
    made = asked(capsys, "certs", "issue", "client", "app.example", "--dir", str(folder))
    assert (made["kind"], made["role"]) == ("CertificateIssued", "client")
    assert made["principal"] == "User:app.example"
    load_tls(files(folder, "voter-1", NODE))
    assert issue(folder, "voter", "2", "--host", "127.0.0.1") == 0
    with pytest.raises(ConfigError, match="no subject alternative name"):
        load_tls(files(folder, "voter-2", NODE))
    for host in (NODE, "127.0.0.1", "localhost"):
        assert handshake(folder, "voter-1", "app.example", host) == [("DNS", "app.example")]
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(folder, "voter-1", "app.example", "elsewhere")
    with pytest.raises(ssl.SSLError):
        handshake(folder, "app.example", "voter-1", "app.example")


def test_keys_belong_to_their_owner(folder: Path) -> None:
    assert issue(folder, "observer", "4", "--host", "h.example") == 0
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    keys = sorted(folder.glob("*.key"))
    assert [each.name for each in keys] == ["ca.key", "observer-4.key"]
    assert {stat.S_IMODE(each.stat().st_mode) for each in keys} == {0o600}


def test_a_renewed_certificate_has_the_same_key_and_names(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert issue(folder, "voter", "1", "--host", "127.0.0.1", "--days", "2") == 0
    path = folder / "voter-1.pem"
    old, key = x509.load_pem_x509_certificate(path.read_bytes()), path.with_suffix(".key")
    before = key.read_bytes()
    day_ms = 24 * 3600 * 1000
    later = int(old.not_valid_after_utc.timestamp() * 1000) + 5 * day_ms
    monkeypatch.setattr(certs, "_now_ms", lambda: later)
    assert main(["certs", "renew", "voter-1", "--dir", str(folder), "--days", "2"]) == 0
    new = x509.load_pem_x509_certificate(path.read_bytes())
    assert new.not_valid_before_utc > old.not_valid_after_utc
    assert (new.not_valid_after_utc - old.not_valid_after_utc).days == 7
    assert new.serial_number != old.serial_number
    assert (key.read_bytes(), new.public_key()) == (before, old.public_key())
    changed = {
        x509.AuthorityKeyIdentifier, x509.SubjectKeyIdentifier, x509.BasicConstraints,
        x509.KeyUsage, x509.SubjectAlternativeName, x509.ExtendedKeyUsage,
    }  # fmt: skip
    assert {type(each.value) for each in new.extensions} == changed
    assert list(new.extensions) == list(old.extensions)
    assert sorted(each.name for each in folder.glob(".*")) == []


def test_a_revocation_lists_every_certificate_of_the_name_and_of_no_other(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for node in ("3", "33"):
        assert issue(folder, "voter", node, "--host", f"n{node}") == 0
    stolen = [x509.load_pem_x509_certificate((folder / "voter-3.pem").read_bytes())]
    assert main(["certs", "renew", "voter-3", "--dir", str(folder)]) == 0
    stolen.append(x509.load_pem_x509_certificate((folder / "voter-3.pem").read_bytes()))
    key = (folder / "voter-3.key").read_bytes()
    made = asked(capsys, "certs", "revoke", "voter-3", "--dir", str(folder))
    assert (made["kind"], len(made["revoked"])) == ("CertificateRevoked", 2)
    assert made["principal"] == "User:node-3.quorate.internal"
    listed = RevokedCertificates(folder / "crl.pem", folder / "ca.pem")

    def is_revoked(certificate: x509.Certificate) -> bool:
        return listed.has(certificate.issuer.public_bytes(), certificate.serial_number)

    assert all(map(is_revoked, stolen))
    other = x509.load_pem_x509_certificate((folder / "voter-33.pem").read_bytes())
    assert not is_revoked(other)
    # The name is free for another key, and a second list has both holders.
    assert issue(folder, "voter", "3", "--host", "n3") == 0
    assert (folder / "voter-3.key").read_bytes() != key
    assert asked(capsys, "certs", "revoke", "voter-33", "--dir", str(folder))["revoked"] != []
    listed = RevokedCertificates(folder / "crl.pem", folder / "ca.pem")
    assert all(map(is_revoked, [*stolen, other]))
    fresh = x509.load_pem_x509_certificate((folder / "voter-3.pem").read_bytes())
    assert not is_revoked(fresh)
    assert [mode for mode in _modes(folder) if mode & 0o077] == []


def _modes(folder: Path) -> list[int]:
    return [stat.S_IMODE(each.stat().st_mode) for each in folder.rglob("*.key")]


def test_a_revocation_that_was_interrupted_is_completed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert issue(folder, "client", "app.example") == 0
    files = {each: (folder / each).read_bytes() for each in ("app.example.pem", "app.example.key")}
    assert main(["certs", "revoke", "app.example", "--dir", str(folder)]) == 0
    for name, content in files.items():
        (folder / name).write_bytes(content)
    assert asked(capsys, "certs", "revoke", "app.example", "--dir", str(folder))["revoked"] == []
    assert [each.name for each in folder.glob("app.example*")] == []
    assert len(list(folder.glob("former/app.example-*.pem"))) == 1


def test_a_list_of_another_authority_is_not_replaced(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    assert main(["certs", "init", "--dir", str(other)]) == 0
    for each in (folder, other):
        assert issue(each, "client", "app.example") == 0
    assert main(["certs", "revoke", "app.example", "--dir", str(other)]) == 0
    foreign = (other / "crl.pem").read_bytes()
    for content, text in ((foreign, "signed by another authority"), (b"-", "no PEM list")):
        (folder / "crl.pem").write_bytes(content)
        capsys.readouterr()
        assert main(["certs", "revoke", "app.example", "--dir", str(folder)]) == 4
        assert text in capsys.readouterr().err
        assert (folder / "crl.pem").read_bytes() == content
        assert (folder / "app.example.pem").exists()


def test_nothing_is_overwritten(folder: Path) -> None:
    assert issue(folder, "client", "app.example") == 0
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert issue(folder, "client", "app.example") == 5
    assert main(["certs", "init", "--dir", str(folder)]) == 5
    (folder / "app.example.pem").unlink()
    del before[folder / "app.example.pem"]
    assert issue(folder, "client", "app.example") == 5
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("issue", "client", NODE), 2, "is the name of a node"),
        (("issue", "operator", "voter-3"), 2, "is taken by files"),
        (("issue", "client", "Observer-3"), 2, "is taken by files"),
        (("issue", "client", "ca"), 2, "is taken by files"),
        (("issue", "client", "crl"), 2, "is taken by files"),
        (("issue", "client", "CRL"), 2, "is taken by files"),
        (("issue", "operator", "authority"), 2, "is taken by files"),
        (("issue", "client", "former"), 2, "is taken by files"),
        (("issue", "voter", "one", "--host", "h"), 2, "is no node id"),
        (("issue", "voter", "1"), 2, "--host names it"),
        (("renew", "voter-9"), 4, "No such file"),
        (("renew", "../voter-9"), 2, "is no name of a certificate"),
        (("renew", "ca"), 4, "an authority is not renewed"),
        (("revoke", "voter-9"), 4, "there is no such certificate\n"),
        (("revoke", "../voter-9"), 2, "is no name of a certificate"),
        (("revoke", "ca"), 4, "an authority cannot revoke itself"),
    ],
)
def test_refusals_say_why(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    code: int,
    text: str,
) -> None:
    assert main(["certs", *arguments, "--dir", str(folder)]) == code
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("ca.key", ("issue", "client", "other.example")),
        ("ca.key", ("revoke", "app.example")),
        ("app.example.key", ("renew", "app.example")),
    ],
)
def test_a_key_that_everybody_may_read_is_not_used(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, command: tuple[str, ...]
) -> None:
    assert issue(folder, "client", "app.example") == 0
    (folder / name).chmod(0o640)
    made = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / name).chmod(0o644)
    capsys.readouterr()
    assert main(["certs", *command, "--dir", str(folder)]) == 2
    assert capsys.readouterr().err == (
        f"error: {folder / name}: everybody may read or change it (mode 0644); chmod 600 it\n"
    )
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == made


def test_a_folder_without_an_authority(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert issue(tmp_path, "client", "app.example") == 4
    assert "`quorate certs init` makes an authority" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["ca.pem", "ca.key", "authority.json"])
def test_a_damaged_file_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (folder / name).write_bytes(b"{}")
    assert issue(folder, "client", "app.example") == 4
    assert str(folder / name) in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"[]", b"{}", b'{"node_name": 1, "observer_name": "x"}'])
def test_a_file_without_names_of_nodes_is_said_to_have_none(
    folder: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    (folder / "authority.json").write_bytes(content)
    assert issue(folder, "client", "app.example") == 4
    said = "authority.json does not name nodes: it is no object with a text node_name"
    assert said in capsys.readouterr().err


def test_the_certificate_of_another_authority_is_not_renewed(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    assert main(["certs", "init", "--dir", str(other), "--name", "other"]) == 0
    assert issue(other, "client", "app.example") == 0
    for suffix in ("pem", "key"):
        (other / f"app.example.{suffix}").rename(folder / f"app.example.{suffix}")
    assert main(["certs", "renew", "app.example", "--dir", str(folder)]) == 4
    assert "made by another authority" in capsys.readouterr().err


def test_without_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(certs.importlib.util, "find_spec", lambda _name: None)
    assert main(["certs", "init", "--dir", str(tmp_path / "certs")]) == 1
    assert "pip install 'quorate[certs]' brings it" in capsys.readouterr().err
