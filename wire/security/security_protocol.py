"""Kafka's security protocols: who is asked what on a connection. Needs nothing else."""

from enum import IntEnum

__all__ = ["SecurityProtocol"]


class SecurityProtocol(IntEnum):
    """The values are those of the metadata log."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3

    @property
    def uses_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def uses_sasl(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)
