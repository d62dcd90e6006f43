"""The code that docs/ give to those who write a receiver, as it stands there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "api.md"


def receiver_example() -> Callable[[str, Mapping[str, str], bytes], bool]:
    """The function `is_ours(secret, headers, body)` of docs/api.md."""
    blocks = re.findall(r"^```python\n(.*?)^```", _PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (code,) = (block for block in blocks if "def is_ours" in block)
    names: dict[str, Any] = {}
    exec(compile(code, str(_PAGE), "exec"), names)
    found: Callable[[str, Mapping[str, str], bytes], bool] = names["is_ours"]
    return found
