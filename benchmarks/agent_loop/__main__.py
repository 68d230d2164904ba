"""`python -m benchmarks.agent_loop [--scenario S] [--json]`."""

import sys

from benchmarks.agent_loop.report import main

if __name__ == "__main__":
    sys.exit(main())
