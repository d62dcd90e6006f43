"""What git says of a folder; it is asked, and changes nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

_TIMEOUT_S = 60.0


def git_output(folder: Path, *arguments: str) -> bytes | None:
    """Standard output; None where git fails or takes too long.

    Raises:
        FileNotFoundError: git is not installed here.
    """
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    return done.stdout if done.returncode == 0 else None
