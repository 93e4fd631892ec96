"""A chaos run from its first process to its verdict, which is on the history as the file has it.

The history is whole at any moment: a run that is interrupted leaves what it has seen.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

from jepsen_like.checkers import judge
from jepsen_like.checkers.verdict import Outcome, compose
from jepsen_like.faults.validity import Figures, operations_during, why_void
from jepsen_like.histories.history import Header, History, read_history
from jepsen_like.real.clients.client_choice import client_opener, require_client
from jepsen_like.real.clients.kafka_admin import create_topic
from jepsen_like.real.clients.target import Nodes, Target
from jepsen_like.real.credentials import NO_CREDENTIALS
from jepsen_like.real.kafka_client import NoAnswer
from jepsen_like.real.layout import ClusterError
from jepsen_like.real.runs.directory import RunDirectory
from jepsen_like.real.runs.environment import (
    Environment,
    Secure,
    our_cluster,
    their_cluster,
)
from jepsen_like.real.runs.outcome import Interrupted, Ran, Watcher, described, whole_run
from jepsen_like.real.runs.phases import Phases
from jepsen_like.real.runs.run_options import RunOptions
from jepsen_like.real.runs.worker_threads import Recording
from jepsen_like.report.document import Told
from jepsen_like.report.page import page
from jepsen_like.sim.runs.sweep import commit_of_code
from jepsen_like.workloads.registry import PROMISES, WORKLOADS
from jepsen_like.workloads.workload import NewTopic, WorkloadOptions
from wire.errors import ErrorCode

__all__ = ["execute"]

OPERATION_SECONDS = 3.0  # beyond, it is `info`; meanwhile a client tries again by itself
_SETUP_SECONDS = 30.0
_AGAIN_SECONDS = 0.2


def execute(
    options: RunOptions, watcher: Watcher, secure: Secure = lambda _: NO_CREDENTIALS
) -> Ran:
    """Raises Interrupted, or ClusterError where no run could be made of it.

    `secure` makes what a cluster of ours needs, before it starts, if its layout says so.
    """
    require_client(options.workload, options.client)
    directory = RunDirectory(options.directory)
    directory.create()
    schedule = options.schedule()
    is_theirs = bool(options.servers)
    cluster = their_cluster(options) if is_theirs else our_cluster(options, watcher, secure)
    with cluster as environment:  # if that cannot be reached, nothing is in the way of a second try
        directory.describe(options, schedule)
        target = environment.target
        own = _workload_options(options, target)
        workload = WORKLOADS[options.workload](own)
        open_client = client_opener(
            options.workload,
            target,
            implementation=options.client,
            idempotent=options.idempotent,
            timeout_seconds=OPERATION_SECONDS,
        )
        _create_topics(environment, workload.topics, watcher)
        header = Header(
            workload=workload.name,
            seed=options.seed,
            design=options.design,
            options={**own.described(), **PROMISES.get(workload.name, {})},
        )
        with Recording(directory.history, header) as recording:
            phases = Phases(
                options,
                environment,
                workload=workload,
                open_client=open_client,
                recording=recording,
                watcher=watcher,
            )
            ran = phases.run(schedule)
    ran, history = _judged(options, ran, directory, watcher)
    _report(options, ran, history, directory, watcher)
    if ran.verdict.outcome is not Outcome.VIOLATED and not options.keep:
        environment.remove_data()
    return ran


def _judged(
    options: RunOptions, ran: Ran, directory: RunDirectory, watcher: Watcher
) -> tuple[Ran, History]:
    """By the history as the file has it."""
    watcher.progress("checking the history")
    history = read_history(directory.history.read_bytes())
    verdict = compose([judge(history), ran.verdict])
    void = why_void(
        Figures(
            seconds=options.seconds,
            kinds=options.kinds,
            faults=ran.fault_outcomes,
            operations=operations_during(history.ops, ran.fault_outcomes),
            ok_a_second=ran.safety.ok_a_second,
            ok_a_second_without_faults=ran.warm_up.ok_a_second,
            controller_elections=ran.controller_elections,
        )
    )
    return replace(ran, verdict=verdict, void=void, whole=whole_run(history.ops)), history


def _report(
    options: RunOptions, ran: Ran, history: History, directory: RunDirectory, watcher: Watcher
) -> None:
    directory.write_verdict(described(options, ran))
    evidence = {index for finding in ran.verdict.findings for index in finding.ops}
    directory.write_timeline(history.ops, evidence)
    watcher.progress("writing the report")
    about = {"command": options.command, "commit": commit_of_code()}
    directory.write_page(page(history, Told(verdict=ran.verdict, void=ran.void, about=about)))


def _workload_options(options: RunOptions, target: Target) -> WorkloadOptions:
    return WorkloadOptions(
        seed=options.seed,
        brokers=tuple(sorted(target.brokers)),
        controllers=tuple(sorted(target.controllers)),
        idempotent=options.idempotent,
        stale_reads_as_reads=options.stale_reads_as_reads,
    )


def _create_topics(environment: Environment, topics: Sequence[NewTopic], watcher: Watcher) -> None:
    if not topics:
        return
    nodes = environment.target.of_brokers(_SETUP_SECONDS)
    try:
        for topic in topics:
            watcher.progress(f"creating {topic.name}")
            _create_topic(nodes, topic, environment, watcher)
    finally:
        nodes.close()


def _refuse_the_dead(environment: Environment) -> None:
    """Nothing has been done to them yet, and no patience brings them back: a full disk, mostly."""
    gone = environment.cluster.exited() if environment.cluster is not None else []
    if gone:
        node = gone[0]
        said = node.last_lines[-1] if node.last_lines else "nothing"
        raise ClusterError(f"node {node.node_id} died before the run: {said} (see {node.log})")


def _create_topic(
    nodes: Nodes, topic: NewTopic, environment: Environment, watcher: Watcher
) -> None:
    """Again while the cluster is not yet itself. A topic of the same name would spoil the run."""
    deadline = time.monotonic() + _SETUP_SECONDS
    while True:
        try:
            code, message = create_topic(nodes, topic, int(_SETUP_SECONDS * 1000))
            refused = f"{code.name}: {message or ''}"
        except NoAnswer as error:
            code, refused = ErrorCode.UNKNOWN_SERVER_ERROR, str(error)
        if code is ErrorCode.NONE:
            return
        _refuse_the_dead(environment)
        if time.monotonic() > deadline or code is ErrorCode.TOPIC_ALREADY_EXISTS:
            raise ClusterError(f"topic {topic.name} cannot be created: {refused}")
        if watcher.is_interrupted():
            raise Interrupted
        time.sleep(_AGAIN_SECONDS)
