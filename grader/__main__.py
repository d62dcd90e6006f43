"""`python -m grader`: the same as the `grader` command, and nothing else."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036 - whoever starts a clone by hand may have an older one
        print("grader: Python 3.11 or newer is needed; this is " + sys.version.split()[0], file=sys.stderr)
        sys.exit(4)
    from grader.cli import main

    sys.exit(main())
