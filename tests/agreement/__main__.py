"""`make agreement`: tens of thousands of histories, judged every way there is; a page tells it.

    python -m tests.agreement --histories 10000 --page docs/checking-agreement.md
    python -m tests.agreement --histories 10000 --begin 20000 --on-spark 0   # the next ones

Exit code 1 if anything differs. Where Spark does not start, the page says that it was left out.
"""

import argparse
import datetime
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jepsen_like.checkers.micro_operations import WRITE_OF
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.sim.runs.sweep import commit_of_code
from spark.session import Settings, SparkUnavailable, session
from tests.agreement.agreeing import compared
from tests.agreement.free import FREE
from tests.agreement.models import MODELS
from tests.agreement.on_spark import ON_SPARK, differing
from tests.agreement.playing import UNKNOWN_MAX
from tests.agreement.rows import DOUBTS, Tally, tallied
from tests.agreement.ruled import RULED
from tests.agreement.transactions import LEVELS, transactions_compared

ABOUT = f"""# Do all ways to judge a history agree?

`{{command}}` on {{date}}, at {{commit}}: small random histories of each model, three processes and
up to twenty events, half of them of objects that may lie, half with up to {UNKNOWN_MAX:.0%} of
operations whose end nobody knows. Each is judged by trying all orders that its operations may have
(the truth), by the searches, and by the fast checker of its model, which may be undecided but never
wrong. It also is where it shows nothing, because no operation was ok.
"""

ABOUT_FREE = """As many histories of clients that do anything their protocol allows: two keys or
four elements at once, values that look alike (1, 1.0, true and "1"), elements that are removed
where they are not and added again, old answers, clients that crash at any event, answers that may
be anything. The truth comes from trying all orders of all operations at once; each history is
judged as by `check`. *Wrong* is also what is undecided for a reason that is none, an honest history
that is violated, and what was planted and is valid.

In half of these histories everybody is honest. Each of them is judged once more with one answer
changed; where the truth calls this wrong, it is *planted*, and *found* if the verdict says so."""

ABOUT_RULED = """As many of logs with gaps, aborted records and values that look alike: clients
assign with a seek to anywhere, subscribe and are moved, poll several keys at once, commit and
resume, and take over producers; and of what nodes say of partitions. The truth of each rule is a
loop over all operations, written from docs/checking.md; the rules that are broken must be the same
ones, of the same objects. Whether records have an order is tried out. Here the truth itself is
undecided where nobody can know whether a value is lost."""


