"""The engines that can replicate a quorum's log, by name: ours, and raftos.

Decides which numbers of controllers raftos can have. raftos itself is no dependency: it is there if
somebody has installed it. So this module does not load it; `library` does.
"""

from importlib.util import find_spec

__all__ = [
    "ENGINES",
    "NATIVE",
    "ONLY_IN_PROCESSES",
    "RAFTOS",
    "why_no_majority",
    "why_not_installed",
]

NATIVE = "native"
RAFTOS = "raftos"
ENGINES = (NATIVE, RAFTOS)
ONLY_IN_PROCESSES = "it runs in processes only (its state is class-level)"


def why_no_majority(controllers: int) -> str | None:
    """The reason: of an even number raftos takes half for a majority; one alone hears no answer."""
    if controllers < 3 or controllers % 2 == 0:
        return f"raftos counts majorities right for 3, 5, ... controllers, not for {controllers}"
    return None


def why_not_installed() -> str | None:
    return None if find_spec(RAFTOS) else "raftos is not installed; `make raftos` does it"
