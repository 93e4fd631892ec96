"""Histories in, verdicts out: tables that a program has, on any Spark session that it has.

    from quorumlab import findings, judge

    verdicts = judge(session.read.parquet("…"))        # nothing is run yet
    findings(session.read.parquet("…")).show()

The session may be a classic one, of `spark-submit` or a notebook, or one of Spark Connect: nothing
is asked of it that only one of them has, and it is neither configured nor stopped. A table of
histories has the columns of `spark.schema`, that of verdicts those of `spark.verdict_rows`.

    histories --by object--> sorted, many objects in one pass --> rows --by run--> verdicts
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame

from jepsen_like.checkers.anomalies import ANOMALIES
from jepsen_like.checkers.judges import JUDGED, Split, split_of
from jepsen_like.checkers.models import ILLEGAL, Model
from jepsen_like.checkers.operations import Operation
from spark.judging import Judging, Limits
from spark.schema import ORDER, SCHEMA, ddl_of, sql_of
from spark.shipping import ship
from spark.verdict_rows import TOLD, VERDICTS

__all__ = [
    "WrongSchema",
    "believed",
    "brought_along",
    "findings",
    "judge",
    "selected",
    "told_of",
]

Models = Collection[str] | Mapping[str, Model]
_VERSION = "schema"  # the column in which rows may say of which version they are
_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})


class WrongSchema(ValueError):
    """The table is none of histories; the message names the columns."""


def judge(
    histories: DataFrame, models: Models | None = None, *, limits: Limits | None = None
) -> DataFrame:
    """The verdicts on these histories, as a table that is made when it is used.

    `models`: names of those that shall be judged, and no others; or models of your own, by the
    workload that they judge, and all others as ever. Columns that may be null may be left out of
    `histories`. Raises `WrongSchema`, and `ValueError` for models that cannot be.

    An object that cannot be judged (it needs more than the `limits`, or makes no sense) is
    undecided, and no other is.
    """
    own = brought_along(models) if isinstance(models, Mapping) else {}
    rows = selected(histories)
    if models is not None and not isinstance(models, Mapping):
        rows = rows.filter(f"workload in ({', '.join(map(_quoted, _known(models)))})")
    return believed(_told(rows, Judging(limits=limits or Limits(), models=own)))


def told_of(histories: DataFrame, limits: Limits) -> DataFrame:
    """What the workers tell of objects: verdicts, once they are `believed`."""
    return _told(selected(histories), Judging(limits=limits))


def findings(
    histories: DataFrame, models: Models | None = None, *, limits: Limits | None = None
) -> DataFrame:
    """The verdicts that show a broken rule, with what the rule `says`."""
    says = ", ".join(f"{_quoted(rule)}, {_quoted(each.says)}" for rule, each in ANOMALIES.items())
    found = judge(histories, models, limits=limits).filter("rule is not null")
    return found.selectExpr("*", f"map({says})[rule] as says")


def believed(told: DataFrame) -> DataFrame:
    """What the workers tell of objects becomes verdicts: that needs all that is told of a run.

    A run whose history is wrong itself accuses nobody. One in which nothing that is judged was ok
    shows nothing: then the row that says so is kept.
    """
    of_run = "over (partition by run)"
    marked = told.selectExpr(
        "*",
        f"max(coalesce(startswith(rule, 'lint-'), false)) {of_run} as lies",
        f"coalesce(max(shows) {of_run}, true) as is_shown",
        "row_number() over (partition by run order by shows nulls last) as place",
    )
    kept = marked.filter("outcome is not null or (not is_shown and not lies and place = 1)")
    accuses = "(lies and outcome = 'violated')"
    because = "'the history of its run is wrong itself'"
    changed = {
        "outcome": f"case when outcome is null or {accuses} then 'undecided' else outcome end",
        "reason": f"case when {accuses} then coalesce(reason, {because}) else reason end",
    }
    return kept.selectExpr(
        *(f"{changed.get(name, f'`{name}`')} as `{name}`" for name in VERDICTS.names)
    )


def _told(rows: DataFrame, judging: Judging) -> DataFrame:
    session = rows.sparkSession
    ship(session)
    wanted = judging.limits.tasks or session.conf.get("spark.sql.shuffle.partitions") or 1
    moved = rows.repartition(int(wanted), "run", "object")
    ordered = moved.sortWithinPartitions("run", *ORDER)
    return ordered.mapInArrow(judging.told, ddl_of(TOLD))


def selected(histories: DataFrame) -> DataFrame:
    """The columns that are needed, in their order. Only their names and types are looked at.

    Raises `WrongSchema`.
    """
    there = {field.name: field.dataType.simpleString() for field in histories.schema.fields}
    return histories.selectExpr(*_columns(there))


def _columns(there: Mapping[str, str]) -> Iterator[str]:
    wrong = []
    for field in SCHEMA:
        wanted = sql_of(field.type)
        found = there.get(field.name)
        if found is None and not field.nullable:
            wrong.append(f"{field.name} is missing")
        elif found not in (None, wanted) and not (wanted == "bigint" and found in _INTEGERS):
            wrong.append(f"{field.name} is {found}, not {wanted}")
        of = "null" if found is None else f"`{field.name}`"
        yield f"cast({of} as {wanted}) as `{field.name}`"
    if _VERSION in there:
        yield f"cast(`{_VERSION}` as bigint) as `{_VERSION}`"
    if wrong:
        raise WrongSchema(f"no table of histories: {'; '.join(wrong)}")


def brought_along(models: Mapping[str, Model]) -> dict[str, Model]:
    """As they go to the workers."""
    cut = [name for name in models if split_of(name) is Split.STEPS]
    if cut:
        raise ValueError(f"{cut[0]}: its operations are cut apart: no model can judge them")
    return {name: replace(model, step=_Brought(model.step)) for name, model in models.items()}


@dataclass(frozen=True, slots=True)
class _Brought:
    """The step of a model that may come by value, as those of a notebook do. Its ILLEGAL is then a
    copy of ours, which comes with it."""

    step: Callable[[Any, Operation], Any]
    illegal: Any = ILLEGAL

    def __call__(self, state: Any, operation: Operation) -> Any:
        after = self.step(state, operation)
        return ILLEGAL if after is self.illegal else after


def _known(models: Collection[str]) -> list[str]:
    unknown = sorted(set(models) - set(JUDGED))
    if unknown or not models:
        known = ", ".join(sorted(JUDGED))
        raise ValueError(f"no model {', '.join(unknown) or 'is named'}: there are {known}")
    return sorted(models)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
