"""Scripts whose ranks need hash seeds of their own are told from those that only look things up."""

from __future__ import annotations

import pytest

from grader.model.submission import SourceFile, Submission
from grader.run.hash_order import may_follow_hash_order


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("for name in set(table):\n    reduce(name)\n", True),
        ("names = {n for n in table}\n", True),
        ("order = ['a', *{'b', 'c'}]\n", True),
        ("share = hash(path) % world\n", True),
        ("if name in {'weight', 'bias'}:\n    pass\n", False),
        ("for name in sorted(table):\n    reduce(name)\n", False),
        ("model.set(3)\ntable = {'a': 1}\n", False),
        ("not Python at all (", True),
    ],
)
def test_what_depends_on_hashes(text: str, expected: bool) -> None:
    files = (SourceFile("train.py", "import helper\n"), SourceFile("helper.py", text))
    assert may_follow_hash_order(Submission("test", files)) is expected


def test_other_files_do_not_count() -> None:
    files = (SourceFile("train.py", "pass\n"), SourceFile("notes.txt", "a set( of notes"))
    assert not may_follow_hash_order(Submission("test", files))
