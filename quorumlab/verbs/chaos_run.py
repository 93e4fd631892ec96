"""`quorumlab chaos run`: real processes, real clients, faults, and a verdict on what they saw.

Exit codes: 0 valid, 4 violated, 5 void or undecided: it proves nothing.
"""

import secrets
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace

from jepsen_like.campaign import ADMIN_LOSES_BY
from jepsen_like.faults.kinds import KINDS, clash, kind_and_role
from jepsen_like.faults.message_rules import MESSAGE_KINDS
from jepsen_like.installation import command
from jepsen_like.real.credentials import NO_CREDENTIALS, Credentials
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.runs.chaos_run import execute
from jepsen_like.real.runs.directory import RunDirectory
from jepsen_like.real.runs.outcome import (
    Interrupted,
    Ran,
    Watcher,
    admitted_by,
    described,
    whose_document,
)
from jepsen_like.real.runs.run_options import KINDS_WITHOUT_PROCESSES, RunOptions
from jepsen_like.real.shape import why_no_engine
from jepsen_like.workloads.registry import WORKLOADS, why_no_workload
from quorum.raftos.engines import NATIVE
from quorumlab.arguments import UsageError
from quorumlab.client_properties import load_client_settings
from quorumlab.interrupts import Interrupt, interrupts
from quorumlab.output import Progress, number_of, print_json, say, say_folded
from quorumlab.verbs.chaos_options import FAULTS_OF_PROCESSES
from quorumlab.verbs.common import addresses, in_bounds, one_of, take_defaults
from wire.zk.designs import DESIGNS

__all__ = ["run"]

_FINDINGS_SHOWN = 10
_INDENT = 13  # where values begin
_SECONDS_MAX = 24 * 3600
_NODES_MAX = 9  # two cores carry no more, and what breaks nine breaks three
_INTERRUPTED = 130
_SIZES = {"controllers": 3, "zookeepers": 1, "brokers": 3}
_NEEDS_NODES = (
    "cas-register",
    "observe",
    "partition-epoch",
    "register",
)  # our own: they are asked by HTTP


def run(args: SimpleNamespace) -> int:
    options = _options(args)
    quiet = args.format != "table"
    if not quiet:
        _announce(options)
    with interrupts() as interrupt, _watched(args, options, quiet=quiet):
        watching = _Watching(interrupt)
        try:
            ran = execute(options, watching, _secured)
        except Interrupted:
            watching.done()
            left = "the run had not begun yet"
            if RunDirectory(options.directory).history.exists():
                judge = command("check", options.directory)
                left = f"the history is kept in {options.directory}; `{judge}` judges it"
            say(f"interrupted: {left}", sys.stderr)
            return _INTERRUPTED
        finally:
            watching.done()
    if quiet:
        print_json(described(options, ran), form=args.format)
    else:
        _tell(options, ran)
    return ran.exit_code


def _watched(
    args: SimpleNamespace, options: RunOptions, *, quiet: bool
) -> AbstractContextManager[None]:
    if args.watch is None:
        return nullcontext()
    from quorumlab.verbs.chaos_watch import watched

    stream = sys.stderr if quiet else None
    history = RunDirectory(options.directory).history
    return watched(history, lambda text: say(text, stream))


def _secured(cluster: LocalCluster) -> Credentials:
    """A plain cluster needs no certificates, nor what makes them."""
    if not cluster.layout.security:
        return NO_CREDENTIALS
    from quorumlab.verbs.secured_cluster import with_credentials

    return with_credentials(cluster)


class _Watching(Watcher):
    def __init__(self, interrupt: Interrupt) -> None:
        self._interrupt = interrupt
        self._shown = Progress()
        self.done = self._shown.done

    def progress(self, text: str) -> None:
        self._shown(text)

    def is_interrupted(self) -> bool:
        return self._interrupt.happened


# --- what is asked for -----------------------------------------------------------------------


