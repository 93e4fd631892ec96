"""`quorumlab bench [NAME]`: the benchmarks of a clone, one JSON line a figure."""

import argparse
from pathlib import Path

from jepsen_like.installation import ROOT
from jepsen_like.python_children import python_script
from quorumlab.arguments import UsageError, declare
from quorumlab.interrupts import child

__all__ = ["add_options", "run"]


def add_options(parser: argparse.ArgumentParser) -> None:
    about = "Run benchmarks, from a clone of the repository: one JSON line a figure."
    table = """
        names NAME [*]  which (default: all)
        --list  name them, and run none
        --partitions PARTITIONS [int]  of broker-failure (default: 1000000)
        --format json|figures  of broker-failure"""
    declare(parser, run, table, about)


def run(args: argparse.Namespace) -> int:
    script = _script()
    options = ["--list"] if args.list else []
    for name in ("partitions", "format"):
        if getattr(args, name) is not None:
            options += [f"--{name}", str(getattr(args, name))]
    with child(python_script(script, *args.names, *options)) as process:
        pass
    return process.returncode


def _script() -> Path:
    """Benchmarks measure a clone: they are no part of the installed package."""
    here = Path("benchmarks", "run.py")
    for clone in (ROOT, Path.cwd()):
        # A project of the user's may have a benchmarks/run.py, too.
        if (clone / here).is_file() and (clone / "quorumlab" / "cli.py").is_file():
            return clone / here
    raise UsageError(f"there is no {here}: run it within a clone of the repository")
