"""`inspect tree`: the state as a file system, at a prompt or for scripts."""

import contextlib
import shutil
import sys
from types import SimpleNamespace

from jepsen_like.real.layout import ClusterError
from quorumlab.inspection.browser import BrowseError, Browser, listing, looked_up, outline
from quorumlab.inspection.states import moment_of
from quorumlab.inspection.target import Target
from quorumlab.inspection.tree import Node, leaves, plain, tree_of
from quorumlab.output import complain, print_json, say
from quorumlab.verbs.inspect_states import named_moment, state_at
from quorumlab.verbs.inspecting import DAMAGED, say_lines

__all__ = ["run_tree"]


def run_tree(args: SimpleNamespace, target: Target) -> int:
    state = state_at(target, named_moment(args.at))
    tree = tree_of(state.image)
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if args.path is None and is_terminal and args.format == "text" and not args.recursive:
        browser = Browser(tree, lambda place: tree_of(state_at(target, moment_of(place)).image))
        _converse(browser, target)
    else:
        _list(tree, args)
    return DAMAGED if state.problems else 0


def _list(tree: Node, args: SimpleNamespace) -> None:
    path = "/" + (args.path or "").strip("/")
    try:
        found = looked_up(tree, path)
    except KeyError as error:
        raise ClusterError(f"{path}: there is no {error} there") from error
    match args.format:
        case "json":
            told = {at or "/": plain(node) for at, node in found}
            print_json(told if len(found) > 1 else next(iter(told.values())))
        case "jsonl":
            for at, node in found:
                lines = [{"path": leaf, "value": value} for leaf, value in leaves(node, at)]
                print_json(lines, form="jsonl")
        case _ if args.recursive:
            for _, node in found:
                say_lines(outline(node))
        case _:
            say_lines(listing(found))


# --- at a prompt ----------------------------------------------------------------------------


def _converse(browser: Browser, target: Target) -> None:
    _complete_with(browser)
    say(f"{target.path}: `help` lists the commands, `exit` ends")
    while True:
        try:
            line = input(f"{browser.path}> ")
        except EOFError:
            say("")
            return
        except KeyboardInterrupt:
            say("")
            continue
        if line.strip() in ("exit", "quit"):
            return
        try:
            _page(list(browser.run(line)))
        except BrowseError as error:
            complain(error)
        except KeyboardInterrupt:
            say("")


def _page(lines: list[str]) -> None:
    """Uses the user's pager for more than a screen holds."""
    if len(lines) < shutil.get_terminal_size().lines:
        say_lines(lines)
    else:
        import pydoc  # is slow to load

        pydoc.pager("\n".join(lines) + "\n")


def _complete_with(browser: Browser) -> None:
    """Completion and history, where Python was built with readline."""
    with contextlib.suppress(ImportError):
        import readline

        found: list[str] = []

        def complete(word: str, state: int) -> str | None:
            if state == 0:
                found[:] = browser.completions(readline.get_line_buffer(), word)
            return found[state] if state < len(found) else None

        readline.set_completer_delims(" ")
        readline.set_completer(complete)
        readline.parse_and_bind("tab: complete")
