"""Why an upload is not taken: always with what to do instead."""

from __future__ import annotations

from grader.errors import UsageError


class UploadRefusedError(UsageError):
    """The upload is no submission; nothing was written. Its text is for the learner."""
