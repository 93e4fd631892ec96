"""One target under atheris, guided by coverage: `python -m tests.fuzz.one TARGET [libFuzzer's]`."""

import logging
import sys

import atheris


def main() -> None:
    name = sys.argv.pop(1)
    with atheris.instrument_imports(include=["wire"]):
        from tests.fuzz.targets import TARGETS
    logging.disable()
    atheris.Setup(sys.argv, TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
