"""Files to start from: copied under new names, with a few words filled in, whole or not at all, over nothing."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources.abc import Traversable
from pathlib import Path

from grader.errors import InfraError, UsageError

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_SUFFIX = ".txt"


def checked_title(what: str, name: str, title: str | None) -> str:
    """The title of a new thing, its name in words by default.

    Raises:
        UsageError: the name is not spelled like one, or the title would not fit into a file.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name for a {what}: use small letters, digits, - and _, beginning with a letter or a digit."
        )
    title = title or name.replace("-", " ").replace("_", " ").capitalize()
    if not title.isprintable() or '"' in title or "\\" in title:
        raise UsageError(f"{title!r} is no title: leave quotes, backslashes and line breaks out.")
    return title


@contextmanager
def written_whole(target: Path) -> Iterator[Path]:
    """A folder to fill, which is `target` at the end; nothing is left where filling it fails.

    Raises:
        UsageError: the target is there already; InfraError: the disk refuses.
    """
    if target.exists():
        raise UsageError(f"{target} is there already. Choose another name, or remove it first.")
    try:
        # Beside its place and then moved there.
        with tempfile.TemporaryDirectory(prefix=".new-", dir=target.parent) as scratch:
            yield (folder := Path(scratch, target.name))
            folder.rename(target)
    except OSError as error:
        raise InfraError(f"{target} could not be written: {error}") from error


def copy_filled(source: Traversable, target: Path, words: Mapping[str, str]) -> None:
    """Copy a folder of `.txt` files without that ending, `{{word}}` replaced by what it means."""
    target.mkdir()
    for entry in source.iterdir():
        if entry.is_dir():
            copy_filled(entry, target / entry.name, words)
        elif entry.name.endswith(_SUFFIX):
            text = entry.read_text(encoding="utf-8")
            for word, meant in words.items():
                text = text.replace("{{" + word + "}}", meant)
            (target / entry.name.removesuffix(_SUFFIX)).write_text(text, encoding="utf-8")
