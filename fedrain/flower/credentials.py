"""Certificates and keys: who may take part, and which region is whose.

One authority signs the certificates of the server and of the shared climate. A node has a key of
its own, whose public half the server knows, and a certificate for the climate. There is a folder
for each participant: it has all that the participant needs, and nobody else's secrets.
"""

import datetime
import ipaddress
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fedrain.errors import InputError
from fedrain.io import write_bytes
from fedrain.reading import read_bytes

AUTHORITY, CERTIFICATE, TLS_KEY, NODE_KEY = (
    "authority.pem",
    "machine.pem",
    "machine.key",
    "node.key",
)
AUTHORITY_KEY = "authority.key"
NODES = "nodes"  # public keys, at the server
MOST_REGIONS = 1000
#: What the library raises of keys that it cannot read, or will not.
UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm, NotImplementedError)
VALID = datetime.timedelta(days=365)
#: A name, of labels with dots between (RFC 1123); the first may stand for any.
LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
MACHINE = rf"(\*\.)?{LABEL}(\.{LABEL})*"
#: Names by which a machine knows itself.
LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Credentials:
    """The folder of one participant."""

    folder: Path

    def file(self, name: str) -> Path:
        """A file in it, which has to be there."""
        path = self.folder / name
        if not path.is_file():
            raise InputError(f"{path}: is missing (fedrain federate certificates makes it)")
        return path

    @property
    def authority(self) -> Path:
        """The certificate that all others are signed with."""
        return self.file(AUTHORITY)

    @property
    def certificate(self) -> Path:
        """Of this participant."""
        return self.file(CERTIFICATE)

    @property
    def tls_key(self) -> Path:
        """Of that certificate."""
        return self.file(TLS_KEY)

    @property
    def node_key(self) -> Path:
        """What a node signs its requests with."""
        return self.file(NODE_KEY)

    def public_keys(self) -> dict[int, ec.EllipticCurvePublicKey]:
        """Of the nodes that may take part, by region."""
        found = {}
        for path in sorted((self.folder / NODES).glob("region-*.pub")):
            try:
                region = int(path.stem.removeprefix("region-"))
                key = serialization.load_ssh_public_key(read_bytes(path))
            except InputError:
                raise
            except UNREADABLE:
                raise InputError(f"{path}: is not the public key of a region") from None
            if not isinstance(key, ec.EllipticCurvePublicKey):
                raise InputError(f"{path}: is not a key on an elliptic curve")
            found[region] = key
        return found


def read_credentials(folder: str | None, insecure: bool) -> Credentials | None:
    """Those of this participant. To go without has to be asked for."""
    if insecure == (folder is not None):
        raise InputError("give --credentials DIR, or --insecure to stay on this machine")
    return None if folder is None else Credentials(Path(folder))


def make_credentials(folder: Path, regions: int, addresses: Sequence[str] = ()) -> list[Path]:
    """Folders for the server, the climate and the nodes; those that were made.

    What exists already stays. ``addresses`` are names or addresses of the server and the climate.
    """
    authority = _Authority(folder)
    servers = [folder / "server", folder / "climate"]
    for participant in servers:
        if participant.exists():
            _refuse_other_names(participant, addresses)
    nodes = [folder / f"region-{region}" for region in range(regions)]
    made = [participant for participant in (*servers, *nodes) if not participant.exists()]
    for participant in servers:
        if participant in made:
            with _whole_folder(participant) as partial:
                _write_participant(partial, authority, participant.name, addresses)
    for participant in nodes:
        public = folder / "server" / NODES / f"{participant.name}.pub"
        if participant in made:
            with _whole_folder(participant) as partial:
                key = _write_participant(partial, authority, participant.name, ())
                openssh = serialization.PrivateFormat.OpenSSH
                write_bytes(partial / NODE_KEY, _private(key, openssh), secret=True)
                write_bytes(public, _public(key))
        elif not public.exists():
            write_bytes(public, _public(_read_node_key(participant)))
    return made


