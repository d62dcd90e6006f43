"""What changed since an attempt before: findings that went and came, and the text, whatever was done to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from grader.catalog.submissions.unified_diff import apply, read_diff
from grader.model.attempt_result import AttemptResult
from grader.model.finding import EvidenceKind, Finding, Location, Severity
from grader.model.grade import CheckResult, Grade, State
from grader.model.submission import SourceFile, Submission
from grader.report.audience import Audience, for_audience
from grader.report.changes.attempt_changes import AttemptChanges, JudgedSubmission, attempt_changes
from grader.report.changes.source_changes import MOST_LINES, FileChange, FileChangeKind, SourceChanges
from grader.report.changes.text_diff import LineSign
from tests.report import factory

TITLES = {"IO001": "Every rank saves", "DATA001": "Every rank trains on the whole set"}


def found(code: str, line: int = 0, *, path: str = "train.py", **more: Any) -> Finding:
    where = (Location(path, line),) if line else ()
    return Finding(code, Severity.ERROR, EvidenceKind.TRACE, f"Seen {code}.", where=where, **more)


def judged(text: str | dict[str, str], *findings: Finding, **more: Any) -> JudgedSubmission:
    files = {"train.py": text} if isinstance(text, str) else text
    grade: Grade = replace(factory.accepted().grade, findings=findings, **{"checks": (), **more})
    submission = Submission("train", tuple(SourceFile(path, files[path]) for path in sorted(files)))
    return JudgedSubmission(submission, grade, AttemptResult.of(grade))


def compared(before: JudgedSubmission, now: JudgedSubmission) -> AttemptChanges:
    return attempt_changes(before, now, TITLES)


def codes(changes: AttemptChanges) -> tuple[list[str], list[str], int]:
    return [one.code for one in changes.went], [one.code for one in changes.came], changes.num_stayed


def files(before: dict[str, str], now: dict[str, str]) -> tuple[FileChange, ...]:
    return SourceChanges.between(judged(before).submission, judged(now).submission).files()


def test_findings_go_come_and_stay() -> None:
    changes = compared(
        judged("a\nb\nc\n", found("DATA001", 1), found("IO001", 2)),
        judged("b\nc\nd\n", found("IO001", 1), found("GRAD001")),
    )
    assert codes(changes) == (["DATA001"], ["GRAD001"], 1)
    assert (changes.went[0].title, changes.went[0].place) == (TITLES["DATA001"], Location("train.py", 1))
    # A rule of a course's own may have no page here.
    assert changes.came[0].title == "Seen GRAD001."
    assert changes.anything


def test_of_several_with_one_code_those_stay_whose_line_is_there_still() -> None:
    before = judged("save(a)\nx\nsave(b)\ny\n", found("IO001", 1), found("IO001", 3))
    mended = compared(before, judged("import os\nx\nsave(b)\ny\n", found("IO001", 3)))
    assert codes(mended) == (["IO001"], [], 1)
    assert mended.went[0].place == Location("train.py", 1)
    moved = judged("import os\nimport sys\nsave(a)\nx\nsave(b)\ny\n", found("IO001", 3), found("IO001", 5))
    assert codes(compared(before, moved)) == ([], [], 2)


def test_a_line_that_was_rewritten_and_is_wrong_still_is_the_same_finding() -> None:
    before = judged("save(a)\nx\nsave(b)\n", found("IO001", 1), found("IO001", 3))
    now = judged("save(a, 1)\nx\nsave(b)\n", found("IO001", 1), found("IO001", 3))
    assert codes(compared(before, now)) == ([], [], 2)


def test_findings_follow_a_file_that_was_renamed() -> None:
    text = "one\ntwo\nthree\nfour\n"
    before = judged(
        {"train.py": "a\n", "data.py": text}, found("IO001", 2, path="data.py"), found("IO001", 1)
    )
    now = judged(
        {"train.py": "a\n", "loading.py": text}, found("IO001", 2, path="loading.py"), found("IO001", 1)
    )
    assert codes(compared(before, now)) == ([], [], 2)


def test_what_a_run_refuted_is_no_finding() -> None:
    changes = compared(judged("a\n", found("IO001", 1, refuted="Rank 0 alone saved.")), judged("a\n"))
    assert codes(changes) == ([], [], 0)


def test_what_could_not_be_seen_is_not_told_as_mended() -> None:
    unseen = (CheckResult("DATA001", State.NOT_REACHED, (), "The run ended before its first epoch."),)
    healthy, crashed = judged("a\n", found("DATA001")), judged("b\n", found("DIST001"), checks=unseen)
    assert [one.doubt for one in compared(healthy, crashed).went] == ["could not be seen this time"]
    assert [one.doubt for one in compared(crashed, healthy).came] == ["could not be seen then"]
    assert [one.doubt for one in compared(healthy, judged("b\n")).went] == [""]
    assert compared(healthy, crashed).summary == "1 not to be seen this time, 1 new"
    assert compared(crashed, healthy).summary == "1 mended, 1 to be seen only now"
    assert compared(healthy, judged("b\n")).summary == "1 mended"


def test_what_disappeared_into_its_cause_is_told_so() -> None:
    before, now = judged("a\n", found("DATA001")), judged("b\n", found("DIST001"))
    cause = replace(now.grade.findings[0], details={"explains": ["DATA001"]})
    now = replace(now, grade=replace(now.grade, findings=(cause,)))
    assert [one.doubt for one in compared(before, now).went] == ["follows from DIST001 now"]
    assert [one.doubt for one in compared(now, before).came] == ["followed from DIST001 then"]


def test_nothing_that_is_for_staff_comes_out_of_a_learners_grade() -> None:
    grade = for_audience(factory.rejected().grade, Audience.LEARNER)
    before = judged("a\n")
    changes = compared(before, replace(before, grade=grade))
    assert not any(one.code.startswith("TRUST") for one in changes.came)


def test_nothing_changed_is_said() -> None:
    before = judged("a\n", found("IO001", 1))
    changes = compared(before, judged("a\r\n", found("IO001", 1)))
    assert not changes.anything
    assert changes.notes == ("The same text was handed in.",)
    other_task = compared(before, judged("b\n", found("IO001", 1), task_version="other"))
    assert other_task.anything
    assert "task itself was changed" in other_task.notes[0]


def test_files_that_were_added_removed_and_renamed_are_told_as_that() -> None:
    text = "one\ntwo\nthree\nfour\n"
    changed = files(
        {"train.py": "a\nb\n", "old.py": text, "gone.py": "x = 1\n"},
        {"train.py": "a\nc\n", "new.py": text, "fresh.py": "y = 2\n"},
    )
    told = {one.path: (one.kind, one.old_path, one.num_added, one.num_removed) for one in changed}
    assert told == {
        "fresh.py": (FileChangeKind.ADDED, "", 1, 0),
        "gone.py": (FileChangeKind.REMOVED, "gone.py", 0, 1),
        "new.py": (FileChangeKind.RENAMED, "old.py", 0, 0),
        "train.py": (FileChangeKind.CHANGED, "train.py", 1, 1),
    }
    unified = {one.path: one.unified for one in changed}
    assert unified["new.py"] == ""
    assert unified["train.py"] == "--- a/train.py\n+++ b/train.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
    assert unified["fresh.py"].startswith("--- /dev/null\n+++ b/fresh.py\n")
    assert unified["gone.py"].startswith("--- a/gone.py\n+++ /dev/null\n")


def test_a_long_diff_is_cut_and_says_how_much_is_left_out() -> None:
    numbers = [str(one) for one in range(MOST_LINES)]
    first, second = files(
        {"a.py": "", "b.py": ""}, {"a.py": "\n".join(numbers[:-5]), "b.py": "\n".join(numbers)}
    )
    shown = [len(hunk.lines) for one in (first, second) for hunk in one.hunks]
    assert sum(shown) == MOST_LINES
    assert (first.num_left_out, second.num_left_out) == (0, MOST_LINES - 5)
    (wide,) = files({"train.py": "a\n"}, {"train.py": "x" * 100_000})
    assert len(wide.unified) < 1000


LINES = st.lists(st.sampled_from(["", "a", "b", "    c", "d"]), max_size=40)


@given(old=LINES, new=LINES)
def test_the_diff_makes_the_new_text_of_the_old(old: list[str], new: list[str]) -> None:
    before, now = "".join(f"{one}\n" for one in old), "".join(f"{one}\n" for one in new)
    changed = files({"train.py": before}, {"train.py": now})
    if before == now:
        assert changed == ()
        return
    assert apply(read_diff(changed[0].unified), before) == now
    lines = [line for hunk in changed[0].hunks for line in hunk.lines]
    assert sum(line.sign is LineSign.ADDED for line in lines) == changed[0].num_added
    assert all(line.text == new[line.new_number - 1] for line in lines if line.new_number is not None), (
        "numbers are those of the new text"
    )
    assert all(line.text == old[line.old_number - 1] for line in lines if line.old_number is not None)


def test_texts_made_to_take_hours_are_told_as_rewritten() -> None:
    def woven(own: str) -> str:
        return "".join(f"{own}{number}\n{number % 50}\n" for number in range(6000)) + own

    names = [f"{name}.py" for name in "abcdefgh"]
    changed = files({name: woven(f"u{name}") for name in names}, {name: woven(f"v{name}") for name in names})
    assert [(one.num_added, one.num_removed) for one in changed] == [(12_001, 12_001)] * 8
    assert all(one.num_left_out for one in changed)