def _options(args: SimpleNamespace) -> RunOptions:
    _refuse_design(args)
    _refuse_engine(args)
    one_of(sorted(WORKLOADS), "--workload", args.workload)
    if args.watch is not None:
        one_of(("spark",), "--watch", args.watch)
        from quorumlab.verbs.chaos_watch import refuse_unwatchable

        refuse_unwatchable(args.workload)
    for name, why in _without_effect(args).items():
        if getattr(args, name):
            raise UsageError(f"--{name}: {why}")
    take_defaults(args, _SIZES)
    in_bounds(
        args,
        seconds=(1, _SECONDS_MAX),
        controllers=(1, _NODES_MAX),
        brokers=(1, _NODES_MAX),
        zookeepers=(1, _NODES_MAX),
    )
    servers: Sequence[tuple[str, int]] = ()
    if args.bootstrap_server:
        servers = tuple(addresses(args.bootstrap_server, "--bootstrap-server"))
        if args.workload in _NEEDS_NODES:
            raise UsageError(
                f"--workload {args.workload} asks nodes what only quorumlab's own can answer: "
                "leave --bootstrap-server out"
            )
    elif args.command_config is not None:
        raise UsageError(
            "--command-config is for --bootstrap-server: a cluster that is started has its own"
        )
    wanted = args.faults
    if wanted is None and args.design != "quorum":
        wanted = f"{FAULTS_OF_PROCESSES},kill-zookeeper"
    faults = _faults(wanted, is_theirs=bool(servers))
    _refuse_losses(args.workload, faults)
    _refuse_in_the_clear(args.security, args.workload, faults, is_theirs=bool(servers))
    credentials = _credentials_given(args.command_config)
    seed = secrets.randbelow(1_000_000) if args.seed is None else args.seed
    return RunOptions(
        directory=args.out or Path(f"chaos-{args.workload}-{seed}"),
        workload=args.workload,
        faults=faults,
        seconds=args.seconds,
        seed=seed,
        design=args.design,
        engine=args.engine,
        controllers=args.controllers,
        zookeepers=args.zookeepers,
        brokers=0 if args.workload == "cas-register" else args.brokers,
        client=args.client,
        idempotent=not args.no_idempotence,
        keep=args.keep,
        security=args.security or "",
        servers=servers,
        credentials=credentials,
        command=_command(args, seed),
    )


def _without_effect(args: SimpleNamespace) -> dict[str, str]:
    """Options that would change nothing in the cluster that is asked for, and why."""
    if args.bootstrap_server:
        started = "it is of a cluster that is started: leave --bootstrap-server out"
        return dict.fromkeys((*_SIZES, "keep", "security"), started)
    if args.design != "quorum":
        return {"controllers": f"in {args.design} no node is set apart to be the controller"}
    idle = {"zookeepers": "the quorum design has no ZooKeeper: choose a zk --design"}
    if args.workload == "cas-register":
        idle["brokers"] = "the workload cas-register runs on controllers alone"
    return idle


def _refuse_design(args: SimpleNamespace) -> None:
    one_of(("quorum", *DESIGNS), "--design", args.design)
    if args.design == "quorum":
        return
    if args.security:
        raise UsageError(
            f"--security: {args.design} speaks in the clear: leave it out, or take --design quorum"
        )
    if args.bootstrap_server:
        raise UsageError("--design is of a cluster that is started: leave --bootstrap-server out")
    why = why_no_workload(DESIGNS[args.design], args.workload)
    if why:
        raise UsageError(f"--workload {args.workload}: not with --design {args.design}: {why}")


def _refuse_in_the_clear(
    security: str | None, workload: str, faults: Sequence[str], *, is_theirs: bool
) -> None:
    """Faults that need certificates, and those that need messages that anybody can read."""
    kinds = {kind_and_role(each)[0] for each in faults}
    if "rotate-certificates" in kinds and not security and not is_theirs:
        raise UsageError(
            "--faults rotate-certificates: a plain cluster has no certificates: add --security"
        )
    if "rotate-certificates" in kinds and workload == "cas-register":
        raise UsageError(
            "--faults rotate-certificates: a quorum that keeps a register has no configs, which "
            "would tell it: choose another --workload"
        )
    if security and (unreadable := sorted(kinds.intersection(MESSAGE_KINDS))):
        raise UsageError(
            f"--faults {', '.join(unreadable)}: nobody between two nodes can tell their messages "
            "apart where they speak TLS: leave them out, or --security"
        )


def _credentials_given(file: Path | None) -> Credentials:
    """What clients of somebody else's cluster show."""
    if file is None:
        return NO_CREDENTIALS
    from quorumlab.proxied_credentials import given_credentials

    return given_credentials(load_client_settings(file))


def _refuse_losses(workload: str, faults: Sequence[str]) -> None:
    lossy = [kind for kind in faults if kind.partition(":")[0] in ADMIN_LOSES_BY]
    if workload == "admin" and lossy:
        raise UsageError(
            "--workload admin: one of its two replicas may be enough for an acknowledgement, and "
            f"what that one loses is lost: leave out {', '.join(lossy)}"
        )


def _refuse_engine(args: SimpleNamespace) -> None:
    if args.engine == NATIVE:
        return
    if args.security:
        raise UsageError(f"--security: {args.engine} speaks in the clear: leave --engine out")
    if args.bootstrap_server:
        raise UsageError("--engine is of a cluster that is started: leave --bootstrap-server out")
    why = why_no_engine(
        args.engine,
        design=args.design,
        controllers=args.controllers,
        dynamic=args.workload == "admin" or "membership" in (args.faults or ""),
    )
    if why is not None:
        raise UsageError(f"--engine {args.engine}: {why}")


