"""A task's folder on its way into the scorer's container, which shares no folder with the machine."""

from __future__ import annotations

import io
import tarfile
from base64 import b64encode
from pathlib import Path

from grader.catalog.tasks.task_files import task_files
from grader.errors import TaskError

MAX_BYTES = 16 << 20
"""Of all files beside `evaluate.py`: they travel with every attempt."""


def packed(folder: Path) -> str:
    """The files of a task's folder but its submissions, as text.

    Raises:
        TaskError: they are too large.
    """
    buffer = io.BytesIO()
    size = 0
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path in task_files(folder):
            size += path.stat().st_size
            if size > MAX_BYTES:
                raise TaskError(
                    f"The files of the task {folder.name} are more than {MAX_BYTES >> 20} MiB, which the scorer would "
                    "be sent for every attempt. Let a `prepare.py` write what is large into the hidden data."
                )
            archive.add(path, path.relative_to(folder).as_posix())
    return b64encode(buffer.getvalue()).decode()
