"""The help of every verb: it fits 80 columns, its examples can be typed, and it loads little."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable

import pytest

from jepsen_like.checkers.isolation_levels import LEVELS, STRICT
from jepsen_like.checkers.judges import JUDGED
from jepsen_like.real.clients.client_choice import IMPLEMENTATIONS
from jepsen_like.real.secured import SECURITIES
from jepsen_like.workloads.registry import WORKLOADS
from quorumlab.arguments import Verb, Verbs, parse
from quorumlab.cli import root
from quorumlab.compare.experiments import EXPERIMENTS, QUICK
from quorumlab.compare.improvements import IMPROVEMENTS
from quorumlab.compare.subjects import ALL_DESIGNS
from quorumlab.verbs import check_verdict
from quorumlab.verbs.chaos_sim import _SIMULATED
from spark.session import Settings
from tests.quorumlab.command_tree import contexts

EVERY_HELP = {context.command_path: context for context in contexts()}
SECONDS_MAX = 0.15
SLOW = {"aiohttp", "asyncio", "kio", "numpy", "pyspark", "rich"}
LOAD = """
import json, sys
from quorumlab.cli import main
assert main(sys.argv[1:]) == 0
print(json.dumps(sorted(sys.modules)))
"""


@pytest.mark.parametrize("path", EVERY_HELP)
def test_a_help_fits_80_columns_and_names_what_each_option_does(path: str) -> None:
    context = EVERY_HELP[path]
    text = context.get_help()
    too_long = [line for line in text.splitlines() if len(line) > 80]
    assert too_long == []
    assert isinstance(context.command, Verb | Verbs)
    assert context.command.help
    told = re.sub(r"\s+", "", text)
    for param in context.command.params:
        assert param.opts[0] in text or param.human_readable_name.strip("[].") in text
        assert re.sub(r"\s+", "", getattr(param, "help", None) or "") in told, param.name


@pytest.mark.parametrize("path", EVERY_HELP)
def test_every_help_has_examples_and_each_can_be_typed(path: str) -> None:
    command = EVERY_HELP[path].command
    assert isinstance(command, Verb | Verbs)
    text = "\n".join(command.example_lines(EVERY_HELP[path])).replace("\\\n", " ")
    examples = [line.strip() for line in text.splitlines() if not line.startswith("  #")]
    assert examples, "a line that begins with $ in its table of options"
    for example in examples:
        program, *words = shlex.split(re.split(r" [<>]", example)[0])
        assert program == "quorumlab"
        assert callable(parse(root(), words).run)


@pytest.mark.parametrize(
    "verb",  # one of each module that has tables of options
    ["", "up", "topics create", "produce", "chaos run", "check", "inspect dump", "completion"],
)
def test_help_loads_nothing_that_is_slow(verb: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOAD, *verb.split(), "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    modules = set(re.findall(r'"([\w.]+)"', done.stdout.splitlines()[-1]))
    assert modules & SLOW == set()


def test_the_list_of_verbs_takes_little_of_the_processor() -> None:
    """The least of several: others use the machine, too."""
    assert min(processor_seconds("--help") for _ in range(5)) < SECONDS_MAX


def processor_seconds(*words: str) -> float:
    before = os.times()
    command = [sys.executable, "-m", "quorumlab", *words]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])


@pytest.mark.parametrize(
    ("path", "option", "known"),
    [
        ("chaos run", "--workload", WORKLOADS),
        ("chaos run", "--client", IMPLEMENTATIONS),
        *((verb, "--security", SECURITIES) for verb in ("up", "demo", "chaos run", "compare")),
        ("chaos sim", "--workload", _SIMULATED),
        ("check", "--model", JUDGED),
        ("check", "--isolation", LEVELS),
        ("compare", "--designs", ALL_DESIGNS),
        ("compare", "--experiments", [*EXPERIMENTS, IMPROVEMENTS]),
        ("compare", "--quick", QUICK),
    ],
)
def test_options_name_what_there_is(path: str, option: str, known: Iterable[str]) -> None:
    """Their tables do not import it, for that takes too long."""
    params = {param.opts[-1]: param for param in EVERY_HELP[f"quorumlab {path}"].command.params}
    metavar, told = params[option].metavar or "", getattr(params[option], "help", "")
    listed = metavar if "|" in metavar else told.rpartition("not what it says: ")[2]
    words = re.findall(r"[a-z][\w-]+", re.split(r" \(|; or|, in about", listed)[0])
    assert sorted(set(words) - {"of", "and"}) == sorted(known)


def test_check_tells_the_defaults_of_spark() -> None:
    settings = Settings()
    command = EVERY_HELP["quorumlab check"].command
    assert isinstance(command, Verb)
    text = " ".join(EVERY_HELP["quorumlab check"].get_help().split())
    assert f"(default: {settings.master})" in text
    assert f"(default: {STRICT})" in text
    assert f"{check_verdict.PAGE} in it" in text
    assert command.defaults["timeout"] == settings.seconds
    assert command.defaults["worker_memory"] == settings.worker_mb
