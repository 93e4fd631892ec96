"""Who may do what only nodes of the cluster may: CLUSTER_ACTION.

Nobody is authenticated here. Whoever connects is User:ANONYMOUS, as with Kafka on a listener of
PLAINTEXT, and may act for the cluster where `super.users` names it. Where no authorizer is set
everybody may.

Source: KIP-497 (seed 003), "a new AlterIsr API which requires CLUSTER_ACTION permission".
"""

from dataclasses import dataclass

__all__ = ["ANONYMOUS", "EVERYBODY", "Authorizer"]

ANONYMOUS = "User:ANONYMOUS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorizer:
    super_users: tuple[str, ...]

    @classmethod
    def of(cls, class_name: str, super_users: str) -> "Authorizer":
        """As `authorizer.class.name` and `super.users` of server.properties say."""
        if not class_name:
            return EVERYBODY
        named = (each.strip() for each in super_users.split(";"))
        return cls(super_users=tuple(each for each in named if each))

    def allows_cluster_action(self, principal: str = ANONYMOUS) -> bool:
        return principal in self.super_users


EVERYBODY = Authorizer(super_users=(ANONYMOUS,))
