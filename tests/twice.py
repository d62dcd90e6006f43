"""pytest, and once more alone what has failed: `python -m tests.twice ARGUMENTS…` ends as the second time did.

What fails beside others and passes alone is no accident to forget: it is named at the end.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

AGAIN = "GRADER_TESTS_AGAIN"
"""Set while what has failed is run once more: what was kept of the first time may be used."""


def main(arguments: list[str]) -> int:
    """Exit code of the run that decides."""
    with tempfile.TemporaryDirectory(prefix="grader-twice-") as cache:
        pytest = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}"]
        code = subprocess.run([*pytest, *arguments], check=False).returncode
        if code != 1:
            return code
        failed = _failed(Path(cache))
        print("once more, with nothing beside it: what has failed", flush=True)
        # What has failed is run again however late it is: left out, it would count as passed.
        environment = {name: value for name, value in os.environ.items() if not name.endswith("_UNTIL")}
        environment[AGAIN] = "1"
        again = [*pytest, "--last-failed", "--last-failed-no-failures=none"]
        code = subprocess.run(again, env=environment, check=False).returncode
        passed = sorted(failed - _failed(Path(cache)))
        if passed:
            print("faults to mend, each failed once and passed alone:")
            print("\n".join(f"  {name}" for name in passed))
            sys.stdout.flush()
        return code


def _failed(cache: Path) -> set[str]:
    path = cache / "v" / "cache" / "lastfailed"
    return set(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else set()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