ABOUT_TRANSACTIONS = """As many of transactions of up to three reads and writes, on a store that
reads old states, writes without looking and lets what it aborts be read, or does nothing of this.
The truth comes from trying all their orders."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.agreement", description=__doc__)
    parser.add_argument("--histories", type=int, default=10_000, help="of each model")
    parser.add_argument("--begin", type=int, default=0, help="the number of the first")
    parser.add_argument("--on-spark", type=int, default=2_000, help="of them on Spark; 0: without")
    parser.add_argument("--page", type=Path, help="where the result is written")
    args = parser.parse_args()
    begun = time.monotonic()
    numbers = range(args.begin, args.begin + args.histories)
    tallies: dict[str, Tally] = {}
    free: dict[str, Tally] = {}
    ruled: dict[str, Tally] = {}
    for name, agreed in MODELS.items():
        print(f"{name}: {args.histories} histories", file=sys.stderr, flush=True)
        tallies[name] = compared(name, agreed, numbers)
    for rows, into in ((FREE, free), (RULED, ruled)):
        for name, row in rows.items():
            print(f"free, {name}: {args.histories} histories", file=sys.stderr, flush=True)
            into[name] = tallied(name, row, numbers)
    transactions: dict[str, Tally] = {}
    for workload in WRITE_OF:
        for level in LEVELS:
            print(f"{workload}, {level}: {args.histories} histories", file=sys.stderr, flush=True)
            transactions[f"{workload}, {level}"] = transactions_compared(workload, level, numbers)
    every = {**tallies, **free, **ruled, **transactions}
    on_spark = _on_spark(numbers[: args.on_spark]) if args.on_spark else {}
    told = [
        *_table(tallies),
        "",
        ABOUT_FREE,
        "",
        *_planted_table(free),
        "",
        ABOUT_RULED,
        "",
        *_planted_table(ruled),
        "",
        ABOUT_TRANSACTIONS,
        "",
        *_table(transactions),
        "",
        *_reasons(every),
        "",
        *_lines(every, on_spark, args.on_spark),
        "",
        f"It took {time.monotonic() - begun:.0f} s.",
    ]
    print("\n".join(told))
    if args.page is not None:
        command = f"python -m tests.agreement {' '.join(sys.argv[1:])}"
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        page = ABOUT.format(command=command, date=date, commit=commit_of_code())
        args.page.write_text("\n".join([page, *told, ""]))
    is_wrong = any(tally.wrong for tally in every.values())
    return int(is_wrong or any(on_spark.values()))


def _on_spark(numbers: Sequence[int]) -> Mapping[str, list[str]]:
    """What differs in each row; no rows if Spark does not start."""
    settings = Settings(master="local[2]")
    found = {}
    try:
        with session(settings) as spark:
            for name in ON_SPARK:
                print(f"{name}: on Spark", file=sys.stderr, flush=True)
                found[name] = differing(spark, settings, name, numbers)
    except SparkUnavailable as error:
        print(f"SKIPPED Spark: {error}", file=sys.stderr)
    return found


def _table(tallies: Mapping[str, Tally]) -> Iterator[str]:
    yield "| model | valid | violated | with unknown ends | fast: undecided | wrong |"
    yield "|---|---|---|---|---|---|"
    for name, tally in tallies.items():
        valid, violated = (tally.truth[each] for each in (Outcome.VALID, Outcome.VIOLATED))
        counts = valid, violated, tally.unknown, tally.undecided, len(tally.wrong)
        yield f"| {name} | {' | '.join(f'{each:,}' for each in counts)} |"


def _planted_table(tallies: Mapping[str, Tally]) -> Iterator[str]:
    yield "| model | valid | violated | undecided | by the verdict | planted | found | wrong |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, tally in tallies.items():
        truth = [tally.truth[each] for each in (Outcome.VALID, Outcome.VIOLATED, Outcome.UNDECIDED)]
        counts = *truth, tally.undecided, tally.planted, tally.found, len(tally.wrong)
        yield f"| {name} | {' | '.join(f'{each:,}' for each in counts)} |"


def _reasons(tallies: Mapping[str, Tally]) -> Iterator[str]:
    total = sum((tally.reasons for tally in tallies.values()), Counter[str]())
    yield "Why verdicts are undecided: what it is, the words of the reason, how often."
    yield ""
    yield "| | in the reason | verdicts |"
    yield "|---|---|---|"
    for name, words in DOUBTS.items():
        yield f"| {name} | {words} | {total[name]:,} |"


def _lines(
    tallies: Mapping[str, Tally], on_spark: Mapping[str, list[str]], count: int
) -> Iterator[str]:
    if not on_spark:
        yield "Whether Spark says the same was not looked at."
    else:
        yield f"{count:,} of these on Spark, and as many of the whole log workload, compared with"
        yield "what is found without it: outcomes, findings, objects and counts."
        yield ""
        yield "| histories | judged otherwise on Spark |"
        yield "|---|---|"
        for name, other in on_spark.items():
            yield f"| {name} | {len(other)} |"
    for name in [each for tally in tallies.values() for each in tally.wrong]:
        yield f"- {name}"
    for name, other in on_spark.items():
        yield from (f"- on Spark, {name}: {each}" for each in other)


if __name__ == "__main__":
    sys.exit(main())
