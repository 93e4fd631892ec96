"""What a worker does: it judges the objects of a batch of rows, all in one pass.

No rule is here: the pure checkers judge, and this only brings rows to them and bounds what they
take. Names of objects carry their run where several runs are judged in one pass.

Spark cuts its batches anywhere. Here they are put together until they hold enough rows, and cut
where one object ends and the next begins. Rows of an object must follow one another.

What cannot be judged is undecided, alone: an object that is too large, or makes no sense, hides
nothing that is found in others. No clock is looked at, so that every worker says the same.
"""

import json
import resource
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jepsen_like.checkers.judges import (
    JUDGED,
    LOOKED_AT,
    Split,
    disbelieved,
    judge_log,
    shows_nothing,
    split_of,
    unknown,
)
from jepsen_like.checkers.models import Model
from jepsen_like.checkers.observations import check_observations
from jepsen_like.checkers.operations import Operation
from jepsen_like.checkers.queues import check_queue_columns, with_search
from jepsen_like.checkers.registers import initial_of, may_begin_with_nil
from jepsen_like.checkers.search import Budget, check_as
from jepsen_like.checkers.verdict import Finding, Verdict, compose
from jepsen_like.checkers.zones import sound, sound_verdict
from jepsen_like.histories.history import Header, Kind
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
from spark.schema import SCHEMA, VERSION
from spark.verdict_rows import Part, VerdictRow, batch_of, rows_of

__all__ = ["Batches", "Judging", "Limits", "judged", "limited_memory", "whole_objects"]

_OBSERVE = "observe"  # the model that observations are judged as, in whatever run they are
_TO_JUDGE = 2  # judging rows takes as much memory again as they do


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What judging may take. Two workers with the same rows and limits say the same."""

    mb: int = 6144  # address space of one worker, beside what it has already
    steps: int = Budget().steps  # of the search of one object; then it is undecided
    rows: int = 200_000  # judged in one pass, or so
    tasks: int | None = None  # None: spark.sql.shuffle.partitions

    @property
    def bytes(self) -> int:
        return self.mb << 20

    @property
    def budget(self) -> Budget:
        return Budget(steps=self.steps)


def judged(rows: pa.Table, limits: Limits) -> Verdict:
    """The verdict on whole objects, which are named with their runs."""
    return compose(part.named for part in Judging(limits=limits).parts(rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class TooLarge:
    """An object of which no worker can hold all rows."""

    run: str
    object: str
    model: str
    rows: int

    def part(self, limits: Limits) -> Part:
        why = f"{self.rows} rows need more than the {limits.mb} MB that a worker may take"
        return _doubted(self.run, self.object, self.model, why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """Goes to the workers as it is. `models` are somebody's own, by the workload they judge."""

    limits: Limits
    models: Mapping[str, Model] = field(default_factory=dict)

    def told(self, batches: "Batches") -> Iterator[pa.RecordBatch]:
        """Rows of verdicts."""
        with limited_memory(self.limits.mb):
            for each in whole_objects(batches, self.limits):
                begun = time.process_time()
                told = list(self._told(each))
                if told:
                    seconds = time.process_time() - begun
                    yield batch_of([told[0]._replace(seconds=seconds), *told[1:]])

    def _told(self, each: "pa.Table | TooLarge") -> Iterator[VerdictRow]:
        parts = [each.part(self.limits)] if isinstance(each, TooLarge) else self.parts(each)
        for part in parts:
            yield from rows_of(part)
        if not isinstance(each, TooLarge):
            yield from _shown(each)

    def parts(self, rows: pa.Table) -> list[Part]:
        """What is not to be judged with the others is tried with fewer of them, and then alone."""
        try:
            # The system's limit alone would let some pass, with memory that was freed before.
            if rows.nbytes > self.limits.bytes:
                raise MemoryError
            return list(self._at_once(rows))
        except MemoryError:
            why = None
        except ValueError as error:  # also MalformedHistory
            why = f"it makes no sense: {error}"
        objects = [part for _, part in _parts(rows, "run", "object")]
        if len(objects) > 1:
            half = len(objects) // 2
            halves = map(pa.concat_tables, (objects[:half], objects[half:]))
            return [part for each in halves for part in self.parts(each)]
        alone = _first(rows, "run"), _first(rows, "object"), _first(rows, "workload")
        if why is not None:
            return [_doubted(*alone, why)]
        large = TooLarge(run=alone[0], object=alone[1], model=alone[2], rows=len(rows))
        return [large.part(self.limits)]

    def _at_once(self, rows: pa.Table) -> Iterator[Part]:
        if "schema" in rows.column_names:
            others = rows.filter(pc.not_equal(rows.column("schema"), VERSION))
            if len(others):
                version = others.column("schema")[0].as_py()
                raise ValueError(f"its rows are of version {version} of the schema, not {VERSION}")
        for (of, options), part in _parts(rows, "workload", "options"):
            header = Header(workload=of, seed=0, options=json.loads(options))
            yield from self._alike(part.select(SCHEMA.names), header)

    def _alike(self, rows: pa.Table, header: Header) -> Iterator[Part]:
        """Judges runs of one workload with the same options."""
        model, split = header.workload, split_of(header.workload)
        is_whole, own = pc.equal(rows.column("object"), WHOLE), rows
        if split is Split.STEPS:  # a log without a name has rows of its own kinds
            is_step = pc.is_in(rows.column("what"), pa.array(STEPS))
            is_whole = pc.and_not(is_whole, is_step)
        whole = rows.filter(is_whole)
        if len(whole):  # else a large table would be copied
            own = rows.filter(pc.invert(is_whole))
        for (run,), part in _parts(whole, "run"):
            yield Part(run, _OBSERVE, check_observations(lines(part, "line")))
            verdict = _judged_run(part, header, self.limits.budget, self.models.get(model))
            yield Part(run, model, verdict)
        if split is Split.STEPS and len(own):
            yield Part(_first(own, "run"), model, judge_log(log_columns(own), header), True)
        if split is Split.KEYS and len(own):
            mine = self.models.get(model)
            if mine is not None:
                found = check_as(operations(own, keyed=True), mine, self.limits.budget)
            else:
                judge = _BY_COLUMNS.get(model, _judged_operations)
                found = judge(own, header, self.limits.budget)
            yield Part(_first(own, "run"), model, found, True)


