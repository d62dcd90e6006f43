"""`record.json` back into a `RunRecord`, strictly: the supervisor wrote it, so anything odd is our own fault.

Never repairs: a record that cannot be trusted must not decide a verdict.
"""

from __future__ import annotations

from pathlib import Path

from grader.errors import InfraError
from grader.json_reader import read_json
from grader.model.run import RunRecord


def read_record(path: Path) -> RunRecord:
    """Read a run's record.

    Raises:
        InfraError: the file is missing, damaged, or says what no run can.
    """
    try:
        record = read_json(RunRecord, path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InfraError(
            f"The run left no record: {error.strerror or error}. Judge the submission again."
        ) from error
    except ValueError as error:
        raise InfraError(
            f"The record of the run is damaged ({path.name}: {error}). Judge it again."
        ) from error
    if [rank.rank for rank in record.ranks] != list(range(record.world_size)):
        raise InfraError(
            f"The record of the run is damaged ({path.name}: ranks are missing). Judge it again."
        )
    return record