def _faults(text: str | None, *, is_theirs: bool) -> Sequence[str]:
    if text == "none" or (text is None and is_theirs):
        return ()
    wanted = list(dict.fromkeys(each.strip() for each in (text or FAULTS_OF_PROCESSES).split(",")))
    if "none" in wanted:
        raise UsageError(f"--faults {text}: none stands alone")
    for each in wanted:
        try:
            kind, role = kind_and_role(each)
        except ValueError as error:
            raise UsageError(f"--faults: {error}") from error
        if why := KINDS[kind].not_on_processes:
            raise UsageError(f"--faults {each}: {why}")
        if is_theirs and (kind not in KINDS_WITHOUT_PROCESSES or role is not None):
            raise UsageError(
                f"--faults {each}: needs the cluster's processes, and --bootstrap-server names one "
                f"that somebody else runs; there: {', '.join(KINDS_WITHOUT_PROCESSES)}, none"
            )
    if clashing := clash([kind_and_role(each)[0] for each in wanted]):
        raise UsageError(
            f"--faults: {' and '.join(clashing)} cannot be had in one run: one needs proxies "
            "between the nodes, the other namespaces without any"
        )
    return wanted


def _command(args: SimpleNamespace, seed: int) -> str:
    """The same operations and faults once more, as far as the cluster answers alike."""
    parts: list[object] = []
    if args.design != "quorum":
        parts += ["--design", args.design]
    if args.engine != NATIVE:
        parts += ["--engine", args.engine]
    parts += ["--workload", args.workload]
    if args.faults is not None:
        parts += ["--faults", args.faults]
    parts += ["--seconds", args.seconds, "--seed", seed]
    for name, size in _SIZES.items():
        if getattr(args, name) != size:
            parts += [f"--{name}", getattr(args, name)]
    if args.client != "confluent":
        parts += ["--client", args.client]
    if args.no_idempotence:
        parts.append("--no-idempotence")
    for option, value in (
        ("--security", args.security),
        ("--bootstrap-server", args.bootstrap_server),
        ("--command-config", args.command_config),
    ):
        if value is not None:
            parts += [option, value]
    return command("chaos", "run", *parts)


# --- what is told ----------------------------------------------------------------------------


def _announce(options: RunOptions) -> None:
    brokers = number_of(options.brokers, "broker")
    where = f"{number_of(options.controllers, 'controller')} and {brokers}"
    if options.servers:
        where = f"the cluster at {', '.join(f'{host}:{port}' for host, port in options.servers)}"
    elif options.has_zookeeper:
        where = f"{brokers} of {options.design} and {number_of(options.zookeepers, 'ZooKeeper')}"
    say_folded(
        f"workload {options.workload} on {where}, faults {', '.join(options.faults) or 'none'}, "
        f"{options.seconds} s, seed {options.seed}, in {options.directory}"
    )


def _tell(options: RunOptions, ran: Ran) -> None:
    whole, safety = ran.whole, ran.safety
    say(f"operations   {whole.ok:,} ok, {whole.fail:,} failed, {whole.info:,} unknown")
    say_folded(
        f"with faults  {safety.ok:,} ok of these, {safety.ok_a_second:.0f} a second; "
        f"{ran.warm_up.ok_a_second:.0f} a second before the faults",
        _INDENT,
    )
    outcomes = ran.fault_outcomes
    bit = sum(each.proof.bit for each in outcomes)
    say(f"faults       {len(ran.schedule)} planned, {len(outcomes)} injected, {bit} proven")
    say_folded(
        f"elections    {ran.controller_elections} of the active controller, "
        f"{ran.leader_elections} of partition leaders",
        _INDENT,
    )
    if ran.recovered_seconds is not None:
        say(f"recovered    {ran.recovered_seconds:.1f} s after everything was healed")
    for finding in ran.verdict.findings[:_FINDINGS_SHOWN]:
        say_folded(f"VIOLATED     {finding.rule} of {finding.object}: {finding.detail}", _INDENT)
        if finding.ops:
            say(f"             operations {', '.join(map(str, finding.ops))}")
    if more := len(ran.verdict.findings[_FINDINGS_SHOWN:]):
        say(f"             and {more} more, in {options.directory}/verdict.json")
    whose = whose_document(options.design, options.engine)
    for rule, why in admitted_by(whose, ran.verdict.findings).items():
        say_folded(f"admitted     {rule}, by the document of {whose}: {why}", _INDENT)
    for reason in ran.void:
        say_folded(f"void         {reason}", _INDENT)
    say(f"report       {options.directory}/report.html")
    say_folded(f"verdict      {ran.summary}", _INDENT)
