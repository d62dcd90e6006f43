"""Read what a run left besides weights: tables and tensors of a stranger, checked before anybody computes on them.

A table that is handed on has every column that the task asks for in every row, with numbers that are finite. Whether
they are right is the task's `examine()` to say.
"""

from __future__ import annotations

import csv
import io
import math
import re
from pathlib import Path
from typing import Any

from grader.evaluate.files.plain_files import RefusedError, read_plain_file
from grader.evaluate.files.reported_metrics import strict_json
from grader.evaluate.files.weight_files import load_tensors

MAX_BYTES = 1 << 20
MAX_TENSOR_BYTES = 256 << 20
MAX_ROWS = 10_000
MAX_TEXT = 200

Row = dict[str, Any]


def read_results(
    folder: Path, wanted: dict[str, dict[str, str]]
) -> tuple[dict[str, list[Row] | dict[str, Any]], dict[str, str]]:
    """Every file that can be read, and one sentence about each that cannot.

    Args:
        folder: the output folder.
        wanted: file name → column → kind (`count`, `number`, `text`); no columns: a dictionary of tensors.

    Returns:
        Rows (dictionaries of int, float and str with the task's columns alone) or tensors by file name, and the
        problems by file name.
    """
    found: dict[str, list[Row] | dict[str, Any]] = {}
    unread: dict[str, str] = {}
    for name, columns in wanted.items():
        try:
            content = read_plain_file(folder, name, MAX_BYTES if columns else MAX_TENSOR_BYTES)
            if content is None:
                unread[name] = f"The run left no {name} in $OUTPUT_DIR."
            elif columns:
                found[name] = _table(content, name, columns)
            else:
                found[name] = load_tensors(content, name)
        except RefusedError as refused:
            unread[name] = refused.detail
        except (ValueError, RecursionError) as error:
            unread[name] = f"{error}."
    return found, unread


def _table(content: bytes, name: str, columns: dict[str, str]) -> list[Row]:
    rows = _csv_rows(content, name) if name.endswith(".csv") else _json_rows(content, name)
    if not rows:
        raise ValueError(f"{name} holds no rows")
    if len(rows) > MAX_ROWS:
        raise ValueError(f"{name} has {len(rows):,} rows; at most {MAX_ROWS:,} are read")
    return [
        {column: _value(f"{name}, row {number}", column, row, kind) for column, kind in columns.items()}
        for number, row in enumerate(rows, start=1)
    ]


def _csv_rows(content: bytes, name: str) -> list[dict[str, Any]]:
    try:
        reader = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), skipinitialspace=True)
        return [dict(row) for row in reader]
    except UnicodeDecodeError:
        raise ValueError(f"{name} is not UTF-8 text") from None
    except csv.Error as error:
        raise ValueError(f"{name} is no table of comma-separated values: {error}") from None


def _json_rows(content: bytes, name: str) -> list[dict[str, Any]]:
    document = strict_json(content, name)
    if not isinstance(document, list) or not all(isinstance(row, dict) for row in document):
        raise ValueError(f"{name} is no list of objects, one for each row")
    return document


def _value(where: str, column: str, row: dict[str, Any], kind: str) -> int | float | str:
    value = row.get(column)
    if value is None:
        there = ", ".join(f"`{_shown(key)}`" for key in list(row)[:8])
        raise ValueError(f"{where}: there is no `{column}`; its columns are {there}")
    if kind == "text":
        if not isinstance(value, str) or len(value) > MAX_TEXT:
            raise ValueError(f"{where}, {column}: {_shown(value)} is no short text")
        return value.strip()
    number = _number(where, column, value)
    if kind == "number":
        return number
    if number < 0 or number != int(number):
        raise ValueError(f"{where}, {column}: {_shown(value)} is no whole number of 0 or more")
    return int(number)


def _number(where: str, column: str, value: Any) -> float:
    # Text is how a .csv holds numbers; in JSON a number in quotes is a slip, and a harmless one.
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{where}, {column}: {_shown(value)} is no number")
    try:
        number = float(value)
    except ValueError:
        raise ValueError(f"{where}, {column}: {_shown(value) or 'nothing'} is no number") from None
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{where}, {column}: {_shown(value)} is not finite; the training may have diverged")
    return number


def _shown(value: object) -> str:
    return re.sub(r"[^ -~]", "?", str(value))[:60]
