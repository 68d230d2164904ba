"""`python -m benchmarks.growth [--turns N] [--json]`."""

import sys

from benchmarks.growth.report import main

if __name__ == "__main__":
    sys.exit(main())
