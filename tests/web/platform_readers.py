"""Learning platforms' own rules for reading a gradebook file, as their importers apply them."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, field


@dataclass
class CanvasImport:
    """What Canvas makes of a file: assignments with their points possible, and scores by login."""

    possible: dict[str, float] = field(default_factory=dict)
    known_ids: list[str] = field(default_factory=list)
    scores: dict[str, dict[str, str]] = field(default_factory=dict)
    sis_ids: dict[str, str] = field(default_factory=dict)
    sections: dict[str, str] = field(default_factory=dict)


def read_canvas(data: bytes) -> CanvasImport:
    """As `lib/gradebook_importer.rb` does: where columns stand, which rows are no learner's, which columns its own."""
    header, *rows = csv.reader(io.StringIO(data.decode("utf-8")))
    assert "Student" in header[0]
    assert "ID" in header[1]
    assert re.search(r"SIS\s+User\s+ID", header[2])
    assert re.search(r"SIS\s+Login\s+ID", header[3])
    assert "Section" in header[4]
    own = re.compile(r"(Current|Final) (Score|Points|Grade)|Override (Score|Grade|Status)")
    columns = {place: name for place, name in enumerate(header) if place > 4 and not own.search(name)}
    found = CanvasImport(known_ids=[one for one in columns.values() if re.search(r"\(\d+\)$", one)])
    for row in rows:
        if re.fullmatch(r"[;, ]+", ",".join(row)):
            continue
        if "Points Possible" in row[0]:
            found.possible |= {name: float(row[place]) for place, name in columns.items()}
            continue
        assert not row[1], "we do not know the numbers that Canvas gives"
        login = row[3]
        found.sis_ids[login], found.sections[login] = row[2], row[4]
        found.scores[login] = {name: row[place] for place, name in columns.items()}
    return found


def read_moodle(data: bytes, user_column: str, items: list[str]) -> dict[str, dict[str, float | None]]:
    """As `load_data.php` does once a column is mapped to the user and others to grade items.

    Names of columns are trimmed; empty or `-` is no grade, and what else is no number, or above 100, ends the import.
    """
    header, *rows = csv.reader(io.StringIO(data.decode("utf-8-sig")))
    header = [one.strip() for one in header]
    found: dict[str, dict[str, float | None]] = {}
    for row in rows:
        values = dict(zip(header, row, strict=True))
        if not values[user_column]:
            continue
        grades = {item: None if values[item] in ("", "-") else float(values[item]) for item in items}
        assert all(one is None or 0 <= one <= 100 for one in grades.values())
        found[values[user_column]] = grades
    return found
