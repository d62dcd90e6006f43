"""A unified diff is applied to the letter, and what is written is what other programs read."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.catalog.submissions.unified_diff import (
    DiffError,
    MismatchError,
    apply,
    apply_anywhere,
    read_diff,
    split,
    write_diff,
)

OLD = "".join(f"line {n}\n" for n in range(1, 21))
NEW = OLD.replace("line 3\n", "third\n").replace("line 17\n", "")
DIFF = write_diff(OLD, NEW, "accepted/old.py", "rejected/new.py")

TEXTS = st.lists(
    st.sampled_from(["a", "b", "", " ", "\t", "--- a", "+++ b", "@@ -1 +1 @@", "\\", "x\r", "é"])
).map("\n".join)


@given(TEXTS, TEXTS, st.booleans(), st.booleans())
def test_what_is_written_makes_the_new_text_of_the_old(
    old: str, new: str, old_ends: bool, new_ends: bool
) -> None:
    old, new = old + "\n" * old_ends, new + "\n" * new_ends
    written = write_diff(old, new, "a", "b")
    if old == new:
        assert written == ""
        return
    diff = read_diff(written)
    assert apply(diff, old) == apply_anywhere(diff, old) == new
    assert (diff.old_name, diff.new_name) == ("a", "b")


@pytest.mark.parametrize(
    ("old", "new"),
    [(OLD, NEW), (OLD, NEW[:-1]), (OLD[:-1], NEW), (OLD, OLD + "\n\n"), (f"\n\n{OLD}", f"\n\n{NEW}")],
)
def test_git_applies_what_is_written(old: str, new: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(old)
    (tmp_path / "a.patch").write_text(
        "# expect: DATA002\n" + write_diff(old, new, "a/train.py", "b/train.py")
    )
    subprocess.run(["git", "apply", "a.patch"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "train.py").read_text() == new


def test_what_diff_writes_is_read(tmp_path: Path) -> None:
    (tmp_path / "old").write_text(OLD)
    (tmp_path / "new").write_text(NEW)
    done = subprocess.run(
        ["diff", "-u", "old", "new"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    diff = read_diff(f"# a comment\n\n{done.stdout}")
    assert (diff.comments, diff.line, diff.old_name, diff.new_name) == (("# a comment",), 3, "old", "new")
    assert apply(diff, OLD) == NEW


@pytest.mark.parametrize(
    ("old", "line", "said"),
    [
        (
            OLD.replace("line 3\n", "line three\n"),
            6,
            "line 3 of accepted/old.py is `line three`, not `line 3`",
        ),
        (OLD.replace("line 14\n", "\n"), 12, "line 14 of accepted/old.py is a blank line, not `line 14`"),
        (
            OLD.replace("line 20\n", "line 20"),
            18,
            "line 20 of accepted/old.py and `line 20` differ in blanks at their ends",
        ),
        (f"new\n{OLD}", 4, "line 1 of accepted/old.py is `new`, not `line 1`"),
        ("line 1\nline 2\n", 6, "accepted/old.py ends at line 2, before `line 3`"),
    ],
)
def test_a_text_that_is_another_is_refused_with_its_first_line(old: str, line: int, said: str) -> None:
    with pytest.raises(MismatchError) as caught:
        apply(read_diff(DIFF), old)
    assert (caught.value.line, str(caught.value)) == (line, said)


def test_lines_are_found_where_they_are_now() -> None:
    moved = f"new\n{OLD}"
    assert apply_anywhere(read_diff(DIFF), moved) == f"new\n{NEW}"
    twice = "line 1\nline 2\nline 3\nline 4\nline 5\nline 6\n" + OLD
    assert apply_anywhere(read_diff(DIFF), twice).count("third") == 1
    with pytest.raises(MismatchError, match="no longer has the lines"):
        apply_anywhere(read_diff(DIFF), OLD.replace("line 17\n", "another\n"))


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "holds no diff"),
        ("# expect: DATA002\n", 1, "holds no diff"),
        ("import torch\n", 1, "`--- ` and the name of the script"),
        ("--- a\n", 2, "`+++ ` and the name of the result"),
        ("--- a\n+++ b\n", 1, "changes nothing: no hunk follows"),
        ("--- a\n+++ b\nx = 1\n", 3, "`x = 1` is in no hunk"),
        ("--- a\n+++ b\n@@ -1,2 +1 @@\n-x\n", 3, "says 2 old and 1 new lines and has 1 and 0"),
        ("--- a\n+++ b\n@@ -1 +1 @@\n-x\n-y\n+z\n", 3, "says 1 old and 1 new lines and has 2 and 1"),
        ("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+z\n z\n", 6, "` z` is in no hunk"),
        ("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n--- c\n+++ d\n", 6, "`--- c` is in no hunk"),
        ("--- a\n+++ b\n@@ -1 +1 @@\nx\n", 3, "says 1 old and 1 new lines and has 0 and 0"),
    ],
)
def test_what_is_no_diff_is_refused_with_its_line(text: str, line: int, said: str) -> None:
    with pytest.raises(DiffError) as caught:
        read_diff(text)
    assert caught.value.line == line
    assert said in str(caught.value)


def test_hunks_out_of_order_or_out_of_place_are_refused() -> None:
    head = "--- a\n+++ b\n"
    with pytest.raises(MismatchError, match="before the end of the hunk above"):
        apply(read_diff(f"{head}@@ -3 +3 @@\n-line 3\n+x\n@@ -2 +2 @@\n-line 2\n+y\n"), OLD)
    with pytest.raises(MismatchError, match="at line 3 of the result, not 4"):
        apply(read_diff(f"{head}@@ -3 +4 @@\n-line 3\n+x\n"), OLD)


def test_only_a_line_feed_ends_a_line() -> None:
    assert split("a\x0cb\rc\u2028d\ne") == ["a\x0cb\rc\u2028d\n", "e"]
