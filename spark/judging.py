"""What a worker does: it judges the objects of a batch of rows, all in one pass.

No rule is here: the pure checkers judge, and this only brings rows to them and bounds what they
take. Names of objects carry their run, until the driver has all verdicts.

Spark cuts its batches anywhere. Here they are put together until they hold enough rows, and cut
where one object ends and the next begins. Rows of an object must follow one another.
"""

import json
import resource
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jepsen_like.checkers.judges import JUDGED, Split, disbelieved, judge_log, split_of, unknown
from jepsen_like.checkers.observations import check_observations
from jepsen_like.checkers.operations import Operation
from jepsen_like.checkers.queues import check_queue_columns, with_search
from jepsen_like.checkers.registers import initial_of, may_begin_with_nil
from jepsen_like.checkers.search import Budget
from jepsen_like.checkers.verdict import Finding, Verdict, compose
from jepsen_like.checkers.zones import sound, sound_verdict
from jepsen_like.histories.history import Header, MalformedHistory
from spark.columns import (
    lines,
    log_columns,
    objects,
    operations,
    plain,
    queue_columns,
    register_columns,
)
from spark.rows import STEPS, WHOLE
from spark.verdicts import encoded, named, of_run

__all__ = ["Batches", "Bounds", "Judging", "judged", "limit_memory", "whole_objects"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The time and the memory that a worker may take."""

    until: float  # on the clock of all machines: then a search is undecided
    mb: int

    @property
    def budget(self) -> Budget:
        return Budget(is_late=lambda: time.time() > self.until)


def judged(rows: pa.Table, bounds: Bounds) -> Verdict:
    """Judges whole objects. What needs too much memory is tried again alone, and then undecided."""
    try:
        # The system's limit alone would let some of these pass, with memory that was freed before.
        if rows.nbytes > bounds.mb << 20:
            raise MemoryError
        return compose(
            _judged_alike(part, Header(workload=of, seed=0, options=json.loads(options)), bounds)
            for (of, options), part in _parts(rows, "workload", "options")
        )
    except MemoryError:
        pass
    objects = list(_parts(rows, "run", "object"))
    if len(objects) > 1:
        return compose(judged(part, bounds) for _, part in objects)
    name, part = named(*objects[0][0]), rows
    doubt = f"{len(part)} rows need more than the {bounds.mb} MB that a worker may take"
    return Verdict.of([], doubts={name: doubt})


def _judged_alike(rows: pa.Table, header: Header, bounds: Bounds) -> Verdict:
    """Judges runs of one workload with the same options."""
    split = split_of(header.workload)
    is_whole, own = pc.equal(rows.column("object"), WHOLE), rows
    if split is Split.STEPS:  # a log without a name has rows of its own kinds
        is_step = pc.is_in(rows.column("what"), pa.array(STEPS))
        is_whole = pc.and_not(is_whole, is_step)
    whole = rows.filter(is_whole)
    if len(whole):  # else a large table would be copied
        own = rows.filter(pc.invert(is_whole))
    verdicts = [_judged_run(run, part, header, bounds) for (run,), part in _parts(whole, "run")]
    if split is Split.STEPS and len(own):
        verdicts.append(judge_log(log_columns(own), header))
    if split is Split.KEYS and len(own):
        judge = _BY_COLUMNS.get(header.workload, _judged_operations)
        verdicts.append(judge(own, header, bounds))
    return compose(verdicts)


def _judged_operations(rows: pa.Table, header: Header, bounds: Bounds) -> Verdict:
    return JUDGED[header.workload](operations(rows, keyed=True), header, bounds.budget)


def _judged_registers(rows: pa.Table, header: Header, bounds: Bounds) -> Verdict:
    """Judges at once which are surely right; the others one by one, to tell what is wrong."""
    if not may_begin_with_nil(initial_of(header.options)):  # columns know nil only
        return _judged_operations(rows, header, bounds)
    accesses, others = plain(rows, "read", "write")
    columns = register_columns(accesses)
    is_sound = sound(columns)
    names = [columns.keys[at] for at in np.flatnonzero(is_sound).tolist()]
    verdict = sound_verdict(names)
    if not is_sound.all():
        _, key = objects(accesses)
        broken = accesses.filter(pa.array(~is_sound[key]))
        others = pa.concat_tables([others, broken])
    if not len(others):
        return verdict
    return compose([verdict, _judged_operations(others, header, bounds)])


def _judged_queues(rows: pa.Table, header: Header, bounds: Bounds) -> Verdict:
    accesses, others = plain(rows, "enqueue", "dequeue")

    def of(left: Collection[str]) -> list[Operation]:
        names, key = objects(accesses)
        is_left = np.array([name in left for name in names], dtype=bool)
        return operations(accesses.filter(pa.array(is_left[key])), keyed=True)

    verdicts = []
    if len(accesses):
        verdict = check_queue_columns(queue_columns(accesses))
        verdicts.append(with_search(verdict, of, bounds.budget))
    if len(others):
        verdicts.append(_judged_operations(others, header, bounds))
    return compose(verdicts)


_BY_COLUMNS = {
    "cas-register": _judged_registers,
    "queue": _judged_queues,
    "register": _judged_registers,
}


def _judged_run(run: str, rows: pa.Table, header: Header, bounds: Bounds) -> Verdict:
    """Judge what concerns a run as a whole."""
    verdicts = [check_observations(lines(rows, "line"))]
    check = JUDGED.get(header.workload)
    if check is None:
        verdicts.append(Verdict.undecided(unknown(header.workload)))
    elif split_of(header.workload) is not Split.STEPS:
        verdicts.append(check(operations(rows, keyed=False), header, bounds.budget))
    for line in lines(rows, "lint"):
        count, wrong = line.value
        findings = [Finding(rule=r, object=o, detail=d, ops=tuple(ops)) for r, o, d, ops in wrong]
        verdicts.append(disbelieved(findings, count))
    return of_run(run, compose(verdicts))


def _parts(rows: pa.Table, *columns: str) -> Iterator[tuple[tuple[str, ...], pa.Table]]:
    """The rows that are equal in these columns; nearly always all of them, or neighbours."""
    codes = np.zeros(len(rows), dtype=np.int64)
    for column in columns:
        encoded = rows.column(column).combine_chunks().dictionary_encode()
        codes = codes * max(1, len(encoded.dictionary)) + encoded.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    for start, end in pairwise([*starts.tolist(), len(codes)]):
        mine = order[start:end]
        is_stretch = int(mine[-1] - mine[0]) + 1 == len(mine)
        part = rows.slice(int(mine[0]), len(mine)) if is_stretch else rows.take(pa.array(mine))
        yield tuple(part.column(column)[0].as_py() for column in columns), part


Batches = Iterable[pa.RecordBatch]
_OBJECT = ("run", "object")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """Goes to the workers as it is."""

    bounds: Bounds
    rows: int  # judged in one pass, or so
    with_names: bool  # of objects that are valid

    def of(self, batches: Batches) -> Iterator[tuple[str | None, str | None]]:
        """A verdict as JSON, or why the history makes no sense."""
        limit_memory(self.bounds.mb)
        for table in whole_objects(batches, self.rows):
            try:
                yield encoded(judged(table, self.bounds), with_names=self.with_names), None
            except MalformedHistory as error:
                yield None, str(error)


def whole_objects(batches: Batches, rows: int) -> Iterator[pa.Table]:
    """Tables of whole objects, of at least `rows` rows each but the last."""
    waiting: list[pa.RecordBatch] = []
    held = 0
    last = None
    for batch in filter(len, batches):
        border = _last_border(batch)
        is_border = border > 0 or _object_at(batch, 0) != last
        if is_border and held + border >= rows:
            yield pa.Table.from_batches([*waiting, batch.slice(0, border)])
            waiting, held, batch = [], 0, batch.slice(border)
        waiting.append(batch)
        held += len(batch)
        last = _object_at(batch, -1)
    if held:
        yield pa.Table.from_batches(waiting)


def _last_border(batch: pa.RecordBatch) -> int:
    """Where the last object begins."""
    is_last = np.ones(len(batch), dtype=bool)
    for column in _OBJECT:
        encoded = batch.column(column).dictionary_encode().indices.to_numpy()
        is_last &= encoded == encoded[-1]
    others = np.flatnonzero(~is_last)
    return int(others[-1]) + 1 if len(others) else 0


def _object_at(batch: pa.RecordBatch, row: int) -> tuple[str, ...]:
    return tuple(batch.column(column)[row].as_py() for column in _OBJECT)


def limit_memory(mb: int) -> None:
    """Limits this worker from now on: what would take more raises MemoryError at once."""
    if not sys.platform.startswith("linux"):
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = pages * resource.getpagesize() + (mb << 20)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
