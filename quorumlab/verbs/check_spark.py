"""`quorumlab check` on Spark: many runs, or one that is too large for this process."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from jepsen_like.checkers.verdict import Finding, Verdict
from jepsen_like.histories.history import MalformedHistory, Op
from jepsen_like.installation import install_command
from quorumlab.arguments import Failed, UsageError
from quorumlab.histories import Asked, Table, find_history, histories_in, operations_of, tables_of
from quorumlab.output import Progress, say
from quorumlab.verbs.check_verdict import asked_in, conclude, write_page
from spark.session import OutputExists, Settings, SparkUnavailable, is_installed, session

if TYPE_CHECKING:
    from spark.plan import Plan

__all__ = ["PlanReport", "run_on_spark", "settings_of"]


def run_on_spark(args: SimpleNamespace) -> int:
    """Raises `SparkUnavailable` before anything is done."""
    if not is_installed():
        raise SparkUnavailable(f"Spark is not installed: {install_command('spark')}")
    progress = Progress()
    histories = [history for target in args.target for history in histories_in(target)]
    target = args.target[0] if len(histories) == 1 else None
    asked_for = [name for name in ("report", "export") if getattr(args, name) is not None]
    if asked_for and target is None:
        many = " ".join(args.target)
        raise UsageError(f"--{asked_for[0]}: {many} has many histories; name the directory of one")
    asked = asked_in(args)
    with tables_of(args.target, progress, asked) as tables:
        verdict = _checked(
            tables,
            settings_of(args),
            progress,
            is_told=args.format == "table",
            verdicts=args.verdicts,
        )
        void = [f"{table.run}: {why}" for table in tables for why in table.void]
        if len(tables) == 1:
            void = list(tables[0].void)

        def write() -> Path | None:
            """Only if it is asked for: whoever judges elsewhere may not want to read it here."""
            if not asked_for or target is None:
                return None
            return write_page(args, Path(target), find_history(target, asked), verdict)

        return conclude(
            args,
            verdict,
            void,
            history=" ".join(args.target),
            evidence=lambda findings: _evidence_in(findings, tables, asked),
            write=write,
            target=target,
        )


def settings_of(args: SimpleNamespace) -> Settings:
    return Settings(
        master=args.master or Settings().master,
        remote=args.remote,
        worker_mb=args.worker_memory,
        seconds=args.timeout,
        search_seconds=args.seconds,
    )


class PlanReport:
    """It tells the plan before anything is judged, and then how far Spark is with each stage."""

    def __init__(self, progress: Progress, *, is_told: bool) -> None:
        self._progress = progress
        self._is_told = is_told
        self._doing = ""

    def begin(self, doing: str) -> None:
        self._doing = doing
        self._progress(doing)

    def show_plan(self, plan: "Plan") -> None:
        self._progress.done()
        if self._is_told:
            for line in plan.lines():
                say(line)
        self.begin(f"Spark judges {plan.rows:,} rows")

    def show_share(self, share: float) -> None:
        """Between two stages Spark works on none."""
        if share:
            self._progress(f"{self._doing}: {share:.0%} of this stage")


def _checked(
    tables: Sequence[Table],
    settings: Settings,
    progress: Progress,
    *,
    is_told: bool,
    verdicts: str | None,
) -> Verdict:
    from spark.checks import UnreadableTable, check

    told = PlanReport(progress, is_told=is_told)
    progress(f"starting Spark on {settings.where}")
    try:
        with session(settings) as spark:
            told.begin("Spark counts what there is")
            paths = [table.path for table in tables]
            return check(
                spark,
                paths,
                settings,
                said=told.show_plan,
                progress=told.show_share,
                verdicts=verdicts,
            )
    except OutputExists as error:
        raise Failed(f"--verdicts {error}") from error
    except (MalformedHistory, UnreadableTable) as error:
        raise Failed(str(error)) from error
    finally:
        progress.done()


def _evidence_in(
    findings: Sequence[Finding], tables: Sequence[Table], asked: Asked
) -> Sequence[Sequence[Op]]:
    """Reads each history once; finds nothing where only the table is there."""
    lines: dict[str, dict[int, Op]] = {}
    for table in tables:
        mine = [each for each in findings if _is_of(each, table, tables)]
        wanted = {index for finding in mine for index in finding.ops}
        if wanted and table.history is not None:
            with operations_of(table.history, asked) as (_, ops):
                lines[table.run] = {op.index: op for op in ops if op.index in wanted}
    return [
        [
            lines[table.run][index]
            for table in tables
            if _is_of(finding, table, tables) and table.run in lines
            for index in finding.ops
            if index in lines[table.run]
        ]
        for finding in findings
    ]


def _is_of(finding: Finding, table: Table, tables: Sequence[Table]) -> bool:
    return len(tables) == 1 or finding.object.startswith(f"{table.run}: ")