class _Authority:
    """The key that signs. It stays where the certificates are made."""

    def __init__(self, folder: Path) -> None:
        certificate, key = folder / AUTHORITY, folder / AUTHORITY_KEY
        if certificate.exists() and key.exists():
            self.certificate = _read_certificate(certificate)
            self.key = _read_key(key, serialization.load_pem_private_key)
            if self.certificate.public_key() != self.key.public_key():
                raise InputError(f"{key}: is not the key of {certificate}")
            return
        # A key alone is one that a process which was killed had begun with, and has signed nothing.
        signed = sorted(path.parent for path in folder.glob(f"*/{CERTIFICATE}"))
        if certificate.exists() or signed:
            lost = key if certificate.exists() else certificate
            raise InputError(
                f"{lost}: is missing, and certificates signed with it are useless with a new one: "
                f"restore it, or remove all of {folder} and start again"
            )
        self.key = ec.generate_private_key(ec.SECP384R1())
        name = _name("FedRAIN federation")
        builder = _builder(name, name, self.key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        self.certificate = builder.sign(self.key, hashes.SHA256())
        write_bytes(key, _private(self.key), secret=True)
        write_bytes(certificate, self.pem)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def sign(self, name: str, addresses: Sequence[str], key: Any) -> bytes:
        """A certificate for a participant that answers to these names."""
        builder = _builder(_name(name), self.certificate.subject, key.public_key())
        alternatives = x509.SubjectAlternativeName([_general(address) for address in addresses])
        uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        builder = builder.add_extension(alternatives, False)
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), False)
        return builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@contextmanager
def _whole_folder(folder: Path) -> Iterator[Path]:
    """A folder to write into, which is put in its place at the end."""
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    yield partial
    partial.replace(folder)


def _write_participant(
    folder: Path, authority: _Authority, name: str, addresses: Sequence[str]
) -> ec.EllipticCurvePrivateKey:
    """What every participant has."""
    key = ec.generate_private_key(ec.SECP384R1())
    names = list(dict.fromkeys([*addresses, *LOOPBACK]))
    write_bytes(folder / TLS_KEY, _private(key), secret=True)
    write_bytes(folder / CERTIFICATE, authority.sign(name, names, key))
    write_bytes(folder / AUTHORITY, authority.pem)
    return key


def _refuse_other_names(participant: Path, addresses: Sequence[str]) -> None:
    """A certificate that exists is not signed again."""
    certificate = _read_certificate(Credentials(participant).certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    if lacking := [address for address in addresses if _general(address) not in set(names)]:
        why = f"{participant}: its certificate is not for {', '.join(lacking)}"
        raise InputError(f"{why}: remove the folder and make it again")


def _read_node_key(participant: Path) -> ec.EllipticCurvePrivateKey:
    if not (participant / NODE_KEY).exists():
        raise InputError(f"{participant}: has no {NODE_KEY}: remove the folder and make it again")
    return _read_key(participant / NODE_KEY, serialization.load_ssh_private_key)


def _read_key(path: Path, load: Callable[[bytes, None], Any]) -> ec.EllipticCurvePrivateKey:
    try:
        key = load(read_bytes(path), None)
    except InputError:
        raise
    except UNREADABLE:
        raise InputError(f"{path}: is not a private key, or has a password") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise InputError(f"{path}: is not a key on an elliptic curve")
    return key


def _read_certificate(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(read_bytes(path))
    except InputError:
        raise
    except UNREADABLE:
        raise InputError(f"{path}: is not a certificate") from None


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(subject: x509.Name, issuer: x509.Name, key: Any) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))  # clocks differ
        .not_valid_after(now + VALID)
    )


def _general(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        pass
    if len(address) > 253 or not re.fullmatch(MACHINE, address):
        raise InputError(f"{address!r} is not the name or address of a machine")
    return x509.DNSName(address)


def _private(
    key: ec.EllipticCurvePrivateKey,
    form: serialization.PrivateFormat = serialization.PrivateFormat.PKCS8,
) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def _public(key: ec.EllipticCurvePrivateKey) -> bytes:
    known = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    return key.public_key().public_bytes(*known)
