"""The code cells of a notebook's file, which may hold anything: JSON, every value looked at before it is used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from grader.errors import UsageError

_MAX_CELLS = 10_000
_KNOWN = 4


def code_cells(content: bytes, name: str) -> Iterator[tuple[int, str]]:
    """(number, text) of each code cell; cells are counted from 1, those with text among them, as editors count.

    Raises:
        UsageError: the file is no notebook of a format that is read; says what to do.
    """
    cells = _notebook(content, name)["cells"]
    if not isinstance(cells, list) or len(cells) > _MAX_CELLS:
        raise UsageError(f"{name} is no notebook that can be read: its cells are no list, or too many.")
    for number, cell in enumerate(cells, start=1):
        source = cell.get("source") if isinstance(cell, dict) else None
        if isinstance(source, list) and all(isinstance(line, str) for line in source):
            source = "".join(source)
        if not isinstance(source, str):
            raise UsageError(
                f"Cell {number} of {name} has no text. Open the notebook in Jupyter and save it."
            )
        if cell.get("cell_type") == "code":
            yield number, source


def _notebook(content: bytes, name: str) -> dict[str, Any]:
    if not content.strip():
        raise UsageError(f"{name} is empty. Save your notebook first, then hand it in.")
    try:
        found = json.loads(content)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"{name} is no notebook: it is not JSON (line {error.lineno}, column {error.colno}: {error.msg}). Open it "
            "in Jupyter and save it; where Git has left conflict marks in it, take them out first."
        ) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is no notebook: {str(error)[:120]}. Save it anew from Jupyter.") from None
    number = found.get("nbformat") if isinstance(found, dict) else None
    if isinstance(found, dict) and isinstance(number, int) and number < _KNOWN:
        raise UsageError(
            f"{name} is a notebook of format {number}, which Jupyter has not written since 2015. Open it in Jupyter "
            f"and save it, or run `jupyter nbconvert --to notebook --inplace {name}`: both make format {_KNOWN} of it."
        )
    if not isinstance(found, dict) or number != _KNOWN or "cells" not in found:
        raise UsageError(
            f"{name} is no notebook: it is JSON without `cells` and `nbformat` {_KNOWN}. Hand in the file that "
            "Jupyter saves."
        )
    return found
