"""`quorumlab node`: one node in the foreground, until a signal or its own end."""

import argparse
import asyncio
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

from quorum.driver import CannotListen
from quorum.effects import Stop
from quorumlab.config import ConfigError, NodeConfig, load
from quorumlab.node import Node
from quorumlab.verbs.format import format_node

__all__ = ["add_parser", "run"]


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("node", help="run one node in the foreground")
    parser.add_argument("--config", type=Path, required=True, metavar="FILE")
    parser.add_argument(
        "--format-as",
        metavar="CLUSTER-ID",
        help="first format the directories that never were (for throw-away clusters)",
    )
    parser.add_argument("--seed", type=int, help="of the node's random choices")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    config = load(args.config, os.environ)
    if args.format_as:
        format_node(config, args.format_as, ignore_formatted=True)
    return asyncio.run(_run(config, args.seed))


async def _run(config: NodeConfig, seed: int | None) -> int:
    _say(f"node {config.node_id} starts as {','.join(sorted(config.roles))}, pid {os.getpid()}")
    for warning in config.warnings:
        _say(f"warning: {warning}")
    try:
        async with Node(config, _say, seed) as node:
            _stop_on_signals(node)
            stop = await node.run()
    except CannotListen as error:
        raise ConfigError(str(error)) from error
    except OSError as error:
        raise ConfigError(f"cannot start: {error}") from error
    return _farewell(stop)


def _stop_on_signals(node: Node) -> None:
    loop = asyncio.get_running_loop()
    for which in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(which, node.begin_shutdown)


def _farewell(stop: Stop) -> int:
    _say(f"stopped: {stop.reason}")
    if stop.exit_code:
        print(f"quorumlab: {stop.reason}", file=sys.stderr)
    return stop.exit_code


def _say(line: str) -> None:
    print(f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {line}", flush=True)
