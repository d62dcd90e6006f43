"""A table of comma-separated values with a header line: `table.csv` in `train`, `validation` and `hidden`."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from grader.catalog.tasks.shares import divided, folders_of, one_file
from grader.errors import UsageError


def prepare(out: Path, source: Path) -> dict[str, int]:
    """Divide the rows; equal rows fall on one side, and each part has the header line."""
    path = one_file(source, ".csv")
    try:
        header, *rows = csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline=""))
    except (OSError, ValueError, csv.Error) as error:
        raise UsageError(f"{path} is no table with a header line: {error}.") from None
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise UsageError(f"{path}, row {number}: {len(row)} values under {len(header)} columns.")
    split = divided((repr(row).encode() for row in rows), path)
    for part, folder in folders_of(out).items():
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "table.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([header, *(rows[i] for i in split[part])])
    return {part: len(indices) for part, indices in split.items()}
