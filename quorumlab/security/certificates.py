"""A throw-away authority, and the certificates that it signs for nodes and for an administrator.

The authority's key is never written: once the certificates are made, nobody can make another one.
Every certificate is for both sides of a connection, and for this machine's names alone.

Source: RFC 5280; CA/Browser Forum's names in subjectAltName; `cryptography` does the rest.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as new_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = ["LOCAL_NAMES", "Authority"]

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
_YEARS = 10  # as long as anybody keeps a cluster that was made for a day
_EARLIER = timedelta(hours=1)  # clocks differ
_BOTH_SIDES = x509.ExtendedKeyUsage(
    [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
)


@dataclass(frozen=True, slots=True)
class Authority:
    certificate: x509.Certificate
    _key: EllipticCurvePrivateKey

    @classmethod
    def new(cls, name: str) -> "Authority":
        key, subject = new_key(SECP256R1()), _named(name)
        builder = _builder(subject, subject, key)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        builder = builder.add_extension(_usage(signs_certificates=True), True)
        return cls(builder.sign(key, SHA256()), key)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    def signed_pem(self, common_name: str, names: Collection[str] = LOCAL_NAMES) -> bytes:
        """A new key, and a certificate for the names: hosts and addresses."""
        key = new_key(SECP256R1())
        builder = _builder(_named(common_name), self.certificate.subject, key)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        builder = builder.add_extension(_usage(signs_certificates=False), True)
        builder = builder.add_extension(_BOTH_SIDES, False)
        builder = builder.add_extension(
            x509.SubjectAlternativeName([_general(name) for name in names]), False
        )
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        certificate = builder.add_extension(issuer, False).sign(self._key, SHA256())
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return secret + certificate.public_bytes(Encoding.PEM)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + timedelta(days=365 * _YEARS))
        .add_extension(identifier, False)
    )


def _named(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
