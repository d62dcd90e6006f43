"""Notebooks as editors save them."""

from __future__ import annotations

import json
from typing import Any


def notebook(*cells: str | tuple[str, str], outputs: Any = ()) -> bytes:
    """A notebook's file; a cell is the text of a code cell, or its kind and its text."""
    told = [("code", cell) if isinstance(cell, str) else cell for cell in cells]
    return json.dumps(
        {
            "cells": [
                {
                    "cell_type": kind,
                    "id": f"c{number}",
                    "metadata": {},
                    "source": text.splitlines(keepends=True),
                }
                | ({"outputs": list(outputs), "execution_count": 3} if kind == "code" else {})
                for number, (kind, text) in enumerate(told)
            ],
            "metadata": {},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    ).encode()
