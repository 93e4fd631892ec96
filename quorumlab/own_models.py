"""A model of somebody's own, named on a command line as FILE:NAME.

It may raise anything, and even try to leave: no exit code of its own shall pass for a verdict.
"""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jepsen_like.checkers.models import Model
from jepsen_like.histories.history import MalformedHistory
from quorumlab.verb_errors import UsageError

__all__ = ["own_model", "running"]


def own_model(named: str) -> Model:
    """Runs the file. Raises `UsageError` where there is no such model in it."""
    file, _, name = named.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"--model {named}: there is no file {file}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"--model {named}: {file} is no Python file: its name must end with .py")
    module = importlib.util.module_from_spec(spec)
    with running(named):
        spec.loader.exec_module(module)
    model = getattr(module, name, None)
    if isinstance(model, Model):
        return model
    there = sorted(each for each, value in vars(module).items() if isinstance(value, Model))
    found = f"it has {', '.join(there)}" if there else "it has no Model at all"
    raise UsageError(f"--model {named}: {name or 'nothing'} is no Model in {file}; {found}")


@contextmanager
def running(named: str) -> Iterator[None]:
    """While code of the model runs. Raises `UsageError` for whatever it raises."""
    try:
        yield
    except MalformedHistory:
        raise
    except (Exception, SystemExit) as error:  # it is somebody else's
        what = f"{type(error).__name__}: {error}"
        raise UsageError(f"--model {named} does not run: {what}") from error
