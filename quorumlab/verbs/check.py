"""`quorumlab check TARGET`: the verdict on a history, with the operations that break a rule.

Exit codes: 0 valid, 1 no history, 2 usage, 4 violated, 5 undecided or void: it proves nothing.
"""

import argparse
import importlib.util
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

from jepsen_like.checkers import judge
from jepsen_like.checkers.isolation_levels import LEVELS, STRICT
from jepsen_like.checkers.judges import JUDGED
from jepsen_like.checkers.models import Model
from jepsen_like.checkers.operations import paired
from jepsen_like.checkers.search import Budget
from jepsen_like.checkers.verdict import Finding, Outcome
from jepsen_like.histories.history import History, Kind, MalformedHistory, Op, Value
from quorumlab.arguments import Failed, UsageError, declare, did_you_mean
from quorumlab.histories import TABLE, Found, find_history, histories_in
from quorumlab.output import FORMAT, say
from quorumlab.verbs.check_spark import run_on_spark
from quorumlab.verbs.check_stored import run_in_store
from quorumlab.verbs.check_verdict import PAGE, asked_in, conclude, refuse_other_report, write_page
from spark.places import is_in_store
from spark.session import Settings, SparkUnavailable

__all__ = ["add_options", "own_model", "running"]

_SECONDS = 60.0
_SPARK = Settings()  # the defaults
_GRAVE_LAST = [each.exit_code for each in (Outcome.VALID, Outcome.UNDECIDED, Outcome.VIOLATED)]
_LOCAL_RUNS = 1
_LOCAL_MB = 50  # about a million operations: some ten seconds


def add_options(parser: argparse.ArgumentParser) -> None:
    about = "Judge a history. Exit codes: 0 valid, 4 violated, 5 undecided or void."
    table = f"""
        target TARGET [+]  a run's directory, ours or in Jepsen's store, one with many runs in it \
          (on Spark), or a .msgpack, .jepsen, .edn, .jsonl, .txt, .log or .parquet file; several \
          are judged together on Spark, and else one after the other; or one of these where only \
          Spark reads it: s3a://…, hdfs://…, and table:NAME of a catalog
        --on local|spark  the same rules judge; default: spark for many runs, or more than \
          {_LOCAL_MB} MB, if it is installed
        --master URL  Spark's, such as spark://host:7077 (default: {_SPARK.master})
        --remote URL  instead of a master, a Spark Connect server: sc://HOST:PORT
        --verdicts PATH  write the table of verdicts, as Parquet, or as table:NAME: where Spark \
          can write, and nothing is yet
        --timeout N [positive {_SPARK.seconds}]  seconds until Spark's job is given up \
          (default: {_SPARK.seconds:.0f})
        --worker-memory MB [{_SPARK.worker_mb}]  of each Python worker of Spark, at most \
          (default: {_SPARK.worker_mb})
        --model NAME [model]  what it is judged as, if not what it says: \
          {", ".join(sorted(JUDGED))}; or FILE:NAME, a Model of your own (see examples/)
        --seconds N [positive {_SECONDS}]  for searches, all together; then undecided; on Spark as \
          many steps of each as one may take in it (default: {_SECONDS:.0f})
        --initial VALUE [initial]  what registers hold before anybody writes, as JSON or a text \
          (default: nil; of a history of others it is not known)
        --isolation {"|".join(LEVELS)}  what transactions of reads and writes were promised \
          (default: {STRICT})
        --trust-failures  what failed did not happen, even if it says that it timed out; the \
          verdict counts these
        --report FILE  write what happened as one HTML page (default, if a run's directory is \
          judged here and is violated: {PAGE} in it)
        {FORMAT}"""
    declare(parser, run, table, about, model=_model, initial=_initial)
    parser.set_defaults(initial=())


def _model(text: str) -> str:
    if text not in JUDGED and not _is_own(text):
        known = ", ".join(sorted(JUDGED))
        nearest = did_you_mean(text, JUDGED)
        raise argparse.ArgumentTypeError(f"no {text!r}: {nearest}there are {known}, and FILE:NAME")
    return text


def _initial(text: str) -> Sequence[Value]:
    if text == "nil":
        return (None,)
    try:
        return (json.loads(text),)
    except ValueError:
        return (text,)


def _is_own(model: str | None) -> bool:
    return model is not None and ":" in model


def _refuse_contradictions(args: argparse.Namespace, *, on_spark: bool) -> None:
    if args.on == "local" and on_spark:
        raise UsageError("--on local: --master, --remote and --verdicts are for Spark")


def run(args: argparse.Namespace) -> int:
    refuse_other_report(args)
    if args.master and args.remote:
        raise UsageError("--master and --remote: name one of them")
    if any(map(is_in_store, args.target)):
        return _run_in_store(args)
    return _run_here(args)


