"""What the first visitor would otherwise wait for, done before the first one comes."""

from __future__ import annotations

import gc

from grader.checks.limited_reading import BEFORE_RUN, lint_within
from grader.errors import InfraError
from grader.model.submission import SourceFile, Submission
from grader.readers import prepare
from grader.store.attempts.submissions import NewSubmission, submit_all
from grader.store.people.tokens import check_tokens
from grader.web.learner.source_findings import warm_reader
from grader.web.service import WebService

_READERS = 2
"""Ready from the start; more are started as they are needed."""


def warm_up(service: WebService) -> None:
    """Load the rules, ask the database something, and set aside what will live for as long as the process does."""
    script = Submission("warm", (SourceFile("train.py", "import torch\n"),))
    prepare(warm_reader, _READERS)
    # Pages show rules, too.
    warm_reader()
    lint_within(BEFORE_RUN, script)
    try:
        # Two connections are open afterwards: tokens are shown while others' submissions are taken.
        with service.store.read():
            check_tokens(service.store, [""])
            # Nobody's, for no task: it is refused.
            submit_all(service.store, [NewSubmission(0, 0, script)])
    except InfraError:
        # It may still be starting, too; whoever comes before it is there gets a 503.
        pass
    # Everything loaded so far stays. Looking through it for garbage again and again stops all threads for a tenth of
    # a second, which somebody would notice.
    gc.collect()
    gc.freeze()
