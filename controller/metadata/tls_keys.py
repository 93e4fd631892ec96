"""The keys of TLS and of the limits of connections: name, type, default, where they may change.

Source: Kafka's SslConfigs, BrokerSecurityConfigs, SocketServerConfigs; all but the last few may be
set for one listener, as `listener.name.{name}.{key}`.
"""

__all__ = ["SECURITY_NAMES", "STORE_KEYS", "TLS_KEYS"]

_ONE, _FIXED, _ALL = "per-broker", "read-only", "cluster-wide"
TLS_KEYS = (
    ("ssl.allow.dn.changes", "BOOLEAN", "false", _FIXED),
    ("ssl.allow.san.changes", "BOOLEAN", "false", _FIXED),
    ("ssl.cipher.suites", "LIST", "", _ONE),
    ("ssl.client.auth", "STRING", "none", _ONE),
    ("ssl.enabled.protocols", "LIST", "TLSv1.2,TLSv1.3", _ONE),
    ("ssl.endpoint.identification.algorithm", "STRING", "https", _ONE),
    ("ssl.key.password", "PASSWORD", None, _ONE),
    ("ssl.keystore.certificate.chain", "PASSWORD", None, _ONE),
    ("ssl.keystore.key", "PASSWORD", None, _ONE),
    ("ssl.keystore.location", "STRING", None, _ONE),
    ("ssl.keystore.password", "PASSWORD", None, _ONE),
    ("ssl.keystore.type", "STRING", "JKS", _ONE),
    ("ssl.principal.mapping.rules", "STRING", "DEFAULT", _FIXED),
    ("ssl.protocol", "STRING", "TLSv1.3", _ONE),
    ("ssl.truststore.certificates", "PASSWORD", None, _ONE),
    ("ssl.truststore.location", "STRING", None, _ONE),
    ("ssl.truststore.password", "PASSWORD", None, _ONE),
    ("ssl.truststore.type", "STRING", "JKS", _ONE),
    ("connections.max.idle.ms", "LONG", "600000", _FIXED),
    ("max.connections", "INT", "2147483647", _ALL),
    ("max.connections.per.ip", "INT", "2147483647", _ALL),
    ("max.connections.per.ip.overrides", "STRING", "", _ALL),
)
SECURITY_NAMES = (*(name for name, *_ in TLS_KEYS), "sasl.enabled.mechanisms", "sasl.jaas.config")
# While a broker runs, these change for one listener only.
STORE_KEYS = frozenset(
    name for name, *_ in TLS_KEYS if name.startswith(("ssl.key", "ssl.truststore"))
)
