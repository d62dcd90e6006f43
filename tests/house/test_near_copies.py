"""A flawed submission that is a near-copy of an accepted one is a patch: a reader sees the flaw, not the script."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.catalog.submissions.unified_diff import split, write_diff

NEAR = 0.6
"""A patch of fewer lines than this share of the script's."""
WHY_WHOLE = "# whole: "
"""How a script's first lines say why it stays whole all the same."""


def near_copies(submissions: Path) -> list[str]:
    """Flawed whole scripts of a task whose patch would be clearly shorter."""
    bases = {path.name: path.read_text(encoding="utf-8") for path in submissions.glob("accepted/*.py")}
    found = []
    for path in sorted(submissions.glob("*/*.py")):
        text = path.read_text(encoding="utf-8")
        lines = split(text)
        if path.parent.name == "accepted" or any(line.startswith(WHY_WHOLE) for line in lines[:5]):
            continue
        diffs = (write_diff(base, text, f"accepted/{name}", "new.py") for name, base in bases.items())
        if min((len(split(diff)) for diff in diffs if diff), default=len(lines)) < NEAR * len(lines):
            found.append(path.relative_to(submissions).as_posix())
    return found


def test_near_copies_are_patches(repository: Path) -> None:
    found = {
        f"{folder.parent.name}/{name}"
        for folder in repository.glob("tasks/*/submissions")
        for name in near_copies(folder)
    }
    assert not found, f"`grader tasks TASK --as-patch NAME` shows the flaw alone; or say why: {WHY_WHOLE}…"


@pytest.mark.parametrize(("first", "near"), [("", True), (f"{WHY_WHOLE}read side by side\n", False)])
def test_a_near_copy_is_found_unless_it_says_why(first: str, near: bool, tmp_path: Path) -> None:
    lines = [f"step_{n} = {n}\n" for n in range(50)]
    for name, text in (("accepted/one.py", lines), ("rejected/other.py", [first, *lines[:-1]])):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("".join(text))
    assert near_copies(tmp_path) == ["rejected/other.py"] * near
