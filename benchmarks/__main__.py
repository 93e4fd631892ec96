"""`python -m benchmarks NAME [OPTION ...]`: one benchmark in this process."""

import sys
from importlib import import_module

if __name__ == "__main__":
    sys.argv.pop(0)
    name = sys.argv[0].replace("-", "_")
    try:
        sys.exit(import_module(f"benchmarks.{name}").main())
    except KeyboardInterrupt:
        sys.exit(130)
