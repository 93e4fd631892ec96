"""Commits of a quorum of three: latency, records a second and processor time, beside its peers.

Every system gets the same keys and values from the same loop, in rounds that take turns; it runs
alone while it is measured, on fresh directories in the current directory's file system.
"""

from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from benchmarks.figures import percentile, print_figure, progress, skip
from benchmarks.peers.etcd import Etcd
from benchmarks.peers.kafka import Kafka, KafkaWithoutLinger
from benchmarks.peers.load import KEYS, Load, Sample
from benchmarks.peers.local import processor_seconds, scratch_directory
from benchmarks.peers.pysyncobj import PySyncObj
from benchmarks.peers.quorum import Quorum, QuorumInline

ROUNDS = 3
WARM_UP = Load(name="warm-up", in_flight=8, puts=1, seconds=0.5, first_value=1_000_000_000)
LOADS = (
    Load(name="sequential", in_flight=1, puts=1, seconds=1.5, first_value=1_000_001_000),
    Load(name="64 in flight", in_flight=64, puts=1, seconds=1.5, first_value=1_000_002_000),
    Load(
        name="8 in flight, 128 puts each",
        in_flight=8,
        puts=KEYS,
        seconds=1.5,
        first_value=1_000_003_000,
    ),
)

System: TypeAlias = type[Quorum] | type[Etcd] | type[Kafka] | type[PySyncObj]
Round: TypeAlias = tuple[Sample, float]  # and the processor seconds of all nodes
Samples: TypeAlias = dict[tuple[System, Load], list[Round]]


def measure_round(system: System, directory: Path) -> dict[Load, Round]:
    """Start the system, give it every load, and end it."""
    samples = {}
    with system(directory) as running:
        running.measure(replace(WARM_UP, seconds=system.warm_up_seconds))
        for load in LOADS:
            before = running.committed()
            used_before = sum(map(processor_seconds, running.processes()))
            sample = running.measure(load)
            used = sum(map(processor_seconds, running.processes())) - used_before
            grown = running.committed() - before
            done = len(sample.latencies_seconds)
            assert grown >= done, f"{done} requests acknowledged, and {grown} commits: {load}"
            samples[load] = sample, used
    return samples


def measure_all(systems: list[System], directory: Path) -> Samples:
    samples: Samples = {(system, load): [] for system in systems for load in LOADS}
    for number in range(ROUNDS):
        turn = number % len(systems)  # nobody is always first
        for system in systems[turn:] + systems[:turn]:
            progress(f"round {number + 1} of {ROUNDS}: {system.name}")
            at = directory / f"{system.name}-{number}"
            for load, sample in measure_round(system, at).items():
                samples[system, load].append(sample)
    return samples


def print_figures(samples: Samples) -> None:
    for (system, load), measured in samples.items():
        rounds = [sample for sample, _ in measured]
        name = f"commit {system.name} {load.name}"
        parameters = {
            "version": system.version(),
            "durable": system.durable,
            "in_flight": load.in_flight,
            "puts_per_request": load.puts,
            "requests": sum(len(sample.latencies_seconds) for sample in rounds),
            "rounds": len(rounds),
        }
        latencies = [seconds for sample in rounds for seconds in sample.latencies_seconds]
        for percent in (50, 99):
            each = [percentile(sample.latencies_seconds, percent) * 1e3 for sample in rounds]
            value = percentile(latencies, percent) * 1e3
            spread = [round(ms, 3) for ms in each]
            print_figure(f"{name} p{percent}", value, "ms", **parameters, of_rounds=spread)
        rates = [sample.puts / sample.elapsed_seconds for sample in rounds]
        puts = sum(sample.puts for sample in rounds)
        total = sum(sample.elapsed_seconds for sample in rounds)
        spread = [round(rate) for rate in rates]
        print_figure(f"{name} rate", puts / total, "puts/s", **parameters, of_rounds=spread)
        each = [used / sample.puts * 1e6 for sample, used in measured]
        value = sum(used for _, used in measured) / puts * 1e6
        spread = [round(us) for us in each]
        print_figure(f"{name} processor time", value, "µs a put", **parameters, of_rounds=spread)


def main() -> None:
    systems: list[System] = []
    for system in (Quorum, QuorumInline, Etcd, Kafka, KafkaWithoutLinger, PySyncObj):
        reason = system.missing()
        if reason is None:
            systems.append(system)
        else:
            skip(f"commit {system.name}", reason)
    with scratch_directory() as directory:
        print_figures(measure_all(systems, directory))
