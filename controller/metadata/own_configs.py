"""The dynamic configs of one node, broker or controller, and when to look at them again.

A config that is set to the same again is news, too: the file that it names may be another one.

Source: KIP-226 (a path that is set again has its file read again).
"""

from collections.abc import Mapping

from controller.metadata.image import CLUSTER_DEFAULT, MetadataImage, ResourceType

__all__ = ["OwnConfigs"]

_Values = Mapping[str, str] | None


class OwnConfigs:
    def __init__(self, node_id: int) -> None:
        self._resources = [(ResourceType.BROKER, name) for name in (CLUSTER_DEFAULT, str(node_id))]
        self._seen: list[_Values] = [None, None]

    def changed(self, image: MetadataImage) -> dict[str, str] | None:
        """All of them, those of the node over those of all nodes; None if nobody has set any.

        Images share what has not been touched, so that what was set is another object.
        """
        now: list[_Values] = [image.configs.get(resource) for resource in self._resources]
        if all(before is after for before, after in zip(self._seen, now, strict=True)):
            return None
        self._seen = now
        return {key: value for values in now for key, value in (values or {}).items()}