def _doubted(run: str, name: str, model: str, why: str) -> Part:
    if name == WHOLE:
        return Part(run, model, Verdict.undecided(why))
    return Part(run, model, Verdict.of([], doubts={name: why}))


def _first(rows: pa.Table, column: str) -> str:
    return str(rows.column(column)[0].as_py())


def _shown(rows: pa.Table) -> Iterator[VerdictRow]:
    """A row for each run, which is no verdict yet: whether what was ok in it shows anything."""
    for (workload,), of_workload in _parts(rows, "workload"):
        fs = LOOKED_AT.get(workload)
        what = of_workload.column("what")
        if fs is None:
            is_looked_at = pc.not_equal(what, "line")
        else:
            is_looked_at = pc.is_in(of_workload.column("f").cast(pa.string()), pa.array(sorted(fs)))
        is_ok = pc.equal(of_workload.column("kind"), Kind.OK.value)
        shows = pc.or_(pc.and_(is_ok, is_looked_at), pc.equal(what, "lint"))
        # As texts: Arrow groups by no names that several files have encoded.
        runs = pa.table({"run": of_workload.column("run").cast(pa.string()), "shows": shows})
        for told in runs.group_by("run").aggregate([("shows", "max")]).to_pylist():
            yield VerdictRow(
                run=told["run"],
                model=workload,
                reason=shows_nothing().reason,
                shows=told["shows_max"],
            )


def _judged_operations(rows: pa.Table, header: Header, budget: Budget) -> Verdict:
    return JUDGED[header.workload](operations(rows, keyed=True), header, budget)


def _judged_registers(rows: pa.Table, header: Header, budget: Budget) -> Verdict:
    """Judges at once which are surely right; the others one by one, to tell what is wrong."""
    if not may_begin_with_nil(initial_of(header.options)):  # columns know nil only
        return _judged_operations(rows, header, budget)
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
    return compose([verdict, _judged_operations(others, header, budget)])


def _judged_queues(rows: pa.Table, header: Header, budget: Budget) -> Verdict:
    accesses, others = plain(rows, "enqueue", "dequeue")

    def of(left: Collection[str]) -> list[Operation]:
        names, key = objects(accesses)
        is_left = np.array([name in left for name in names], dtype=bool)
        return operations(accesses.filter(pa.array(is_left[key])), keyed=True)

    verdicts = []
    if len(accesses):
        verdict = check_queue_columns(queue_columns(accesses))
        verdicts.append(with_search(verdict, of, budget))
    if len(others):
        verdicts.append(_judged_operations(others, header, budget))
    return compose(verdicts)


_BY_COLUMNS = {
    "cas-register": _judged_registers,
    "queue": _judged_queues,
    "register": _judged_registers,
}


