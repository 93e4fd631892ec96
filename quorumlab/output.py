"""Output for people and scripts: tables, JSON, progress, and the files that may be overwritten.

quorumlab writes neither into a directory nor over a file that it did not make. A directory is its
own if it has a file that only quorumlab writes, a file if it begins as one of ours does. An output
may always be new or empty, a terminal or a pipe.
"""

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import click

from quorumlab.arguments import Failed
from quorumlab.folding import COLUMNS_ELSEWHERE, columns, fits, fold, folded

__all__ = [
    "FORMAT",
    "Progress",
    "aligned",
    "answer",
    "complain",
    "drop_what_is_buffered",
    "number_of",
    "one_line",
    "print_json",
    "print_rows",
    "refuse_other_directory",
    "refuse_other_file",
    "say",
    "say_folded",
    "say_if_heard",
    "say_marked",
    "say_settings",
    "table_lines",
    "topic_lines",
]

# How `answer` prints: a line of a table of options, see `quorumlab.arguments.declare`.
FORMAT = "--format table|json|jsonl [table]  for people, or for scripts (default: table)"

_NOT_ASKED = "N/A"  # what Kafka prints where eligible leader replicas are not known
_STYLES = {
    **dict.fromkeys(("dead", "down", "failed", "unresponsive", "violated"), "bold red"),
    **dict.fromkeys(("starting", "stopped", "undecided", "void"), "yellow"),
    **dict.fromkeys(("ready", "valid"), "green"),
}
_HEAD_CHARACTERS = 64 << 10
_OF_A_FILE_SYSTEM = "lost+found"


def say(text: str, stream: TextIO | None = None) -> None:
    """One line, at once: long work is followed while it runs."""
    print(text, file=stream or sys.stdout, flush=True)


def say_folded(text: str, indent: int | str | None = None) -> None:
    """A line for people, in as many as the terminal needs: see `quorumlab.folding.fold`."""
    say("\n".join(fold(text, indent)))


def say_marked(text: str, word: str, *, is_bad: bool) -> None:
    """A folded line, whose `word` is in colour on a terminal."""
    first, *rest = fold(text)
    if columns() is not None and not os.environ.get("NO_COLOR"):
        first = first.replace(
            word, click.style(word, fg="red" if is_bad else "green", bold=is_bad), 1
        )
    say("\n".join([first, *rest]))


def say_if_heard(text: str, stream: TextIO | None = None) -> None:
    """Says it as `say` does, but drops the text where nobody reads the output."""
    stream = stream or sys.stdout
    try:
        say(text, stream)
    except OSError:
        drop_what_is_buffered(stream)


def drop_what_is_buffered(stream: TextIO) -> None:
    """Drops what cannot be written, lest Python tries again at the exit."""
    try:
        stream.flush()
    except OSError:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())


def complain(found: object) -> None:
    """About what is damaged, beside what is told."""
    for line in f"quorumlab: {found}".split("\n"):
        print("\n".join(fold(line, stream=sys.stderr)), file=sys.stderr)


def one_line(text: str) -> str:
    """Quotes a text that is not printable: what others wrote may break lines, and more on a
    terminal."""
    return text if text.isprintable() else json.dumps(text)


def say_settings(settings: Mapping[str, str]) -> None:
    """Says in what a local cluster differs from Kafka, on as few lines as it takes."""
    pairs = ", ".join(f"{key}={value}" for key, value in settings.items())
    text = f"time-outs other than Kafka's: {pairs}"
    width = min(COLUMNS_ELSEWHERE, columns() or COLUMNS_ELSEWHERE)
    say(textwrap.fill(text, width, subsequent_indent="  ", break_on_hyphens=False))


def answer(
    form: str, value: object, lines: Iterable[str], *, indent: int | str | None = None
) -> None:
    """Says the lines, which are for people, or the value in the form that `--format` names.

    A terminal folds the lines, with that indent."""
    if form in ("table", "text"):
        for line in folded(lines, indent):
            say(line)
    else:
        print_json(value, form=form)


def print_json(value: object, *, form: str = "json") -> None:
    """`json`: indented, one value. `jsonl`: a list becomes one line an element."""
    if form == "jsonl" and isinstance(value, list):
        for element in value:
            say(json.dumps(element))
    else:
        say(json.dumps(value, indent=None if form == "jsonl" else 2))


