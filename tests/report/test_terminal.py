"""The terminal report: readable at 80 columns, without colour, through a pipe, whatever was printed."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from grader.model.attempt_result import AttemptResult
from grader.model.finding import Severity
from grader.model.grade import Verdict
from grader.model.submission import SourceFile, Submission
from grader.report.audience import Audience, for_audience
from grader.report.terminal.attempt_text import print_attempt, print_grade
from grader.report.terminal.terminal_cards import print_findings
from tests.report import factory

_ATTEMPTS = ("accepted", "rejected", "deadlocked", "crashed", "does_not_parse", "hostile")


def printed(name: str, **options: object) -> str:
    console = Console(file=io.StringIO(), width=80, color_system=None)
    print_attempt(getattr(factory, name)(), console, factory.PAGES, **options)  # type: ignore[arg-type]
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("name", _ATTEMPTS)
def test_no_line_is_wider_than_the_terminal(name: str) -> None:
    assert max(map(len, printed(name).splitlines())) <= 80


def test_the_first_line_is_the_outcome() -> None:
    assert printed("rejected").splitlines()[0] == "✘ Not accepted yet: 45 of 100  ddp-fashion · no_sampler"
    assert printed("accepted").splitlines()[0].startswith("✔ Accepted: 100 of 100")


def test_a_grade_leads_with_what_counts_and_adds_up_to_it() -> None:
    attempt = factory.rejected()
    judged = AttemptResult.of(attempt.grade)
    result = replace(judged, verdict=Verdict.ACCEPTED, points=92.0, decided=True)
    console = Console(file=io.StringIO(), width=80, color_system=None)
    print_grade(attempt.grade, attempt.submission, console, result)
    assert isinstance(console.file, io.StringIO)
    text = squeezed(console.file.getvalue())
    assert text.startswith("✔ Accepted by an instructor: 92 of 100 (judged rejected, 45)")
    assert "As judged: Not accepted yet." in text
    assert "between you and an accepted attempt" not in text
    assert "45/100 together +47 Set by an instructor 92/100 counts" in text


def test_a_grade_that_was_decided_says_no_more_that_it_waits() -> None:
    attempt = replace(factory.accepted(), grade=factory.grade(Verdict.HELD))
    grade = for_audience(attempt.grade, Audience.LEARNER)
    result = replace(AttemptResult.of(grade), verdict=Verdict.REJECTED, points=50.0, decided=True)
    console = Console(file=io.StringIO(), width=80, color_system=None)
    print_grade(grade, attempt.submission, console, result)
    assert isinstance(console.file, io.StringIO)
    text = squeezed(console.file.getvalue())
    assert "As judged: Held for review." in text
    assert "Until then" not in text


def test_what_to_fix_comes_first_with_its_line_its_reason_and_its_cure() -> None:
    text = printed("rejected")
    assert text.index("Must be fixed (1)") < text.index("1. DATA001") < text.index("Costs points (1)")
    assert text.index("Costs points (1)") < text.index("2. IO002") < text.index("Good to know (1)")
    assert "train.py:23" in text
    assert re.search(r"23 ▸ train_loader = DataLoader\(train_set", text)
    assert "drew the same 1,437 indices in epochs 0 to 5" in squeezed(text)
    assert "Write instead: Give each rank its own part" in squeezed(text)
    assert "seen by: trace, confirmed" in squeezed(text)
    assert "−25 of 25 points for “Every sample goes to exactly one rank”" in text


def test_a_caret_stands_under_the_column_to_blame() -> None:
    lines = printed("rejected").splitlines()
    (quoted,) = [i for i, line in enumerate(lines) if "36 ▸ print(" in line]
    assert lines[quoted + 1].index("^") == lines[quoted].index("print(")


def test_every_rubric_item_says_what_the_evidence_says() -> None:
    text = squeezed(printed("rejected"))
    assert "✔ earned" in text
    assert "✘ lost" in text
    assert (
        "left out – cannot be shown here Each rank uses its own device There are no GPUs in this profile."
        in text
    )


def test_targets_stand_beside_what_was_measured() -> None:
    text = squeezed(printed("rejected"))
    assert "Accuracy on unseen data 0.940 at least 0.900 ✔ reached" in text
    assert "CPU time of the slowest rank 6.3 s at most 4.3 s ✘ missed" in text


def test_a_run_that_did_not_end_has_no_time_and_no_accuracy() -> None:
    text = squeezed(printed("deadlocked"))
    assert "CPU time of the slowest rank – at most 4.3 s – not measured" in text


def test_a_time_that_the_rubric_does_not_let_count_is_not_called_reached() -> None:
    attempt = factory.accepted()
    judged = replace(attempt.grade, rubric=factory.rubric({"time": ()}, "Nothing was trained in that time."))
    console = Console(file=io.StringIO(), width=80, color_system=None)
    print_attempt(replace(attempt, grade=judged), console, {})
    assert isinstance(console.file, io.StringIO)
    assert "3.2 s at most 4.3 s ✘ not counted" in squeezed(console.file.getvalue())


def test_a_deadlock_names_line_and_collective_of_every_rank() -> None:
    text = squeezed(printed("deadlocked"))
    assert re.search(r"0 barrier train\.py:39 in main dist\.barrier\(\)", text)
    assert re.search(r"1 destroy_process_group train\.py:41 in main dist\.destroy_process_group\(", text)
    assert "A collective ends only when every rank has called it" in text


def test_a_run_that_ended_badly_is_explained_before_any_table_or_traceback() -> None:
    text = printed("deadlocked")
    told = squeezed(text)
    assert text.index("What happened") < text.index("Where each rank waits")
    assert "Rank 0 called a collective that the others never reach" in told
    assert "under `if rank == 0:` in line 38" in told
    assert "What to write instead stands at DIST009, below." in told
    assert told.count("Write instead:") == 1
    assert "What happened" not in printed("rejected")


def test_a_crash_names_rank_line_and_exception() -> None:
    text = squeezed(printed("crashed"))
    assert "rank 0 at train.py:32: exit code 1" in text
    assert "RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x784 and 785x128)" in text
    assert "rank 1 at" not in text


def test_a_rank_that_dies_without_an_exception_is_quoted_with_its_last_words() -> None:
    crashed = factory.crashed()
    assert crashed.record is not None
    ranks = (factory.rank_record(0, exit_code=3), factory.rank_record(1))
    logs = (("", "lots of noise\nout of patience, leaving\n"), ("", ""))
    attempt = factory.with_evidence(crashed, record=replace(crashed.record, ranks=ranks), logs=logs)
    console = Console(file=io.StringIO(), width=80, color_system=None)
    print_attempt(attempt, console, {})
    assert isinstance(console.file, io.StringIO)
    assert "rank 0: exit code 3" in console.file.getvalue()
    assert "out of patience, leaving" in console.file.getvalue()


def test_hostile_output_never_reaches_the_terminal_as_control_characters() -> None:
    text = printed("hostile")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", text)
    assert "␛[2J" in text


def test_markup_in_messages_is_text() -> None:
    finding = replace(factory.DATA001, message="[bold]loss[/bold] [link=file:///x]here[/link] [/nothing]")
    console = Console(file=io.StringIO(), width=80, color_system=None)
    print_findings((finding,), factory.submission(), console, {})
    assert isinstance(console.file, io.StringIO)
    assert "[bold]loss[/bold] [link=file:///x]here[/link] [/nothing]" in squeezed(console.file.getvalue())


def test_a_terminal_that_knows_only_ascii_gets_ascii() -> None:
    raw = io.BytesIO()
    console = Console(file=io.TextIOWrapper(raw, encoding="ascii"), width=80, color_system=None)
    for name in _ATTEMPTS:
        print_attempt(getattr(factory, name)(), console, factory.PAGES)
    console.file.flush()
    text = raw.getvalue().decode("ascii")
    assert "x Not accepted yet: 45 of 100" in text
    assert "ok earned" in text


def test_colour_adds_nothing_but_colour() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system="truecolor")
    print_attempt(factory.rejected(), console, factory.PAGES)
    assert isinstance(console.file, io.StringIO)
    coloured = console.file.getvalue()
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == printed("rejected")


def test_learners_do_not_see_review_findings_and_staff_do() -> None:
    assert "TRUST002" not in printed("rejected")
    assert "TRUST002" in printed("rejected", audience=Audience.STAFF)


def test_held_is_told_without_an_accusation() -> None:
    attempt = replace(factory.accepted(), grade=factory.grade(Verdict.HELD, verdict_reason="Forged trace."))
    console = Console(file=io.StringIO(), width=80, color_system=None)
    print_attempt(attempt, console, {})
    assert isinstance(console.file, io.StringIO)
    assert "Forged" not in console.file.getvalue()
    assert "An instructor looks at this attempt" in console.file.getvalue()


def test_lint_shows_findings_and_counts_them() -> None:
    console = Console(file=io.StringIO(), width=80, color_system=None)
    print_findings((factory.DATA001, factory.IO002), factory.submission(), console, factory.PAGES)
    print_findings((), factory.submission(name="clean"), console, factory.PAGES)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert "no_sampler: 1 error and 1 warning." in lines
    assert lines[-1] == "clean: no findings in the text; what the script does, only a run shows."


def test_places_that_touch_are_quoted_together() -> None:
    where = tuple(replace(factory.DATA001.where[0], line=line, end_line=line) for line in (33, 34, 23, 32))
    console = Console(file=io.StringIO(), width=80, color_system=None)
    print_findings((replace(factory.DATA001, where=where),), factory.submission(), console, {})
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert re.search(r"train\.py:33, 34, 32\n +32 ▸ loss.*\n(?: +\^\n)? +33 ▸ optimizer", text)
    assert text.index("train.py:33, 34, 32") < text.index("train.py:23")


def test_long_places_and_unknown_files_are_quoted_as_far_as_possible() -> None:
    text = "\n".join(f"line_{number} = 1" for number in range(1, 40))
    submission = Submission("long", (SourceFile("train.py", text),))
    places = tuple(replace(factory.DATA001.where[0], line=n, end_line=n + 20, column=1) for n in (2, 10, 90))
    finding = replace(factory.DATA001, where=(*places, *places), severity=Severity.HINT)
    console = Console(file=io.StringIO(), width=80, color_system=None)
    print_findings((finding,), submission, console, {})
    assert isinstance(console.file, io.StringIO)
    out = console.file.getvalue()
    assert "7 ▸ line_7 = 1" in out
    assert "8 ▸" not in out.split("train.py:10")[0]
    assert "… and 15 more lines" in out
    assert "train.py:90" in out
    assert "… and 2 more places" in out
