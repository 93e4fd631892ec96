"""An authority, and certificates of every kind that a listener or a client must refuse."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12

NOW = datetime.now(UTC)
DAY = timedelta(days=1)
_PEM = serialization.Encoding.PEM


@dataclass(frozen=True)
class Certified:
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def certificate_pem(self) -> str:
        return self.certificate.public_bytes(_PEM).decode()

    def key_pem(self, password: str | None = None) -> str:
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password is not None:
            encryption = serialization.BestAvailableEncryption(password.encode())
        form = serialization.PrivateFormat.PKCS8
        return self.key.private_bytes(_PEM, form, encryption).decode()

    @property
    def pem(self) -> str:
        """A key store as one file."""
        return self.key_pem() + self.certificate_pem

    def pkcs12(self, password: str) -> bytes:
        encryption = serialization.BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(
            b"node", self.key, self.certificate, None, encryption
        )


def subject(text: str) -> x509.Name:
    return x509.Name.from_rfc4514_string(text)


def _made(
    name: x509.Name,
    issuer: x509.Name,
    signer: ec.EllipticCurvePrivateKey | None,
    *,
    hosts: tuple[str, ...] = (),
    begin: datetime = NOW - DAY,
    end: datetime = NOW + DAY,
    is_authority: bool = False,
) -> Certified:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )
    if hosts:
        names = [_host(host) for host in hosts]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return Certified(key, builder.sign(signer or key, hashes.SHA256()))


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


@cache
def authority(name: str = "CN=authority") -> Certified:
    return _made(subject(name), subject(name), None, is_authority=True)


def certified(
    name: str = "CN=node",
    *,
    by: Certified | None = None,
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1"),
    begin: datetime = NOW - DAY,
    end: datetime = NOW + DAY,
) -> Certified:
    signer = by or authority()
    issuer = signer.certificate.subject
    return _made(subject(name), issuer, signer.key, hosts=hosts, begin=begin, end=end)


def self_signed(name: str = "CN=node") -> Certified:
    return _made(subject(name), subject(name), None, hosts=("localhost", "127.0.0.1"))