def aligned(lines: Sequence[Sequence[str]], separator: str) -> Iterator[str]:
    """Each line with its cells padded to the widest of their column."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield separator.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))


def print_rows(rows: Iterable[Mapping[str, object]], columns: Sequence[str]) -> None:
    for line in table_lines(rows, columns):
        say(line)


def table_lines(rows: Iterable[Mapping[str, object]], columns: Sequence[str]) -> Iterator[str]:
    """A table: column names in capitals, None as a dash. A terminal gets colours, and what is too
    wide for it in several lines of a cell."""
    cells = [[name.upper().replace("_", " ") for name in columns]]
    cells += [
        ["-" if row.get(name) is None else str(row[name]) for name in columns] for row in rows
    ]
    if sys.stdout.isatty():
        return _on_terminal(*cells)
    return map(str.rstrip, aligned(cells, "  "))


def _widths(cells: Sequence[Sequence[str]], room: int) -> tuple[int, list[int]]:
    """The gap between columns, and how wide each is: no word in two lines if that can be."""
    columns = [*zip(*cells, strict=True)]
    widths = [max(map(len, column)) for column in columns]
    words = [max(map(len, " ".join(column).split()), default=0) for column in columns]
    gap = 2 if sum(words) + 2 * (len(columns) - 1) <= room else 1
    room -= gap * (len(columns) - 1)
    while sum(widths) > room and max(widths) > 1:
        places = range(len(widths))
        spare = [place for place in places if widths[place] > words[place]]
        widths[max(spare or places, key=lambda place: widths[place])] -= 1
    return gap, widths


def _on_terminal(head: Sequence[str], *rows: Sequence[str]) -> Iterator[str]:
    from rich.console import Console  # takes as long to load as all else for `status`
    from rich.table import Column, Table
    from rich.text import Text

    console = Console()  # knows the terminal's width, and NO_COLOR
    gap, widths = _widths([head, *rows], console.width)
    named = [
        Column(Text(name), overflow="fold", width=width)
        for name, width in zip(head, widths, strict=True)
    ]
    table = Table(*named, box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*[Text(cell, style=_STYLES.get(cell, "")) for cell in row])
    with console.capture() as captured:
        console.print(table)
    return map(str.rstrip, captured.get().splitlines())


class Progress:
    """A text on a terminal's stderr that is rewritten in place, all of it, if need be in several
    lines; silent everywhere else."""

    def __init__(self) -> None:
        self.is_shown = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._last = ""

    def __call__(self, text: str) -> None:
        if self.is_shown and text != self._last:
            sys.stderr.write(f"{self._wiping()}{text}")
            sys.stderr.flush()
            self._last = text

    def done(self) -> None:
        if self.is_shown and self._last:
            sys.stderr.write(self._wiping())
            sys.stderr.flush()
            self._last = ""

    def _wiping(self) -> str:
        """What was said last, from its last line up."""
        more = max(0, len(self._last) - 1) // shutil.get_terminal_size().columns
        return "\r\x1b[2K" + "\x1b[A\x1b[2K" * more


def topic_lines(topic: Mapping[str, Any]) -> Iterator[str]:
    """Tells a topic and its partitions as Kafka's tools print them: a line each, with tabs. A
    terminal for which these are too wide gets a table.

    `topic` has `topic`, `topic_id`, `replication_factor`, `configs`, and `partitions` with `leader`
    None or -1 where there is none; `elr` and `last_known_elr` may be missing.
    """
    lines = [*_kafka_lines(topic)]
    return iter(lines) if fits(lines) else _topic_table(topic)


def _kafka_lines(topic: Mapping[str, Any]) -> Iterator[str]:
    configs = ",".join(f"{key}={value}" for key, value in sorted(topic["configs"].items()))
    yield (
        f"Topic: {topic['topic']}\tTopicId: {topic['topic_id']}\t"
        f"PartitionCount: {topic['partition_count']}\t"
        f"ReplicationFactor: {topic['replication_factor']}\tConfigs: {configs}"
    )
    for row in topic["partitions"]:
        leader = "none" if row["leader"] in (None, -1) else row["leader"]
        yield (
            f"\tTopic: {topic['topic']}\tPartition: {row['partition']}\tLeader: {leader}\t"
            f"Replicas: {_ids(row['replicas'])}\tIsr: {_ids(row['isr'])}\t"
            f"Elr: {_ids(row.get('elr'))}\tLastKnownElr: {_ids(row.get('last_known_elr'))}"
        )


def _topic_table(topic: Mapping[str, Any]) -> Iterator[str]:
    yield f"Topic: {topic['topic']}  TopicId: {topic['topic_id']}"
    yield (
        f"  PartitionCount: {topic['partition_count']}  "
        f"ReplicationFactor: {topic['replication_factor']}"
    )
    for key, value in sorted(topic["configs"].items()):
        yield f"  {key}={value}"
    rows = [
        {
            "partition": row["partition"],
            "leader": "none" if row["leader"] in (None, -1) else row["leader"],
            "replicas": _ids(row["replicas"]),
            "isr": _ids(row["isr"]),
            "elr": _ids(row.get("elr")),
            "last_known_elr": _ids(row.get("last_known_elr")),
        }
        for row in topic["partitions"]
    ]
    yield from table_lines(rows, list(rows[0])) if rows else ()


def _ids(brokers: Sequence[int] | None) -> str:
    return _NOT_ASKED if brokers is None else ",".join(map(str, brokers))


def number_of(count: int, thing: str, things: str = "") -> str:
    """Says "1 batch" or "2 batches"; `things` is the plural where an s does not make it."""
    return f"{count} {thing if count == 1 else things or thing + 's'}"


# --- what may be overwritten -----------------------------------------------------------------


def refuse_other_directory(
    directory: Path,
    *,
    option: str,
    holds: str,
    is_own: Callable[[Path], bool] = Path.exists,
    but: Collection[str] = (),
) -> None:
    """Raises Failed unless it is new, empty, or has the file `holds`, and `is_own` accepts that.

    Files in `but` do not count, nor what a new file system begins with, nor hidden ones, which
    version control and file managers leave everywhere.
    """
    try:
        names = [each.name for each in directory.iterdir()]
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise Failed(f"{option} {directory}: that is a file: name a new directory") from None
    of_nobody = {_OF_A_FILE_SYSTEM, *but}
    there = [name for name in names if not name.startswith(".") and name not in of_nobody]
    if there and not is_own(directory / holds):
        raise Failed(
            f"{option} {directory}: it is not empty, and has no {holds} of an earlier run in it: "
            "name a new directory"
        )


def refuse_other_file(path: Path, *, option: str, is_own: Callable[[str], bool]) -> None:
    """Raises Failed unless it is new, empty, or `is_own` accepts its first characters."""
    if not path.is_file() or not path.stat().st_size:
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        if not is_own(file.read(_HEAD_CHARACTERS)):
            raise Failed(f"{option} {path}: that file is there already: name another one")
