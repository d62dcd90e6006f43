"""The page about leaving `mp.spawn` shows every change between its two scripts, and none that they do not have."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
BEFORE, AFTER = ((DOCS / "from-mp-spawn" / f"{name}.py").read_text() for name in ("before", "after"))
BLOCKS = re.findall(r"^```diff\n(.*?)^```", (DOCS / "from-mp-spawn.md").read_text(), re.MULTILINE | re.DOTALL)


def side(block: str, mark: str) -> str:
    """What a block shows of one of the scripts."""
    return "".join(line[1:] for line in block.splitlines(keepends=True) if line[0] in (" ", mark))


def test_each_block_is_a_piece_of_both_scripts() -> None:
    assert BLOCKS
    for block in BLOCKS:
        assert side(block, "-") in BEFORE
        assert side(block, "+") in AFTER


def test_the_blocks_are_all_that_changes() -> None:
    lines = difflib.unified_diff(BEFORE.splitlines(), AFTER.splitlines(), lineterm="", n=0)
    changed = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
    shown = [line for block in BLOCKS for line in block.splitlines() if line[0] in "-+"]
    assert sorted(shown) == sorted(changed)
