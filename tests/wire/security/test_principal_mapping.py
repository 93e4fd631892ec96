"""Names of users out of those of certificates: KIP-371's examples, and Java's form of names."""

import pytest
from cryptography import x509
from cryptography.x509 import ObjectIdentifier
from cryptography.x509.oid import NameOID as OID

from wire.security.distinguished_names import distinguished_name
from wire.security.principal_mapping import NoMatchingRule, PrincipalMapping

KIP_371 = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/, "
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L, "
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L, "
    "DEFAULT"
)


@pytest.mark.parametrize(
    ("name", "user"),
    [
        ("CN=Duke,OU=ServiceUsers,O=Org,C=US", "Duke"),
        ("CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        ("cn=JohnDoe,ou=SME,o=mycp,l=Fulton,st=MD,c=US", "johndoe"),
        ("OU=JavaSoft,O=Sun Microsystems,C=US", "OU=JavaSoft,O=Sun Microsystems,C=US"),
    ],
)
def test_the_first_rule_that_fits_wins(name: str, user: str) -> None:
    assert PrincipalMapping.parse(KIP_371).name_of(name) == user


@pytest.mark.parametrize(
    ("rules", "user"),
    [
        ("DEFAULT", "CN=Ann,OU=a/b"),
        ("RULE:^CN=(.*?),.*$/$1/L", "ann"),
        ("RULE:^CN=(.*?),.*$/$1/U,DEFAULT", "ANN"),
        (r"RULE:^CN=(.*?),OU=(.*)\/(.*)$/$3\/$1/", "b/Ann"),  # a slash stands escaped
        (r"RULE:^CN=(.*?),.*$/\$$1$2/", "$Ann$2"),  # of two groups that are named, there is one
        ("RULE:^CN=(.*?),.*$/$12/", "Ann2"),
    ],
)
def test_replacements_are_java_s(rules: str, user: str) -> None:
    assert PrincipalMapping.parse(rules).name_of("CN=Ann,OU=a/b") == user


def test_who_fits_no_rule_is_nobody() -> None:
    with pytest.raises(NoMatchingRule, match="CN=ann"):
        PrincipalMapping.parse("RULE:^OU=(.*)$/$1/").name_of("CN=ann")


@pytest.mark.parametrize("rules", ["default", "RULE:a/b", "RULE:(/a/", "RULE:a/b/X", "DEFAULT x"])
def test_rules_that_cannot_be_read_are_refused(rules: str) -> None:
    with pytest.raises(ValueError, match=r"expected RULE|the pattern"):
        PrincipalMapping.parse(rules)


# As Java's X500Principal.getName shows the same names; the last part is given last.
JAVAS: list[tuple[list[list[tuple[ObjectIdentifier, str]]], str]] = [
    (
        [[(OID.ORGANIZATIONAL_UNIT_NAME, "x")], [(OID.COMMON_NAME, "a,b=c #d")]],
        r"CN=a\,b\=c \#d,OU=x",
    ),
    (
        [[(OID.COMMON_NAME, "x")], [(OID.EMAIL_ADDRESS, "a@b.c")]],
        "1.2.840.113549.1.9.1=#16056140622e63,CN=x",
    ),
    ([[(OID.ORGANIZATIONAL_UNIT_NAME, "sp")], [(OID.COMMON_NAME, "#lead")]], r"CN=\#lead,OU=sp"),
    (
        [
            [(OID.COUNTRY_NAME, "DE")],
            [(OID.USER_ID, "u")],
            [(OID.DOMAIN_COMPONENT, "d")],
            [(OID.STREET_ADDRESS, "st")],
            [(OID.STATE_OR_PROVINCE_NAME, "s")],
            [(OID.LOCALITY_NAME, "Mü")],
            [(OID.COMMON_NAME, "ümläut")],
        ],
        "CN=ümläut,L=Mü,ST=s,STREET=st,DC=d,UID=u,C=DE",
    ),
    (
        [
            [(OID.ORGANIZATION_NAME, "c")],
            [(OID.COMMON_NAME, "a"), (OID.ORGANIZATIONAL_UNIT_NAME, "b")],
        ],
        "CN=a+OU=b,O=c",
    ),
]


@pytest.mark.parametrize(("parts", "shown"), JAVAS)
def test_names_are_written_as_java_writes_them(
    parts: list[list[tuple[ObjectIdentifier, str]]], shown: str
) -> None:
    rdns = [
        x509.RelativeDistinguishedName([x509.NameAttribute(*each) for each in part])
        for part in parts
    ]
    assert distinguished_name(x509.Name(rdns)) == shown
