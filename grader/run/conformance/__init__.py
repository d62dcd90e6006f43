"""What every runtime has to keep, as tests that a package with a runtime of its own can run over it.

A runtime is a class that follows the protocol in `grader.run.runtime`; a package offers it by an entry point and runs
this suite by a test file of a few lines, which docs/plugins.md shows.

Every test asks for a run of a small script and looks at what came of it: record, logs, trace, files. All are skipped
where the runtime's own self-test says that this machine cannot run it. Nothing else of the grader needs pytest.
"""

from __future__ import annotations

import pytest

# Before they are imported, so that a failed assertion shows its values.
for _tests in ("endings", "environment", "outputs", "traces", "training"):
    pytest.register_assert_rewrite(f"{__name__}.{_tests}")

from grader.run.conformance.suite import RuntimeConformance  # noqa: E402

__all__ = ["RuntimeConformance"]
