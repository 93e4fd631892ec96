"""Applying changes: the only way from an image to its successor.

What each record does to an image is in `controller.metadata.image_draft`. Here are the batches:
records between BeginTransaction and EndTransaction are applied as they come, but stay out of
`MetadataImage.stable` and of deltas until the end; an abort takes them back (KIP-868).
"""

from collections.abc import Iterable
from dataclasses import replace

from controller.metadata.changes import Change, CommittedBatch, offsets_of
from controller.metadata.delta import MetadataDelta
from controller.metadata.image import MetadataImage, OpenTransaction
from controller.metadata.image_draft import ImageDraft
from controller.metadata.topics_draft import UnreplayableRecord
from quorum.core.types import OffsetAndEpoch
from wire import metadata_records as records

__all__ = ["UnreplayableRecord", "apply", "apply_with_delta"]

_BOUNDARIES = {
    records.BeginTransactionRecord,
    records.EndTransactionRecord,
    records.AbortTransactionRecord,
}


def apply(image: MetadataImage, changes: Iterable[Change], at: OffsetAndEpoch) -> MetadataImage:
    """The image after `changes`, the last of which has offset `at.offset` - 1."""
    changes = tuple(changes)
    if _has_transaction(image, changes):
        return _apply_transactions(image, changes, at)[0]
    return _drafted(image, changes, at).finish(at)


def apply_with_delta(
    image: MetadataImage, batch: CommittedBatch
) -> tuple[MetadataImage, MetadataDelta]:
    """The image after a batch, and what changed between the two images' `stable`."""
    at = OffsetAndEpoch(batch.next_offset, batch.epoch)
    if _has_transaction(image, batch.changes):
        return _apply_transactions(image, batch.changes, at)
    return _finished(_drafted(image, batch.changes, at), at)


def _has_transaction(image: MetadataImage, changes: tuple[Change, ...]) -> bool:
    return image.transaction is not None or not _BOUNDARIES.isdisjoint(map(type, changes))


def _drafted(image: MetadataImage, changes: tuple[Change, ...], at: OffsetAndEpoch) -> ImageDraft:
    draft = ImageDraft(image)
    for offset, change in offsets_of(changes, end_offset=at.offset):
        draft.replay(change, offset)
    return draft


def _finished(draft: ImageDraft, at: OffsetAndEpoch) -> tuple[MetadataImage, MetadataDelta]:
    return draft.finish(at), draft.delta()


def _apply_transactions(
    image: MetadataImage, changes: tuple[Change, ...], at: OffsetAndEpoch
) -> tuple[MetadataImage, MetadataDelta]:
    published = MetadataDelta()
    draft = ImageDraft(image)
    for offset, change in offsets_of(changes, end_offset=at.offset):
        match change:
            case records.BeginTransactionRecord():
                if image.transaction is not None:
                    raise UnreplayableRecord("a transaction begins within another")
                image, delta = _finished(draft, at)
                published = published.then(delta)
                opened = image._replace(at=OffsetAndEpoch(offset, at.epoch))
                image = image._replace(
                    transaction=OpenTransaction(before=opened, delta=MetadataDelta())
                )
                draft = ImageDraft(image)
            case records.EndTransactionRecord() | records.AbortTransactionRecord():
                image, delta = _close(image, draft, change, at)
                published = published.then(delta)
                draft = ImageDraft(image)
            case _:
                draft.replay(change, offset)
    image, delta = _finished(draft, at)
    if image.transaction is None:
        return image, published.then(delta)
    kept = replace(image.transaction, delta=image.transaction.delta.then(delta))
    return image._replace(transaction=kept), published


def _close(
    image: MetadataImage, draft: ImageDraft, change: Change, at: OffsetAndEpoch
) -> tuple[MetadataImage, MetadataDelta]:
    transaction = image.transaction
    if transaction is None:
        raise UnreplayableRecord(f"{type(change).__name__} without a transaction")
    if isinstance(change, records.AbortTransactionRecord):
        return transaction.before._replace(at=at), MetadataDelta()
    finished, delta = _finished(draft, at)
    return finished._replace(transaction=None), transaction.delta.then(delta)
