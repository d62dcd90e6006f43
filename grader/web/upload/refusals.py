"""Why an upload is not taken: always with what to do instead."""

from __future__ import annotations

from grader.errors import UsageError


class UploadRefusedError(UsageError):
    """The upload is no submission; nothing was written. Its text is for the learner."""


def notebook_refused(name: str) -> UploadRefusedError:
    """A notebook: torchrun starts scripts."""
    return UploadRefusedError(
        f"{name} is a notebook, and torchrun starts scripts. Export it with "
        f"`jupyter nbconvert --to script {name}`, check that the result runs from the command line, and upload the "
        ".py file."
    )
