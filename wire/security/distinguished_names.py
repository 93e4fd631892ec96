"""The subject of a certificate in the words that ACLs and mapping rules are written for: Java's.

`cryptography` has RFC 4514 instead: it knows the same keywords, but escapes less, and writes the
value of any other attribute as text where RFC 2253 has its bytes.

Source: RFC 2253; Java's X500Principal.getName and its AVA.toRFC2253String.
"""

from cryptography import x509
from cryptography.x509.oid import NameOID

__all__ = ["distinguished_name"]

_KEYWORDS = {
    NameOID.COMMON_NAME: "CN",
    NameOID.COUNTRY_NAME: "C",
    NameOID.DOMAIN_COMPONENT: "DC",
    NameOID.LOCALITY_NAME: "L",
    NameOID.ORGANIZATIONAL_UNIT_NAME: "OU",
    NameOID.ORGANIZATION_NAME: "O",
    NameOID.STATE_OR_PROVINCE_NAME: "ST",
    NameOID.STREET_ADDRESS: "STREET",
    NameOID.USER_ID: "UID",
}
_ESCAPED = frozenset(',=+<>#;"\\')


def distinguished_name(subject: x509.Name) -> str:
    """The last part first, as in `CN=alice,OU=users,O=example`."""
    return ",".join("+".join(map(_attribute, rdn)) for rdn in reversed(subject.rdns))


def _attribute(attribute: x509.NameAttribute[str | bytes]) -> str:
    keyword = _KEYWORDS.get(attribute.oid)
    if keyword is None or isinstance(attribute.value, bytes):
        name = keyword or attribute.oid.dotted_string
        return f"{name}=#{_encoded_value(attribute).hex()}"
    return f"{keyword}={_escaped(attribute.value)}"


def _escaped(value: str) -> str:
    text = "".join("\\" + each if each in _ESCAPED else each for each in value)
    inner = text.strip(" \r")
    lead = len(text) - len(text.lstrip(" \r"))
    before, after = text[:lead], text[lead + len(inner) :]
    return "".join("\\" + each for each in before) + inner + "".join("\\" + e for e in after)


def _encoded_value(attribute: x509.NameAttribute[str | bytes]) -> bytes:
    """In DER: what is left of a name of this attribute alone behind its sequence, its set, the
    attribute's sequence and its identifier."""
    encoded = x509.Name([attribute]).public_bytes()
    at = 0
    for _ in range(3):
        at, _size = _contents(encoded, at)
    at, size = _contents(encoded, at)
    return encoded[at + size :]


def _contents(encoded: bytes, at: int) -> tuple[int, int]:
    """Where those of the element at `at` begin, and their size."""
    size = encoded[at + 1]
    if size < 0x80:
        return at + 2, size
    bytes_of_size = size & 0x7F
    begin = at + 2 + bytes_of_size
    return begin, int.from_bytes(encoded[at + 2 : begin])
