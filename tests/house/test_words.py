"""No file names the machine it was written on or the place packages came from, and none is left half done."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

# Letters in brackets keep these patterns from finding themselves.
PLACES = {
    "a path of somebody's machine": r"(?<![\w.<-])/(?:w[o]rk|r[o]ot|h[o]me/\w+|tmp/s)/",
    "an address of a package index": r"https?://[^\s\"'>]*/s[i]mple\b|py[p]i\.org|pyth[o]nhosted",
    "an option that names a package index": r"(?<!no-emit-)(?:(?:extra-)?ind[e]x-url|f[i]nd-links)\b",
}
UNFINISHED = r"\b(?:TO[D]O|FIX[M]E|X[X]X|raise NotImplemented[E]rror|place[h]older|for n[o]w|simpl[i]fied)\b"
PRODUCT = ("grader/", "tasks/", "skeletons/", "containers/")


@pytest.fixture(scope="module")
def texts(repository: Path) -> dict[str, str]:
    """Every text file that is, or would be, committed: path relative to the checkout → its text."""
    if not (repository / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=repository,
        check=True,
        capture_output=True,
    )
    found = {}
    for name in filter(None, listed.stdout.decode().split("\0")):
        path = repository / name
        if path.is_file() and b"\0" not in (data := path.read_bytes()):
            found[name] = data.decode("utf-8", errors="replace")
    assert "README.md" in found
    return found


def places_of(pattern: str, texts: dict[str, str]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in texts.items()
        for number, line in enumerate(text.splitlines(), start=1)
        if re.search(pattern, line)
    ]


@pytest.mark.parametrize("what", PLACES)
def test_no_file_names(what: str, texts: dict[str, str]) -> None:
    found = places_of(PLACES[what], texts)
    assert not found, f"{what} does not belong in the repository:\n" + "\n".join(found)


def test_nothing_in_the_product_is_unfinished(texts: dict[str, str]) -> None:
    product = {name: text for name, text in texts.items() if name.startswith(PRODUCT)}
    found = places_of(UNFINISHED, product)
    assert not found, "finish these, or say what they do instead of what they lack:\n" + "\n".join(found)
