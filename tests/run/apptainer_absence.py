"""Marks of tests that a machine may do without even where everything is required."""

from __future__ import annotations

import os

import pytest

from grader.run.apptainer.installation import find_program


def _absent() -> bool:
    """Where its program is not there, or where whoever starts the tests says that its image files are not."""
    return find_program() is None or os.environ.get("GRADER_WITHOUT_APPTAINER", "") not in ("", "0")


MAY_BE_ABSENT = [pytest.mark.apptainer] if _absent() else []
