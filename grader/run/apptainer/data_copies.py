"""The splits as containers of another account can read them: as they lie, or copied where they would be closed to it.

A copy lives as long as the runtime that made it.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from grader.errors import InfraError
from grader.run.apptainer.installation import Installation


class DataCopies:
    """Folders by where they lie, below `root`."""

    def __init__(self, root: Path, installation: Installation) -> None:
        self._root = root
        self._installation = installation

    def of(self, folder: Path) -> Path:
        """Where containers find what is in a folder.

        Raises:
            InfraError: it cannot be copied.
        """
        source = folder.resolve()
        if not self._installation.changes_user:
            return source
        try:
            changed = max((path.stat().st_mtime_ns for path in (source, *source.rglob("*"))), default=0)
            name = hashlib.sha256(f"{source}:{changed}".encode()).hexdigest()[:16]
            copy = self._root / name
            if not copy.exists():
                shutil.copytree(source, copy)
                for path in (copy, *copy.rglob("*")):
                    path.chmod(0o755 if path.is_dir() else 0o644)
        except OSError as error:
            raise InfraError(f"The data could not be laid out for containers: {error}") from error
        return copy
