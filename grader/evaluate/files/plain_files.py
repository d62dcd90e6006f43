"""Open files that a stranger left: plain ones of bounded size, and nothing is followed on the way to them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from grader.model.evaluation import ArtifactProblem


class RefusedError(Exception):
    """An artifact cannot be scored; data for the learner, never a fault of ours."""

    def __init__(self, problem: ArtifactProblem, detail: str, artifact: str = "", size: int = 0) -> None:
        super().__init__(detail)
        self.problem = problem
        self.detail = detail
        self.artifact = artifact
        self.size = size


def read_plain_file(folder: Path, name: str, max_bytes: int) -> bytes | None:
    """Content of a regular file directly in `folder`; None where there is none.

    Raises:
        RefusedError: it is anything but a plain file of at most `max_bytes` with one name.
    """
    try:
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        descriptor = os.open(
            name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory
        )
    except FileNotFoundError:
        return None
    except OSError as error:
        # ELOOP is how O_NOFOLLOW says symbolic link; ENXIO how a socket says no.
        raise RefusedError(
            ArtifactProblem.REFUSED, f"{name} is not a plain file ({error.strerror}).", name
        ) from None
    finally:
        os.close(directory)
    status = os.fstat(descriptor)
    # `fdopen` refuses a folder with an exception of its own.
    if stat.S_ISDIR(status.st_mode):
        os.close(descriptor)
        raise RefusedError(ArtifactProblem.REFUSED, f"{name} is not a plain file but a folder.", name)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(status.st_mode):
            raise RefusedError(ArtifactProblem.REFUSED, f"{name} is not a plain file.", name)
        if status.st_nlink != 1:
            raise RefusedError(ArtifactProblem.REFUSED, f"{name} is a hard link to another file.", name)
        if status.st_size > max_bytes:
            said = f"{name} has {status.st_size:,} bytes; at most {max_bytes:,} are read."
            raise RefusedError(ArtifactProblem.REFUSED, said, name, status.st_size)
        return file.read(max_bytes)