def _judged_run(rows: pa.Table, header: Header, budget: Budget, model: Model | None) -> Verdict:
    """Judge what concerns a run as a whole."""
    verdicts = []
    check = JUDGED.get(header.workload)
    if model is not None:
        verdicts.append(check_as(operations(rows, keyed=False), model, budget))
    elif check is None:
        verdicts.append(Verdict.undecided(unknown(header.workload)))
    elif split_of(header.workload) is not Split.STEPS:
        verdicts.append(check(operations(rows, keyed=False), header, budget))
    for line in lines(rows, "lint"):
        count, wrong = line.value
        findings = [Finding(rule=r, object=o, detail=d, ops=tuple(ops)) for r, o, d, ops in wrong]
        verdicts.append(disbelieved(findings, count))
    trusted = [line.value for line in lines(rows, "trusted")]
    verdicts += [Verdict.of([], {"trusted failures": count}) for count in trusted]
    return compose(verdicts)


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


def whole_objects(batches: Batches, limits: Limits) -> "Iterator[pa.Table | TooLarge]":
    """Tables of whole objects, of at least `limits.rows` rows each but the last; of an object that
    is too large for a worker only what it is."""
    done: list[pa.RecordBatch] = []
    growing = _Growing(limits)
    for part, is_one in (part for batch in filter(len, batches) for part in _cut(batch)):
        if not growing.goes_on_with(part):
            if large := growing.ended(done):
                yield large
            if sum(map(len, done)) >= limits.rows:
                yield pa.Table.from_batches(done)
                done = []
            growing = _Growing(limits)
        if is_one:
            growing.add(part)
        else:
            done.append(part)
    if large := growing.ended(done):
        yield large
    if done:
        yield pa.Table.from_batches(done)


@dataclass(slots=True)
class _Growing:
    """An object of which more rows may come."""

    limits: Limits
    kept: list[pa.RecordBatch] = field(default_factory=list)
    first: pa.RecordBatch | None = None
    bytes: int = 0
    rows: int = 0

    def goes_on_with(self, batch: pa.RecordBatch) -> bool:
        return self.first is None or _object_at(batch, 0) == _object_at(self.first, 0)

    def add(self, batch: pa.RecordBatch) -> None:
        self.first = self.first or batch.slice(0, 1)
        self.rows += len(batch)
        self.bytes += batch.nbytes
        self.kept.append(batch)
        if self.is_large:
            self.kept.clear()

    @property
    def is_large(self) -> bool:
        return self.bytes > self.limits.bytes // _TO_JUDGE

    def ended(self, done: list[pa.RecordBatch]) -> TooLarge | None:
        if not self.is_large or self.first is None:
            done.extend(self.kept)
            return None
        model = self.first.column("workload")[0].as_py()
        run, name = _object_at(self.first, 0)
        return TooLarge(run=run, object=name, model=model, rows=self.rows)


def _cut(batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, bool]]:
    """The rows of its first object, those of others that are whole, and those of its last one;
    and whether these are of one object."""
    first, last = _borders(batch)
    yield batch.slice(0, first), True
    if first < last:
        yield batch.slice(first, last - first), False
    if last < len(batch) and first <= last:
        yield batch.slice(last), True


def _borders(batch: pa.RecordBatch) -> tuple[int, int]:
    """Where the first object ends, and where the last one begins."""
    is_first, is_last = np.ones((2, len(batch)), dtype=bool)
    for column in _OBJECT:
        encoded = batch.column(column).dictionary_encode().indices.to_numpy()
        is_first &= encoded == encoded[0]
        is_last &= encoded == encoded[-1]
    if is_first.all():
        return len(batch), len(batch)
    return int(np.argmin(is_first)), len(batch) - int(np.argmin(is_last[::-1]))


def _object_at(batch: pa.RecordBatch, row: int) -> tuple[str, str]:
    run, name = (batch.column(column)[row].as_py() for column in _OBJECT)
    return run, name


@contextmanager
def limited_memory(mb: int) -> Iterator[None]:
    """Meanwhile, what would take more raises MemoryError at once; then the worker is as it was:
    others may use it again."""
    if not sys.platform.startswith("linux"):
        yield
        return
    # Arrow's own allocators reserve far more than they use: no limit would be felt for long.
    pool = pa.default_memory_pool()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = pages * resource.getpagesize() + (mb << 20)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    pa.set_memory_pool(pa.system_memory_pool())
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        pa.set_memory_pool(pool)
