"""`quorumlab check TARGET --on spark`: one history, or all below a directory, on any master."""

import argparse
from collections.abc import Sequence

from jepsen_like.checkers.verdict import Finding, Verdict, as_json
from jepsen_like.histories.history import MalformedHistory, Op
from jepsen_like.installation import install_command
from quorumlab.arguments import positive
from quorumlab.histories import Asked, Table, histories_in, operations_of, tables_of
from quorumlab.output import Progress, print_json, say
from quorumlab.verb_errors import Failed, UsageError
from quorumlab.verbs.check_report import asked_in, write_asked_page
from quorumlab.verbs.check_telling import exit_code, tell, tell_how_to_look_closer
from spark.session import Settings, SparkUnavailable, is_installed, session

__all__ = ["add_spark_arguments", "run_on_spark"]

_DEFAULTS = Settings()


def add_spark_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--master",
        metavar="URL",
        help=f"Spark's, such as spark://host:7077 (default: {_DEFAULTS.master})",
    )
    parser.add_argument(
        "--timeout",
        type=positive,
        default=_DEFAULTS.seconds,
        metavar="N",
        help=f"seconds until Spark's job is given up (default: {_DEFAULTS.seconds:.0f})",
    )
    parser.add_argument(
        "--worker-memory",
        type=int,
        default=_DEFAULTS.worker_mb,
        metavar="MB",
        help=f"of each Python worker of Spark, at most (default: {_DEFAULTS.worker_mb})",
    )


def run_on_spark(args: argparse.Namespace) -> int:
    """Raises `SparkUnavailable` before anything is done."""
    if not is_installed():
        raise SparkUnavailable(f"Spark is not installed: {install_command('spark')}")
    progress = Progress()
    settings = Settings(
        master=args.master or _DEFAULTS.master,
        worker_mb=args.worker_memory,
        seconds=args.timeout,
        search_seconds=args.seconds,
    )
    if args.report is not None and len(histories_in(args.target)) > 1:
        raise UsageError(f"--report: {args.target} has many histories; name the directory of one")
    asked = asked_in(args)
    with tables_of(args.target, progress, asked) as tables:
        verdict = _checked(tables, settings, progress, is_told=args.format == "table")
        void = [f"{table.run}: {why}" for table in tables for why in table.void]
        if len(tables) == 1:
            void = list(tables[0].void)
        if args.format == "table":
            tell(verdict, void, lambda findings: _evidence(findings, tables, asked))
        page = write_asked_page(args, verdict)
        if args.format == "table":
            tell_how_to_look_closer(args.target if len(tables) == 1 else None, verdict, page)
        else:
            told = {
                "history": args.target,
                "void": void,
                "report": None if page is None else str(page),
                **as_json(verdict),
            }
            print_json(told, form=args.format)
    return exit_code(verdict, void)


def _checked(
    tables: Sequence[Table], settings: Settings, progress: Progress, *, is_told: bool
) -> Verdict:
    from spark.checks import UnreadableTable, check
    from spark.plan import Plan

    def say_plan(plan: Plan) -> None:
        progress.done()
        if is_told:
            for line in plan.lines():
                say(line)
        progress(f"Spark judges {plan.rows:,} rows")

    progress(f"starting Spark on {settings.master}")
    try:
        with session(settings) as spark:
            progress("Spark counts what there is")
            return check(spark, [table.path for table in tables], settings, said=say_plan)
    except (MalformedHistory, UnreadableTable) as error:
        raise Failed(str(error)) from error
    finally:
        progress.done()


def _evidence(
    findings: Sequence[Finding], tables: Sequence[Table], asked: Asked
) -> Sequence[Sequence[Op]]:
    """From the histories themselves, each read once; none where only the table is there."""
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
