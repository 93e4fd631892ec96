"""A working directory of a user whose own files are named like packages of ours and of Python's."""

from pathlib import Path

__all__ = ["write_hostile_files"]

_NAMES = ("broker", "controller", "json", "selectors", "spark", "wire")


def write_hostile_files(directory: Path) -> Path:
    """A Python that imports one of them ends. Returns the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "quorum").mkdir()
    for name in _NAMES:
        (directory / f"{name}.py").write_text(f"raise SystemExit('{name}.py of the user')\n")
    return directory
