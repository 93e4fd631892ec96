"""The users of a cluster that a listener authenticates by SCRAM, and decoys for everybody else.

All nodes of a cluster make the same decoys, by its id and by `quorumlab.scram.decoy.secret`, if all
of them have that. The id alone is known to every client that has logged in once, and to readers of
logs and pages.
"""

from collections.abc import Callable, Mapping

from controller.metadata.image import MetadataImage
from controller.metadata.metadata_version import METADATA_VERSION
from quorumlab.config import NodeConfig
from wire.security.scram import Hash, NotKnownYet, ScramCredential
from wire.security.scram_decoys import Likeness, decoy, likenesses

__all__ = ["ScramUsers", "decoy_key_of"]


def decoy_key_of(config: NodeConfig, cluster_id: str) -> bytes:
    return f"{cluster_id} {config.text('quorumlab.scram.decoy.secret') or ''}".encode()


class ScramUsers:
    """`image` is the metadata as the node knows it, or None; `decoy_key` is known once it has."""

    def __init__(
        self, image: Callable[[], MetadataImage | None], decoy_key: Callable[[], bytes]
    ) -> None:
        self._image = image
        self._decoy_key = decoy_key
        self._seen: Mapping[tuple[str, int], object] | None = None  # whose likenesses are known
        self._likenesses: dict[int, tuple[Likeness, ...]] = {}  # by mechanism

    def credential(self, family: Hash, user: str) -> ScramCredential | None:
        """None: no such user. Raises NotKnownYet."""
        known = self._known().scram_credentials.get((user, family.number))
        if known is None:
            return None
        return ScramCredential(
            salt=known.salt,
            iterations=known.iterations,
            stored_key=known.stored_key,
            server_key=known.server_key,
        )

    def decoy(self, family: Hash, user: str) -> ScramCredential:
        """Raises NotKnownYet."""
        credentials = self._known().scram_credentials
        if credentials is not self._seen:
            self._seen = credentials
            self._likenesses.clear()
        among = self._likenesses.get(family.number)
        if among is None:
            among = self._likenesses[family.number] = likenesses(
                (each.iterations, each.salt)
                for each in credentials.values()
                if each.mechanism == family.number
            )
        return decoy(family, user, self._decoy_key(), among)

    def _known(self) -> MetadataImage:
        image = self._image()
        # The features are committed together with the first users.
        if image is None or METADATA_VERSION not in image.features:
            raise NotKnownYet
        return image
