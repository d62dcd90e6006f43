"""One machine's service, as `grader serve` has it."""

from __future__ import annotations

from tests.worker.conftest import data

__all__ = ["data"]
