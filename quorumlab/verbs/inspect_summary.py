"""`inspect summary`: what a metadata log is at once, and what it holds once it was read."""

from collections.abc import Iterator
from dataclasses import asdict
from types import SimpleNamespace

from quorumlab.inspection.entries import time_text
from quorumlab.inspection.identity import Identity, Voter, VoterSet, identify
from quorumlab.inspection.summary import Summary, committed, notes, summarize
from quorumlab.inspection.target import Target
from quorumlab.output import answer, number_of, say_folded
from quorumlab.verbs.inspecting import DAMAGED, scanning

__all__ = ["run_summary"]

_INDENT = 17  # where values begin
_EPOCHS_SHOWN = 20  # the newest; JSON has more


def run_summary(args: SimpleNamespace, target: Target) -> int:
    known = identify(target)
    if args.format == "text":
        for line in _identity_lines(known):
            say_folded(line, _INDENT)
    with scanning(target) as watched:
        summary = summarize(watched, known)
    told = _as_json(target, known, summary)
    answer(args.format, told, _summary_lines(target, known, summary), indent=_INDENT)
    return DAMAGED if summary.problems else 0


def _as_json(target: Target, known: Identity, summary: Summary) -> dict[str, object]:
    """The scan wins where both say the same thing."""
    offset, why = committed(target, known, summary)
    return {
        **asdict(known),
        **asdict(summary),
        "problem_count": summary.problems.count,
        "problems": summary.problems.told,
        "epochs": [asdict(epoch) for epoch in summary.epochs],
        "types": dict(summary.types.most_common()),
        "records_per_second": summary.per_second(summary.records),
        "bytes_per_second": summary.per_second(summary.bytes),
        "committed": {"offset": offset, "why": why},
        "notes": notes(summary),
    }


def _line(name: str, value: object) -> str:
    return f"{name:<16} {value}"


def _identity_lines(known: Identity) -> Iterator[str]:
    yield _line("path", known.path)
    yield _line("this is", known.what)
    for name in ("cluster_id", "node_id", "directory_id", "formatted_by"):
        value = getattr(known, name)
        if value is not None:
            yield _line(name.replace("_", " "), value)
    if known.epoch is not None:
        known_of = f"leader {_or_dash(known.leader)}, voted for {_or_dash(known.voted)}"
        yield _line("quorum", f"epoch {known.epoch}, {known_of}")
    yield _line("files", f"{number_of(known.segments, 'segment')}, {known.bytes} B")
    for snapshot in known.snapshots:
        what = f"before offset {snapshot.end_offset}, epoch {snapshot.epoch}, {snapshot.bytes} B"
        yield _line("snapshot", what)
    if known.end_offset is not None:
        times = f"{time_text(known.first_ms or 0)} to {time_text(known.last_ms or 0)}"
        yield _line(
            "ends", f"offset {known.start_offset} to {known.end_offset} (exclusive), {times}"
        )
    if known.epoch_starts:
        starts = [f"{epoch} from {start}" for epoch, start in known.epoch_starts[-_EPOCHS_SHOWN:]]
        yield _line("epochs so far", ", ".join(starts))
    if known.voters.voters:
        yield from _voter_lines("voters so far", known.voters)


def _or_dash(value: int | None) -> str:
    return "-" if value in (None, -1) else str(value)


def _voter_lines(name: str, found: VoterSet) -> Iterator[str]:
    yield _line(name, f"{','.join(map(str, found.ids)) or '-'}, by {found.source}")
    for voter in found.voters:
        if voter.directory_id or voter.endpoints:
            yield f"  {_voter(voter)}"


def _voter(voter: Voter) -> str:
    directory = f", directory {voter.directory_id}" if voter.directory_id else ""
    return f"voter {voter.id}{directory}, at {','.join(voter.endpoints) or '-'}"


def _summary_lines(target: Target, known: Identity, summary: Summary) -> Iterator[str]:
    """Problems first."""
    yield ""
    yield _line("problems", summary.problems.count or "none")
    for problem in summary.problems:
        yield f"  {problem}"
    for note in notes(summary):
        yield _line("note", note)
    if not summary.batches:
        yield _line("records", "none behind the snapshots" if known.snapshots else "none")
        return
    if target.segments:
        yield _line("offsets", f"{summary.start_offset} to {summary.end_offset} (exclusive)")
    offset, why = committed(target, known, summary)
    place = "not known" if offset < 0 else f"everything before offset {offset}"
    yield _line("committed", f"{place}: {why}")
    batches = number_of(summary.batches, "batch", "batches")
    yield _line("records", f"{summary.records} in {batches}, {summary.bytes} B")
    yield _line("times", f"{time_text(summary.first_ms)} to {time_text(summary.last_ms)}")
    if target.segments:
        yield _line("rates", _rates(summary))
    yield _line("kraft.version", summary.kraft_version)
    yield from _voter_lines("voters", summary.voters)
    yield from _epoch_lines(summary) if target.segments else ()
    for name, count in summary.types.most_common():
        yield f"  {count:>9,}  {name}"


def _epoch_lines(summary: Summary) -> Iterator[str]:
    if summary.epoch_count > _EPOCHS_SHOWN:
        yield f"  {summary.epoch_count} epochs, of which the newest are"
    for epoch in list(summary.epochs)[-_EPOCHS_SHOWN:]:
        yield (
            f"  epoch {epoch.epoch}: leader {_or_dash(epoch.leader)}, offsets {epoch.start_offset}"
            f" to {epoch.end_offset}, since {time_text(epoch.since_ms)}"
        )


def _rates(summary: Summary) -> str:
    busiest = summary.busiest
    records = number_of(busiest.records, "record")
    return (
        f"{summary.per_second(summary.records)} records and {summary.per_second(summary.bytes)} B a"
        f" second; {records} in the busiest, {time_text(busiest.second * 1000)}"
    )
