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
from wire.foreign_records import ForeignRecord

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
    return image.transaction is not None or any(
        type(_known(change)) in _BOUNDARIES for change in changes
    )


def _known(change: Change) -> Change | None:
    """What this release knows of it: not all of one that a later release has written."""
    return change.known if isinstance(change, ForeignRecord) else change


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
        known = _known(change)
        if known is not change or type(known) not in _BOUNDARIES:
            draft.replay(change, offset)
        match known:
            case records.BeginTransactionRecord():
                if image.transaction is not None and not draft.lacks:
                    raise UnreplayableRecord("a transaction begins within another")
                image, delta = _ended(image, draft, at)
                published = published.then(delta)
                opened = image._replace(at=OffsetAndEpoch(offset, at.epoch))
                image = image._replace(
                    transaction=OpenTransaction(before=opened, delta=MetadataDelta())
                )
                draft = ImageDraft(image)
            case records.EndTransactionRecord() | records.AbortTransactionRecord():
                image, delta = _close(image, draft, known, at)
                published = published.then(delta)
                draft = ImageDraft(image)
    image, delta = _finished(draft, at)
    if image.transaction is None:
        return image, published.then(delta)
    kept = replace(image.transaction, delta=image.transaction.delta.then(delta))
    return image._replace(transaction=kept), published


def _close(
    image: MetadataImage, draft: ImageDraft, boundary: Change, at: OffsetAndEpoch
) -> tuple[MetadataImage, MetadataDelta]:
    transaction = image.transaction
    if transaction is None and not draft.lacks:
        raise UnreplayableRecord(f"{type(boundary).__name__} without a transaction")
    if transaction is None or isinstance(boundary, records.EndTransactionRecord):
        return _ended(image, draft, at)
    before = transaction.before._replace(at=at, lacks=draft.lacks, lacks_acls=draft.lacks_acls)
    return before, MetadataDelta()


def _ended(
    image: MetadataImage, draft: ImageDraft, at: OffsetAndEpoch
) -> tuple[MetadataImage, MetadataDelta]:
    """The image without an open transaction: what was in it counts.

    Where something is lacking, that may be what ended it, or what began it.
    """
    finished, delta = _finished(draft, at)
    if image.transaction is not None:
        delta = image.transaction.delta.then(delta)
    return finished._replace(transaction=None), delta
