"""The process of a delay line: it forwards requests at once, and answers later.

    python -m jepsen_like.real.delay_relay DIR

`jepsen_like.real.delay_line` starts and ends it, for commands that need no event loop.
"""

import asyncio
import sys
import time
from functools import partial
from pathlib import Path
from random import Random

from jepsen_like.real.delay_line import DelayLine
from jepsen_like.real.impairments import Delay, Flow, Imposed
from jepsen_like.real.relay import STREAM_BYTES_MAX, Relay, ServerThread, Streams, reset

__all__ = ["serve", "servers"]

_LOOK_SECONDS = 1.0


def servers(line: DelayLine) -> ServerThread:
    """Entering it listens on the ports of the line; leaving it ends every connection."""
    requests, answers = Flow(Random()), Flow(Random())
    answers.imposed.append(Imposed(Delay(delay_ms=line.delay_ms), frozenset()))

    async def accept(target: str, asker: Streams) -> None:
        host, _, port = target.rpartition(":")
        try:
            asked = await asyncio.open_connection(host, int(port), limit=STREAM_BYTES_MAX)
        except OSError:
            reset(asker[1])  # nobody listens there
        else:
            await Relay(asker=asker, asked=asked, requests=requests, answers=answers).run()

    targets = zip(line.ports, line.to, strict=True)
    return ServerThread("delay", {port: partial(accept, target) for port, target in targets})


def serve(line: DelayLine) -> None:
    """Serves until its directory is gone."""
    with servers(line):
        while line.exists():
            time.sleep(_LOOK_SECONDS)


def _main(directory: str) -> None:
    line = DelayLine.open(Path(directory))
    assert line is not None, f"no delay line in {directory}"
    serve(line)


if __name__ == "__main__":
    _main(*sys.argv[1:])
