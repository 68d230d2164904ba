"""`python -m benchmarks.scale [--chunks N] [--json]`."""

import sys

from benchmarks.scale.report import main

if __name__ == "__main__":
    sys.exit(main())
