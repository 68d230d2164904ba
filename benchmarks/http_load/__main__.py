"""`python -m benchmarks.http_load [--streams N] [--seconds N] [--json]`."""

import sys

from benchmarks.http_load.report import main

if __name__ == "__main__":
    sys.exit(main())
