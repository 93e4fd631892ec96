"""`quorumlab check TARGET`: the verdict on a history, with the operations that break a rule.

Exit codes: 0 valid, 1 no history, 2 usage, 4 violated, 5 undecided or void: it proves nothing.
"""

import importlib.util
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from jepsen_like.checkers import judge
from jepsen_like.checkers.judges import JUDGED
from jepsen_like.checkers.models import Model
from jepsen_like.checkers.operations import paired
from jepsen_like.checkers.search import Budget
from jepsen_like.checkers.verdict import Finding, Outcome
from jepsen_like.histories.history import History, Kind, MalformedHistory, Op
from quorumlab.arguments import Failed, UsageError, did_you_mean
from quorumlab.histories import TABLE, Found, find_history, histories_in
from quorumlab.output import say, say_folded
from quorumlab.verbs.check_spark import run_on_spark
from quorumlab.verbs.check_stored import run_in_store
from quorumlab.verbs.check_verdict import asked_in, conclude, refuse_other_report, write_page
from quorumlab.verbs.judging_options import LOCAL_MB
from spark.places import is_in_store
from spark.session import Settings, SparkUnavailable

__all__ = ["own_model", "run", "running"]

_SPARK = Settings()  # the defaults
_GRAVE_LAST = [each.exit_code for each in (Outcome.VALID, Outcome.UNDECIDED, Outcome.VIOLATED)]
_LOCAL_RUNS = 1


def _refuse_unknown_model(model: str | None) -> None:
    if model is not None and model not in JUDGED and not _is_own(model):
        known = ", ".join(sorted(JUDGED))
        nearest = did_you_mean(model, JUDGED)
        raise UsageError(f"--model: no {model!r}: {nearest}there are {known}, and FILE:NAME")


def _is_own(model: str | None) -> bool:
    return model is not None and ":" in model


def _refuse_contradictions(args: SimpleNamespace, *, on_spark: bool) -> None:
    if args.on == "local" and on_spark:
        raise UsageError("--on local: --master, --remote and --verdicts are for Spark")


def run(args: SimpleNamespace) -> int:
    _refuse_unknown_model(args.model)
    refuse_other_report(args)
    if args.master and args.remote:
        raise UsageError("--master and --remote: name one of them")
    if any(map(is_in_store, args.target)):
        return _run_in_store(args)
    return _run_here(args)


def _run_in_store(args: SimpleNamespace) -> int:
    if len(args.target) > 1:
        raise UsageError("what only Spark reads is judged by itself: name one target")
    return run_in_store(args, args.target[0])


def _run_here(args: SimpleNamespace) -> int:
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


def _refuse_beside_table(args: SimpleNamespace) -> None:
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
    return len(histories) > _LOCAL_RUNS or size > LOCAL_MB << 20


def _run_locally(args: SimpleNamespace) -> int:
    """One target after the other; returns the gravest of their codes."""
    for option, what in (("report", "page"), ("export", "picture")):
        if getattr(args, option) is not None and len(args.target) > 1:
            raise UsageError(f"--{option}: the {what} of one history; name one")
    codes = [_judge_target(args, target) for target in args.target]
    return max(codes, key=_GRAVE_LAST.index)


def _judge_target(args: SimpleNamespace, target: str) -> int:
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
        write=lambda: write_page(args, Path(target), found, verdict),
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
    say_folded(f"history  {found.path}: {workload}, seed {history.header.seed}, {told}{cut}")


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
