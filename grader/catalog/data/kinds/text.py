"""One text: `text.txt` in each split; the last tenth is hidden, the tenth before is there to validate on."""

from __future__ import annotations

from pathlib import Path

from grader.catalog.tasks.shares import folders_of, one_file
from grader.errors import UsageError

_FEWEST = 1000


def prepare(out: Path, source: Path) -> dict[str, int]:
    """Cut the text at two ends of lines; what a sample of it is, scripts decide."""
    path = one_file(source, ".txt")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not UTF-8 text: {error}.") from None
    if len(text) < _FEWEST:
        raise UsageError(
            f"{path} has {len(text)} characters; {_FEWEST:,} are the fewest that can be divided."
        )
    cuts = [0, *(_cut(text, len(text) * tenths // 10) for tenths in (8, 9)), len(text)]
    for number, folder in enumerate(folders_of(out).values()):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "text.txt").write_text(text[cuts[number] : cuts[number + 1]], encoding="utf-8", newline="")
    return {}


def _cut(text: str, at: int) -> int:
    """The end of the line that this place is in; the place itself where the line does not end soon."""
    end = text.find("\n", at, at + len(text) // 20)
    return at if end < 0 else end + 1
