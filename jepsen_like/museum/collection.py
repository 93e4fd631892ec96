"""All items, by id, in the order of the gallery.

Not here: R3, since nothing else breaks the log first; R13, which is about migration.
"""

from jepsen_like.museum.isr_items import ISR_ITEMS
from jepsen_like.museum.item import Item
from jepsen_like.museum.quorum_items import QUORUM_ITEMS
from jepsen_like.museum.replication_items import REPLICATION_ITEMS
from jepsen_like.museum.zk_items import ZK_ITEMS

__all__ = ["ITEMS"]


def _place(item: Item) -> tuple[str, int]:
    return item.id[0], int(item.id[1:])


ITEMS = {
    item.id: item
    for item in sorted((*ZK_ITEMS, *REPLICATION_ITEMS, *ISR_ITEMS, *QUORUM_ITEMS), key=_place)
}