def _run_in_store(args: argparse.Namespace) -> int:
    if len(args.target) > 1:
        raise UsageError("what only Spark reads is judged by itself: name one target")
    return run_in_store(args, args.target[0])


def _run_here(args: argparse.Namespace) -> int:
    """What is on this machine."""
    on_spark = args.on == "spark" or any((args.master, args.remote, args.verdicts))
    if _is_own(args.model):
        if on_spark:
            raise UsageError("a model of your own is judged by without Spark")
        if args.initial:
            raise UsageError("--initial: a model of your own says itself what it begins with")
        return _run_locally(args)
    histories = [history for target in args.target for history in histories_in(target)]
    if any(history.suffix == TABLE for history in histories):
        _refuse_beside_table(args)
        on_spark = True
    _refuse_contradictions(args, on_spark=on_spark)
    if args.on == "local" or not (on_spark or _is_much(histories)):
        return _run_locally(args)
    try:
        return run_on_spark(args)
    except SparkUnavailable as error:
        if on_spark:
            raise Failed(str(error)) from error
        say(f"judged without Spark: {error}", sys.stderr)
        return _run_locally(args)


def _refuse_beside_table(args: argparse.Namespace) -> None:
    if args.on == "local":
        targets = " ".join(args.target)
        raise UsageError(f"--on local: {targets} is a table, which only Spark reads")
    for option in ("model", "initial", "isolation", "trust_failures"):
        if getattr(args, option):
            name = option.replace("_", "-")
            what = "a table is judged as what it was made as; name its history"
            raise UsageError(f"--{name}: {what}")


def _is_much(histories: Sequence[Path]) -> bool:
    """Spark takes seconds to start, in which much of this is judged already."""
    size = sum(history.stat().st_size for history in histories)
    return len(histories) > _LOCAL_RUNS or size > _LOCAL_MB << 20


def _run_locally(args: argparse.Namespace) -> int:
    """One target after the other; returns the gravest of their codes."""
    if args.report is not None and len(args.target) > 1:
        raise UsageError("--report: the page of one history; name one")
    codes = [_judge_target(args, target) for target in args.target]
    return max(codes, key=_GRAVE_LAST.index)


def _judge_target(args: argparse.Namespace, target: str) -> int:
    model = own_model(args.model) if _is_own(args.model) else None
    found = find_history(target, asked_in(args))
    deadline = time.monotonic() + args.seconds
    budget = Budget(is_late=lambda: time.monotonic() > deadline)
    try:
        with nullcontext() if model is None else running(args.model):
            verdict = judge(found.history, budget, model=model)
    except MalformedHistory as error:
        raise Failed(f"{found.path}: {error}") from error
    if args.format == "table":
        _tell_history(found)
    return conclude(
        args,
        verdict,
        found.void,
        history=str(found.path),
        evidence=partial(_evidence, found.history),
        write=lambda: write_page(args.report, Path(target), found, verdict),
        target=target,
    )


def _tell_history(found: Found) -> None:
    history = found.history
    kinds = Counter(each.kind for each in paired(history.ops))
    told = (
        f"{kinds[Kind.OK]:,} operations ok, {kinds[Kind.FAIL]:,} failed, {kinds[Kind.INFO]:,}"
        f" unknown, in {len(history.ops):,} lines"
    )
    cut = "; the last operation is torn" if history.is_cut else ""
    workload = history.header.workload or "of what, nobody says"
    say(f"history  {found.path}: {workload}, seed {history.header.seed}, {told}{cut}")


def _evidence(history: History, findings: Sequence[Finding]) -> Sequence[Sequence[Op]]:
    wanted = {index for finding in findings for index in finding.ops}
    shown = {op.index: op for op in history.ops if op.index in wanted}
    return [[shown[index] for index in finding.ops if index in shown] for finding in findings]


# --- a model of somebody's own ---------------------------------------------------------------


def own_model(named: str) -> Model:
    """Runs the file. Raises `UsageError` where there is no such model in it."""
    file, _, name = named.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"--model {named}: there is no file {file}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"--model {named}: {file} is no Python file: its name must end with .py")
    module = importlib.util.module_from_spec(spec)
    with running(named):
        spec.loader.exec_module(module)
    model = getattr(module, name, None)
    if isinstance(model, Model):
        return model
    there = sorted(each for each, value in vars(module).items() if isinstance(value, Model))
    found = f"it has {', '.join(there)}" if there else "it has no Model at all"
    raise UsageError(f"--model {named}: {name or 'nothing'} is no Model in {file}; {found}")


@contextmanager
def running(named: str) -> Iterator[None]:
    """Surrounds code of the model. Raises `UsageError` for whatever that raises."""
    try:
        yield
    except MalformedHistory:
        raise
    except (Exception, SystemExit) as error:  # it is somebody else's
        what = f"{type(error).__name__}: {error}"
        raise UsageError(f"--model {named} does not run: {what}") from error
