"""Small programs and libraries of C that tests put in the place of what a machine lacks."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SHARED = ("-shared", "-fPIC")


def compile_c(*sources: Path, to: Path, options: tuple[str, ...] = SHARED) -> None:
    """Compile files of C into one: a library, where the options don't say otherwise; no compiler, no test."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler found; `apt-get install gcc` brings one")
    to.parent.mkdir(parents=True, exist_ok=True)
    # Libraries that are linked come after what needs them.
    subprocess.run([compiler, "-Wall", "-Werror", "-o", to, *sources, *options], check=True)
