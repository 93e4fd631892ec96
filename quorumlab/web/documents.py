"""The JSON values that a page is sent: the head every second, rows of partitions, stories.

    head     who leads, nodes, counts, the end of the log, what Kafka's APIs say
    whole    the head, every partition, the newest entries of the log: where a page begins
    change   the head, and what changed since the `whole` or `change` before
    past     the cluster after an offset: brokers, counts, every partition
    story    what happened to one thing, and when each node applied it

Pure. Names, keys and texts of a cluster are data here: the page shows them as text.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from controller.metadata.image import BrokerImage, MetadataImage
from quorumlab.inspection.stories import Event
from quorumlab.top.cluster_view import ClusterView, LogEntry, Partitions
from quorumlab.top.screen import chaos_lines
from quorumlab.web.rows import Lists, Rows, every_row

__all__ = ["head", "log_lines", "past", "sent_rows", "story_of"]

Json = dict[str, Any]


def head(view: ClusterView) -> Json:
    counts = view.partitions or Partitions()
    return {
        "cluster": view.cluster,
        "active": view.active_controller,
        "epoch": view.epoch,
        "problem": view.problem,
        "note": view.note,
        "end": view.log_end,
        "controllers": [each._asdict() for each in view.controllers],
        "brokers": [
            {
                **each._asdict(),
                "led": counts.led.get(each.id, 0),
                "out_of_isr": counts.out_of_isr.get(each.id, 0),
            }
            for each in view.brokers
        ],
        "counts": _counts(view.partitions),
        "views": None if view.views is None else view.views._asdict(),
        "chaos": " ".join(line.text for line in chaos_lines(view)),
    }


def _counts(partitions: Partitions | None) -> Json | None:
    if partitions is None:
        return None
    return {
        "partitions": partitions.count,
        "offline": partitions.offline,
        "under_replicated": partitions.under_replicated,
    }


def sent_rows(rows: Rows, lists: Lists, known: int) -> Json:
    """`lists` from number `known` on, which the page does not have yet."""
    return {"rows": rows, "lists": lists.known[known:], "lists_from": known}


def log_lines(entries: Sequence[LogEntry]) -> list[tuple[int, str, str]]:
    return [(each.offset, each.text, each.subject) for each in entries]


def past(
    image: MetadataImage,
    counts: Partitions,
    timestamp_ms: int,
    entries: Sequence[LogEntry],
    *,
    away: str,
) -> Json:
    """`entries`: the last ones up to then. `away`: what brokers are called that are fenced."""
    lists = Lists()
    rows = every_row(image, lists)
    return {
        "offset": image.at.offset - 1,
        "epoch": None if image.at.epoch < 0 else image.at.epoch,
        "time_ms": timestamp_ms,
        "counts": _counts(counts),
        "brokers": [
            {
                "id": each.id,
                "state": _broker_state(each, away),
                "led": counts.led.get(each.id, 0),
                "out_of_isr": counts.out_of_isr.get(each.id, 0),
            }
            for each in sorted(image.brokers.values(), key=lambda broker: broker.id)
        ],
        **sent_rows(rows, lists, 0),
        "log": log_lines(entries),
    }


def _broker_state(broker: BrokerImage, away: str) -> str:
    if broker.fenced:
        return away
    return "shutting down" if broker.in_controlled_shutdown else "active"


def story_of(subject: str, events: Sequence[Event], applied: Mapping[str, Any]) -> Json:
    """`applied`: by node and offset, and the nodes that did not answer."""
    return {
        "subject": subject,
        "events": [
            {
                "offset": each.offset,
                "epoch": each.epoch,
                "time_ms": each.timestamp_ms,
                "text": each.text,
            }
            for each in events
        ],
        **applied,
    }
