"""Certificates and keys, as the participants of a federation get them."""

import shutil

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from fedrain.errors import InputError
from fedrain.flower import credentials
from fedrain.flower.credentials import Credentials, make_credentials


def test_credentials(tmp_path):
    """A folder for each participant, no secret readable by others; what exists stays."""
    make_credentials(tmp_path, 2, ["climate.example.org", "192.0.2.1"])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    secrets = [path for path in before if path.suffix == ".key"]
    assert len(secrets) == 7  # authority, server, climate, and two of each node
    assert all(path.stat().st_mode & 0o077 == 0 for path in secrets)
    assert sorted(Credentials(tmp_path / "server").public_keys()) == [0, 1]
    assert [p.name for p in make_credentials(tmp_path, 3)] == ["region-2"]
    assert all(path.read_bytes() == content for path, content in before.items())
    with pytest.raises(InputError, match="is missing"):
        _ = Credentials(tmp_path / "region-7").authority
    (tmp_path / "server" / "nodes" / "region-5.pub").write_text("nothing of the kind")
    with pytest.raises(InputError, match="not the public key"):
        Credentials(tmp_path / "server").public_keys()
    with pytest.raises(InputError, match="name or address"):
        make_credentials(tmp_path / "other", 1, ["bücher"])


def test_credentials_that_lack_a_name(tmp_path):
    """Nothing is made, and the line tells what to do: the nodes keep their keys."""
    make_credentials(tmp_path, 1)
    public = Credentials(tmp_path / "server").public_keys()
    with pytest.raises(
        InputError, match=r"server: its certificate is not for 192\.0\.2\.1: remove"
    ):
        make_credentials(tmp_path, 2, ["192.0.2.1"])
    assert not (tmp_path / "region-1").exists()
    for name in ("server", "climate"):
        shutil.rmtree(tmp_path / name)
    made = make_credentials(tmp_path, 2, ["192.0.2.1"])
    assert [home.name for home in made] == ["server", "climate", "region-1"]
    assert make_credentials(tmp_path, 2, ["192.0.2.1"]) == []
    assert Credentials(tmp_path / "server").public_keys()[0] == public[0]


@pytest.mark.parametrize("after", ["node.key", "region-0.pub"])
def test_credentials_that_were_half_made(tmp_path, monkeypatch, after):
    """Killed while a node's folder is written: it is made again, and the server knows its key."""
    plain = credentials.write_bytes

    def die(path, *arguments, **options):
        plain(path, *arguments, **options)
        if path.name == after:
            raise KeyboardInterrupt

    monkeypatch.setattr(credentials, "write_bytes", die)
    with pytest.raises(KeyboardInterrupt):
        make_credentials(tmp_path, 1)
    monkeypatch.undo()
    assert [home.name for home in make_credentials(tmp_path, 1)] == ["region-0"]
    key = credentials._read_node_key(tmp_path / "region-0")
    assert Credentials(tmp_path / "server").public_keys() == {0: key.public_key()}
    (tmp_path / "region-0" / "node.key").unlink()
    (tmp_path / "server" / "nodes" / "region-0.pub").unlink()
    with pytest.raises(InputError, match=r"has no node\.key: remove the folder"):
        make_credentials(tmp_path, 1)


def private(key, encryption):
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, encryption)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (b"nothing of the kind", "is not a private key, or has a password"),
        (
            private(
                ec.generate_private_key(ec.SECP384R1()),
                serialization.BestAvailableEncryption(b"secret"),
            ),
            "is not a private key, or has a password",
        ),
        (
            private(ed25519.Ed25519PrivateKey.generate(), serialization.NoEncryption()),
            "is not a key on an elliptic curve",
        ),
    ],
    ids=["damaged", "encrypted", "other"],
)
def test_an_authority_that_cannot_sign(tmp_path, key, reason):
    make_credentials(tmp_path, 1)
    (tmp_path / "authority.key").write_bytes(key)
    with pytest.raises(InputError, match=f"authority.key: {reason}"):
        make_credentials(tmp_path, 2)
    (tmp_path / "authority.pem").write_text("nothing of the kind")
    with pytest.raises(InputError, match=r"authority\.pem: is not a certificate"):
        make_credentials(tmp_path, 2)


def test_a_lost_authority_is_not_replaced(tmp_path):
    """What it has signed would be useless with a new one; nothing is changed."""
    make_credentials(tmp_path, 1)
    key, certificate = tmp_path / "authority.key", tmp_path / "authority.pem"
    kept = {path: path.read_bytes() for path in (key, certificate)}
    for lost in (key, certificate):
        lost.unlink()
        with pytest.raises(InputError, match=f"{lost.name}: is missing, and certificates signed"):
            make_credentials(tmp_path, 2)
        assert not lost.exists()
        assert not (tmp_path / "region-1").exists()
        lost.write_bytes(kept[lost])
    make_credentials(tmp_path / "other", 1)
    key.write_bytes((tmp_path / "other" / "authority.key").read_bytes())
    with pytest.raises(InputError, match="is not the key of"):
        make_credentials(tmp_path, 2)


def test_an_authority_that_has_signed_nothing_is_made_again(tmp_path, monkeypatch):
    """Killed between its key and its certificate."""
    plain = credentials.write_bytes

    def die(path, *arguments, **options):
        plain(path, *arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(credentials, "write_bytes", die)
    with pytest.raises(KeyboardInterrupt):
        make_credentials(tmp_path, 1)
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["authority.key"]
    assert len(make_credentials(tmp_path, 1)) == 3


@pytest.mark.parametrize("address", ["", " ", "a b", "a..b", "-a", "x" * 64, "a." * 127 + "a", "."])
def test_names_that_no_machine_has(tmp_path, address):
    with pytest.raises(InputError, match="is not the name or address of a machine"):
        make_credentials(tmp_path, 1, [address])
