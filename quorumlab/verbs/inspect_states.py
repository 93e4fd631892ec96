"""`inspect at`, `inspect diff` and `inspect tree`: the cluster as it was."""

import argparse
from dataclasses import asdict

from jepsen_like.real.layout import ClusterError
from quorumlab.inspection.selection import parse_place
from quorumlab.inspection.states import Moment, Replay, replay
from quorumlab.inspection.target import Target
from quorumlab.inspection.tree import differences, find, leaves, tree_of
from quorumlab.output import complain, print_json, say
from quorumlab.verbs.common import UsageError

__all__ = ["add_path", "add_place", "add_two_places", "run_at", "run_diff", "run_tree"]

_DAMAGED = 1


def add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("place", metavar="OFFSET|TIME", help="after this record, or at this time")


def add_two_places(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", metavar="A", help="an offset or a time, or a target of its own")
    parser.add_argument("after", metavar="B", help="the same")


def add_path(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--path", default="/", help="what to list (default: /)")
    parser.add_argument("--at", metavar="OFFSET|TIME", help="(default: the end of the log)")


def _moment(text: str | None) -> Moment:
    if text is None:
        return Moment()
    try:
        offset, time_ms = parse_place(text)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return Moment(offset=offset, time_ms=time_ms)


def _state(target: Target, place: str | None) -> Replay:
    state = replay(target, _moment(place))
    for problem in state.problems:
        complain(problem)
    return state


def run_at(args: argparse.Namespace, target: Target) -> int:
    state = _state(target, args.place)
    tree = tree_of(state.image)
    if args.format == "json":
        print_json(tree)
    else:
        for path, value in leaves(tree):
            say(f"{path:<56} {value}")
    return _DAMAGED if state.problems else 0


def run_diff(args: argparse.Namespace, target: Target) -> int:
    before, after = _state(target, args.before), _state(target, args.after)
    found = list(differences(tree_of(before.image), tree_of(after.image)))
    if args.format == "json":
        print_json([asdict(change) for change in found])
    else:
        for change in found:
            say(f"{change.path:<56} {change.before} -> {change.after}")
    return _DAMAGED if before.problems or after.problems else 0


def run_tree(args: argparse.Namespace, target: Target) -> int:
    state = _state(target, args.at)
    try:
        found = find(tree_of(state.image), args.path)
    except KeyError as error:
        raise ClusterError(f"{args.path}: there is no {error} there") from error
    if args.format == "json" or not isinstance(found, dict):
        print_json(found)
    else:
        for name, child in found.items():
            say(f"{name}/" if isinstance(child, dict) else f"{name} = {child}")
    return _DAMAGED if state.problems else 0
