"""`quorumlab bench [NAME]`: the benchmarks of a clone, one JSON line a figure."""

from pathlib import Path
from types import SimpleNamespace

from jepsen_like.installation import ROOT
from jepsen_like.python_children import python_script
from quorumlab.arguments import UsageError
from quorumlab.children import child

__all__ = ["run"]


def run(args: SimpleNamespace) -> int:
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
