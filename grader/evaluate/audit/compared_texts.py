"""Hold text that models were given in training against the data set's texts: how much validation text is in it.

Compared is where in a passage the same symbol comes again, not which it is: so a script may number symbols as it likes,
and a passage of a training text is one however its windows are cut. What noise or joints make of training texts is a
passage of the other text by chance alone. Runs in the scorer's child: text was told by the learner's own processes.
"""

from __future__ import annotations

from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from grader.evaluate.scorer.run_scoring import ScoringCache, ScoringRequest
from grader.model.evaluation import ComparedText

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Passages: TypeAlias = NDArray[np.uint64]
    """One number for each place where a passage begins; 0: it is too plain to be told from others."""

PASSAGE = 20
"""Symbols in a row."""
MOST_NUMBERS = 1 << 17
"""Of a run, all ranks and looks alike."""
_FEWEST_SYMBOLS = 8
"""Different ones in a passage."""
_MOST_REPEATED = 3
"""Those in a passage that follow their like: rows that are filled up, and lines of dashes, tell nothing."""
_MOST_BYTES = 1 << 24
"""Of a text, and of all of them: a few seconds' work."""


def compared_texts(
    request: ScoringRequest, _cache: ScoringCache, _mark: Callable[[bytes], object]
) -> dict[str, Any]:
    """The answer to a request for a run that told rows of text: `{"texts": […]}`, see `ComparedText`.

    Args: as `run_scoring.score_run`. Files that are no text are left out.
    """
    import numpy as np

    folder = Path(request.visible)
    training, validation = ([*_texts(folder, of)] for of in (False, True))
    none = np.zeros(1, np.uint64)
    trained, held = (np.concatenate([none, *map(_passages, of)]) for of in (training, validation))
    apart = np.setdiff1d(held, trained)
    if not training or not len(apart):
        return {"texts": []}
    compared, found = Counter[int](), Counter[int]()
    for look in request.told_pictures:
        for row in _rows(look, MOST_NUMBERS // len(request.told_pictures)):
            passages = _passages(row)
            # `np.isin` would sort all of the other side for each row.
            begins = apart.take(np.searchsorted(apart, passages), mode="clip") == passages
            covered = np.convolve(begins, np.ones(PASSAGE, np.int64)) if len(begins) else begins
            compared[look["rank"]] += len(row)
            found[look["rank"]] += int(np.count_nonzero(covered))
    counts = (ComparedText(rank, num, found[rank]) for rank, num in sorted(compared.items()) if num)
    return {"texts": [asdict(one) for one in counts]}


def _texts(folder: Path, validation: bool) -> Iterator[NDArray[np.int64]]:
    """What scripts may read, of the part for validation or of all others, as numbers of characters."""
    import numpy as np

    left = _MOST_BYTES
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts[0] == "validation"
        if inside is not validation or not path.is_file() or path.stat().st_size > left:
            continue
        left -= path.stat().st_size
        try:
            text = path.read_text("utf-8")
        except ValueError:
            continue
        yield np.frombuffer(text.encode("utf-32-le"), np.uint32).astype(np.int64)


def _rows(look: dict[str, Any], most: int) -> NDArray[np.int64]:
    """Of a look as many rows as hold so many numbers, evenly spread; none where they do not fit."""
    import numpy as np

    try:
        values = b64decode(look["values"], validate=True)
        rows = np.frombuffer(values, np.dtype("<u2") if look["text"] else np.uint8).reshape(look["num"], -1)
    except ValueError:
        return np.zeros((0, 0), np.int64)
    return rows[:: max(1, -(-rows.size // max(1, most)))].astype(np.int64)


def _passages(text: NDArray[np.int64]) -> Passages:
    """Of each place the passage from there on: for each symbol in it, how many steps before it came last."""
    import numpy as np

    num = len(text) - PASSAGE + 1
    if num < 1:
        return np.zeros(0, np.uint64)
    order = np.argsort(text, kind="stable")
    again = np.flatnonzero(text[order[1:]] == text[order[:-1]])
    steps = np.zeros(len(text), np.uint64)
    steps[order[again + 1]] = order[again + 1] - order[again]
    factors = np.random.default_rng(0).integers(1, 1 << 63, PASSAGE, dtype=np.uint64)
    found, symbols, repeated = np.zeros(num, np.uint64), np.zeros(num, np.int64), np.zeros(num, np.int64)
    for at, factor in enumerate(factors):
        inside = np.where(steps[at : at + num] <= at, steps[at : at + num], np.uint64(0))
        found += inside * factor
        symbols += inside == 0
        repeated += inside == 1
    found[(symbols < _FEWEST_SYMBOLS) | (repeated > _MOST_REPEATED)] = 0
    return found
