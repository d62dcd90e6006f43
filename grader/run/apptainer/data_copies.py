"""The splits as containers can read them: as they lie, or copied where they would be closed or not all is for them.

A copy lives as long as the runtime that made it.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from grader.errors import InfraError
from grader.launch.ranks.data_folder import files_below
from grader.run.apptainer.installation import Installation


class DataCopies:
    """Folders by where they lie, below `root`."""

    def __init__(self, root: Path, installation: Installation) -> None:
        self._root = root
        self._installation = installation

    def of(self, folder: Path, files: Sequence[str] | None = None) -> Path:
        """Where containers find these files of a folder and no others; None: all of them.

        Raises:
            InfraError: it cannot be copied.
        """
        source = folder.resolve()
        if files is None and not self._installation.changes_user:
            return source
        names = files_below(source) if files is None else files
        try:
            changed = [(name, (source / name).stat().st_mtime_ns) for name in names]
            copy = self._root / hashlib.sha256(f"{source}:{changed}".encode()).hexdigest()[:16]
            if not copy.exists():
                copy.mkdir(parents=True)
                for name in names:
                    (copy / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source / name, copy / name)
                for path in (copy, *copy.rglob("*")):
                    path.chmod(0o755 if path.is_dir() else 0o644)
        except OSError as error:
            raise InfraError(f"The data could not be laid out for containers: {error}") from error
        return copy
