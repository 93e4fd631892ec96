"""`quorumlab top --page`: the page that nodes of ours serve, for any Kafka."""

import asyncio
import os
import signal
from types import SimpleNamespace

from quorumlab.arguments import Failed, UsageError
from quorumlab.client_properties import given_settings
from quorumlab.config import parse_properties
from quorumlab.output import say
from quorumlab.verbs.common import addresses, in_bounds
from quorumlab.web.reader_keys import of_any_kafka
from quorumlab.web.serving import Page
from wire.http import HttpSecurity, HttpServer

__all__ = ["serve"]

_HOST = "127.0.0.1"  # whoever reaches the page sees all that it shows
_HOSTS = (_HOST, "localhost")  # another site may have a name that leads here


def serve(args: SimpleNamespace) -> int:
    """Until Ctrl-C."""
    in_bounds(args, page=(0, 65_535))
    if args.once:
        raise UsageError("give --page or --once, not both")
    if not args.bootstrap_server or args.dir:
        raise UsageError(
            "--page is for --bootstrap-server: nodes of ours serve the page themselves, at the "
            "HTTP PORT that `quorumlab status` names"
        )
    servers = addresses(args.bootstrap_server, "--bootstrap-server")
    given_settings(args.command_config)  # refused here, and not in the reader
    client = parse_properties(args.command_config.read_text()) if args.command_config else {}
    about = of_any_kafka(servers, client, args.chaos)
    asyncio.run(_serve(Page(lambda: about), args.page))
    return 0


async def _serve(page: Page, port: int) -> None:
    security = HttpSecurity(hosts=_HOSTS)
    server = HttpServer(page.routes(), streams=page.streams(), security=security)
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    try:
        try:
            found = await server.start(_HOST, port)
        except OSError as error:  # its own words are asyncio's
            raise Failed(f"--page {port}: {os.strerror(error.errno or 0)}") from error
        say(f"http://{_HOST}:{found}/ until Ctrl-C; all users of this machine can read it")
        await ended.wait()
    finally:
        await page.close()
        await server.stop()
