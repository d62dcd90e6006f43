"""What ranks printed, line by line: in which shape, by which rank, and from which line of the script."""

from __future__ import annotations

import ast
import re

from grader.checks.source.script import Script
from grader.model.finding import Location

_MAX_LINES = 2000
"""Lines per rank that are looked at: more of them tell nothing new."""


def printed_lines(text: str) -> list[str]:
    """What a rank printed, line by line, without empty ones."""
    return [line.strip() for line in text.splitlines()[:_MAX_LINES] if line.strip()]


def shape_of(line: str) -> str:
    """A line without its numbers, which differ from rank to rank."""
    return re.sub(r"[-+]?\d+(?:[.,:]\d+)*(?:e[-+]?\d+)?", "#", line)


def names_rank(line: str, rank: int, world_size: int) -> bool:
    """True when a line names the rank that printed it: `rank 1`, `[1]`, `gpu:1`, `[1/2]`, `1:` in front."""
    patterns = (
        rf"(?:rank|proc(?:ess)?|worker|node|gpu|cuda|device|replica)\W{{0,3}}(?:id\W{{0,3}})?{rank}(?!\d)",
        rf"[\[(<{{]\s*r?{rank}(?:\s*/\s*{world_size})?\s*[\])>}}]",
        rf"^\s*r?{rank}\s*[:|>]",
        rf"(?<![\w.])r{rank}(?!\w)",
    )
    return any(re.search(p, line, re.IGNORECASE) for p in patterns)


def printing_calls(script: Script, line: str) -> tuple[Location, ...]:
    """Calls of `print` that could have made this line: its longest fixed text is part of it."""
    found = []
    for call in script.calls("print"):
        texts = [
            n.value
            for a in call.args
            for n in ast.walk(a)
            if isinstance(n, ast.Constant) and isinstance(n.value, str)
        ]
        longest = max((t.strip() for t in texts), key=len, default="")
        if len(longest) > 2 and longest in line:
            found.append(script.location(call))
    return tuple(found)
