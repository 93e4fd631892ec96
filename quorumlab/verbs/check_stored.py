"""`quorumlab check` of what only Spark reads: in S3, in HDFS, in a table of a catalog."""

from collections.abc import Sequence
from types import SimpleNamespace

from jepsen_like.checkers.judges import JUDGED
from jepsen_like.checkers.verdict import Finding, Verdict
from jepsen_like.histories.history import MalformedHistory, Op
from quorumlab.arguments import Failed, UsageError
from quorumlab.histories import VERDICT, void_in
from quorumlab.output import Progress
from quorumlab.verbs.check_spark import PlanReport, settings_of
from quorumlab.verbs.check_verdict import conclude
from spark.places import is_table
from spark.session import OutputExists, SparkUnavailable, session

__all__ = ["run_in_store"]


def run_in_store(args: SimpleNamespace, target: str) -> int:
    """Raises `Failed` and `UsageError`."""
    _refuse_options(args, target)
    try:
        verdict, void = _judged(args, target)
    except SparkUnavailable as error:
        raise Failed(str(error)) from error
    return conclude(
        args,
        verdict,
        void,
        history=target,
        evidence=_none,
        write=lambda: None,
        target=None,
    )


def _refuse_options(args: SimpleNamespace, target: str) -> None:
    if args.on == "local":
        raise UsageError(f"--on local: only Spark reads {target}")
    for option in ("initial", "isolation", "report", "export", "trust_failures"):
        if getattr(args, option):
            raise UsageError(f"--{option.replace('_', '-')}: only of a history on this machine")
    if args.model is not None and args.model not in JUDGED:
        raise UsageError("a model of your own is judged by without Spark")
    if args.model is not None and is_table(target):
        raise UsageError("--model: a table is judged as what it was made as")


def _none(findings: Sequence[Finding]) -> Sequence[Sequence[Op]]:
    """The lines of the history, which are not here."""
    return [()] * len(findings)


def _judged(args: SimpleNamespace, target: str) -> tuple[Verdict, Sequence[str]]:
    progress = Progress()
    settings = settings_of(args)
    progress(f"starting Spark on {settings.where}")
    try:
        with session(settings) as spark:
            from spark.stored import NothingThere, beside_histories, check_stored

            told = PlanReport(progress, is_told=args.format == "table")
            told.begin("Spark counts what there is")
            try:
                texts = beside_histories(spark, target, VERDICT)
                verdict = check_stored(
                    spark,
                    [target],
                    settings,
                    model=args.model,
                    said=told.show_plan,
                    progress=told.show_share,
                    verdicts=args.verdicts,
                )
            except (MalformedHistory, NothingThere) as error:
                raise Failed(str(error)) from error
            void = [f"{path}: {why}" for path, text in texts.items() for why in void_in(text, path)]
            return verdict, void
    except OutputExists as error:
        raise Failed(f"--verdicts {error}") from error
    finally:
        progress.done()
