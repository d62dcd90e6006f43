"""The folder of one running grader that its containers' folders lie in, with the files all containers are made with.

A grader that was killed outright leaves its folder; its process id in the name says that it is gone.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from grader.errors import InfraError
from grader.run.apptainer.command_lines import HOSTS, HOSTS_TEXT, SECCOMP, ContainerOptions, seccomp_text
from grader.run.apptainer.container_pair import remove_attempt
from grader.run.apptainer.installation import Installation
from grader.run.image_context import recipe_path

_PREFIX = "grader-apptainer-"
DATA = "data"
"""Folder for copies of splits."""


def make_base_folder(installation: Installation) -> Path:
    """A new one; who may pass through it sees no names in it.

    Raises:
        InfraError: the containers' account cannot get there.
    """
    base = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    base.chmod(0o711)
    (base / DATA).mkdir(mode=0o711)
    profile = recipe_path(SECCOMP).read_text(encoding="utf-8")
    for name, text in ((SECCOMP, seccomp_text(profile)), (HOSTS, HOSTS_TEXT)):
        (base / name).write_text(text, encoding="utf-8")
        (base / name).chmod(0o644)
    if not installation.may_read(base / SECCOMP):
        shutil.rmtree(base)
        raise InfraError(
            f"{installation.user} may not look into {base.parent}: set TMPDIR to a folder that is open to all."
        )
    return base


def remove_stale_folders(installation: Installation, options: ContainerOptions) -> None:
    """Remove what graders left that are no more; what does not go is left to the next start."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
        with contextlib.suppress(OSError, InfraError):
            ours = owner.isdigit() and folder.lstat().st_uid == os.getuid()
            if ours and not Path(f"/proc/{owner}").exists():
                for attempt in folder.glob("attempt-*"):
                    remove_attempt(attempt, installation, options)
                shutil.rmtree(folder)
