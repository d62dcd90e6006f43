"""A course of one task that brings text along: a tokenizer and a module beside its evaluate.py, and a corpus."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

_HERE = Path(__file__).parent
_WORDS = ["a", "ship", "sails", "over", "the", "wide", "sea", "and", "comes", "home"]


def corpus() -> str:
    """5,000 words: mostly the sentence, with a word of their own now and then."""
    number, words = 1, []
    for position in range(5000):
        number = number * 1103515245 + 12345 & 0x7FFFFFFF
        words.append(_WORDS[position % 10 if number >> 16 & 3 else (number >> 20) % 10])
    return " ".join(words)


def write_course(home: Path) -> Path:
    """Lay the task out below `tasks` and `skeletons`; returns its folder."""
    folder = home / "tasks" / "tiny-text"
    shutil.copytree(_HERE / "tiny-text", folder)
    shutil.copytree(_HERE / "skeletons", home / "skeletons", dirs_exist_ok=True)
    (folder / "corpus.txt").write_text(corpus())
    toml = folder / "task.toml"
    digest = hashlib.sha256(corpus().encode()).hexdigest()
    toml.write_text(toml.read_text().replace("@CORPUS@", digest))
    return folder
