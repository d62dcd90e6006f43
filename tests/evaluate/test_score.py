"""Verdicts and points: what gates, what costs, what pays unseen, and what a repeat may do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.checks.evidence import Evidence, SourceEvidence
from grader.checks.source.script import parse
from grader.evaluate.points.score import Score, score
from grader.evaluate.time.timing import needs_repeat
from grader.model.calibration import Calibration, StyleTiming
from grader.model.evaluation import ArtifactProblem, Change, Evaluation, OtherScore
from grader.model.finding import EvidenceKind, Finding, Severity
from grader.model.grade import CheckResult, ItemState, State, Verdict
from grader.model.run import Ending, RankRecord, RunRecord, UsedGpu
from grader.model.task import RubricItem, Task
from grader.model.trace import Final, RankTrace, Trace
from tests.attempt_facts import attempt_facts
from tests.evaluate.test_throughput import rank as trace_of
from tests.evaluate.tiny import make_task

RUBRIC = (
    RubricItem("accuracy", "It learns", 20, True, (), "accuracy", ((0.8, 0.25), (0.9, 0.5))),
    RubricItem("time", "In time", 10, False, (), "time", ((1.25, 0.5),)),
    RubricItem(
        "partition", "Every sample once", 40, True, ("DATA001", "DATA003", "DATA004", "DATA002"), None
    ),
    RubricItem("validation", "Metrics of all ranks", 20, False, ("EVAL001", "EVAL003"), None),
    RubricItem("printing", "Printed once", 10, False, ("IO002",), None),
)
CODES = sorted({code for item in RUBRIC for code in item.requires})
TASK = make_task(Path("nowhere"), RUBRIC, must=("DATA002",))


def ended_with(*sums: float) -> Trace:
    """Ranks that trained, each ending with weights of this sum."""
    return Trace(
        tuple(replace(trace_of(n), finals=(Final(("w",), (s,), False),)) for n, s in enumerate(sums))
    )


def rank(number: int, cpu_s: float) -> RankRecord:
    return RankRecord(number, 0, False, 0.0, 1.0, cpu_s, 0.0, 1, 0, 0, 0, False, 10, False)


def record(cpu_s: float = 3.0, wall_s: float = 2.0, ending: Ending = Ending.COMPLETED) -> RunRecord:
    ranks = (rank(0, cpu_s), rank(1, cpu_s / 2))
    return RunRecord("process", "fork", False, 2, ending, f"It {ending}.", wall_s, 60.0, ranks, ())


def evaluation(accuracy: float = 0.95) -> Evaluation:
    return Evaluation(
        None,
        hidden={"accuracy": accuracy, "loss": 1.0},
        validation={"accuracy": 0.9},
        num_hidden=100,
        num_validation=50,
    )


def calibration(*seconds: float, provisional: bool = False) -> Calibration:
    styles = (
        StyleTiming("accepted/quick", tuple(s / 2 for s in seconds)),
        StyleTiming("accepted/slow", seconds),
    )
    return Calibration(
        "tiny", "1" * 64, "cpu", "noise", 2, "here", styles, 500.0, 9.0, provisional, 0.1, "2025-01-01"
    )


def checked(**states: State) -> tuple[CheckResult, ...]:
    """All checks verified by the trace, except those named."""
    return tuple(
        CheckResult(code, states.get(code, State.VERIFIED), (EvidenceKind.TRACE,), f"{code} looked right.")
        for code in CODES
    )


def finding(code: str, severity: Severity = Severity.WARNING, **more: Any) -> Finding:
    return Finding(code, severity, EvidenceKind.TRACE, f"{code} was seen.", **more)


def evidence(profile: str = "cpu", **run: Any) -> Evidence:
    facts = attempt_facts(profile=profile)
    fields = {"record": record(), "trace": ended_with(1.0, 1.0), **run}
    return Evidence(facts, parse(facts.submission), **fields)


def judged(
    *findings: Finding, task: Task = TASK, checks: tuple[CheckResult, ...] | None = None, **run: Any
) -> Score:
    if checks is None:
        checks = checked(**{f.code: State.CONTRADICTED for f in findings if f.code in CODES})
    run = {"evaluation": evaluation(), "calibration": calibration(3.0, 3.0, 3.0), **run}
    return score(evidence(**run), task, findings, checks)


def item(outcome: Score, name: str) -> Any:
    return next(r for r in outcome.rubric if r.id == name)


def test_all_right_is_all_points() -> None:
    outcome = judged()
    assert (outcome.verdict, outcome.points, outcome.max_points) == (Verdict.ACCEPTED, 100, 100)
    assert all(r.state is ItemState.EARNED for r in outcome.rubric)
    assert item(outcome, "accuracy").evidence == (EvidenceKind.EVALUATION,)
    assert item(outcome, "time").evidence == (EvidenceKind.OUTSIDE,)
    assert outcome.metrics["time_target_s"] == 4.5
    assert outcome.metrics["accuracy_target"] == 0.9
    assert outcome.notes == ()


def test_a_warning_costs_its_share_and_does_not_gate() -> None:
    outcome = judged(finding("EVAL003"))
    assert outcome.verdict is Verdict.ACCEPTED
    validation = item(outcome, "validation")
    assert (validation.earned, validation.points, validation.state) == (10, 20, ItemState.PARTLY)
    assert validation.codes == ("EVAL003",)
    assert validation.reason == (
        "EVAL003: EVAL003 was seen. Of its 2 parts 1 is lost. That earns 10 of 20 points."
    )


def test_what_was_not_seen_beside_a_warning_pays_where_the_outcome_vouches() -> None:
    checks = checked(EVAL001=State.NOT_OBSERVABLE, EVAL003=State.CONTRADICTED)
    validation = item(judged(finding("EVAL003"), checks=checks), "validation")
    assert (validation.earned, validation.points, validation.not_seen) == (10, 20, 10)
    assert "1 is lost, 1 was not seen. What was not seen counts as right, because" in validation.reason
    assert validation.reason.endswith("That earns 10 of 20 points.")
    differing = item(judged(finding("EVAL003"), checks=checks, trace=ended_with(1.0, 2.0)), "validation")
    assert (differing.earned, differing.state) == (0, ItemState.LOST)
    graver = item(judged(finding("EVAL003", Severity.ERROR), checks=checks), "validation")
    assert (graver.earned, graver.points, graver.not_seen) == (0, 20, 0)


def test_an_error_takes_the_whole_item_and_gates() -> None:
    outcome = judged(finding("EVAL003", Severity.ERROR))
    assert outcome.verdict is Verdict.REJECTED
    assert item(outcome, "validation").earned == 0
    assert "EVAL003" in outcome.reason


def test_an_error_that_no_item_is_about_gates_and_costs_what_the_run_came_to() -> None:
    outcome = judged(finding("DEV001", Severity.ERROR))
    assert outcome.verdict is Verdict.REJECTED
    assert (outcome.points, item(outcome, "accuracy").codes) == (80, ("DEV001",))
    assert "DEV001" in outcome.reason
    answered = (RubricItem("throughput", "Measured", 10, True, (), None, answer="throughput"), *RUBRIC)
    outcome = judged(finding("DEV001", Severity.ERROR), task=make_task(Path("nowhere"), answered))
    assert item(outcome, "accuracy").codes == ("DEV001",), "an answer is charged where no network is"
    # A warning is advice then, and what a crash never came to is lost already.
    assert judged(finding("DEV001")).points == 100
    crashed = judged(finding("DEV001", Severity.ERROR), record=record(ending=Ending.CRASHED), evaluation=None)
    assert item(crashed, "accuracy").state is ItemState.NOT_REACHED


def test_a_schedule_is_named_where_the_accuracy_was_missed() -> None:
    outcome = judged(finding("OPT006"), evaluation=evaluation(0.5))
    assert item(outcome, "accuracy").codes == outcome.gating == ("OPT006",)
    assert judged(finding("OPT006")).points == 100


@pytest.mark.parametrize(
    ("details", "severity", "codes"),
    [
        ({"saved_epoch": 5, "metric": "accuracy"}, Severity.WARNING, ("EVAL007",)),
        ({"saved_epoch": 5, "metric": "accuracy"}, Severity.HINT, ()),
        ({"saved_epoch": 5, "metric": "perplexity"}, Severity.WARNING, ()),
        ({}, Severity.WARNING, ()),
    ],
)
def test_older_weights_are_named_where_the_accuracy_was_missed(
    details: dict[str, Any], severity: Severity, codes: tuple[str, ...]
) -> None:
    outcome = judged(finding("EVAL007", severity, details=details), evaluation=evaluation(0.5))
    assert item(outcome, "accuracy").codes == codes


def test_a_warning_that_the_task_makes_a_must_gates() -> None:
    assert judged(finding("DATA002")).verdict is Verdict.REJECTED
    assert (
        judged(finding("DATA002"), task=make_task(Path("x"), RUBRIC[:1], must=())).verdict is Verdict.ACCEPTED
    )


def test_a_fault_that_the_rubric_does_not_name_takes_points_of_its_family() -> None:
    warned = judged(finding("EVAL006"))
    assert (item(warned, "validation").state, item(warned, "validation").codes) == (
        ItemState.PARTLY,
        ("EVAL006",),
    )
    assert (warned.verdict, warned.points) == (Verdict.ACCEPTED, 93.33)
    # It costs, and does not gate: the task has not made it a must.
    part = judged(finding("DATA007"))
    assert (part.verdict, item(part, "partition").earned, part.gating) == (Verdict.ACCEPTED, 32, ())
    assert judged(finding("DATA007", Severity.ERROR)).gating == ("DATA007",)
    # No item that must be right is about it: it is said of itself, and is no code at the end of a sentence.
    wrong = judged(finding("EVAL006", Severity.ERROR))
    assert wrong.reason == "What must be right is not yet: what EVAL006 found."
    # What was only read is not sure enough to be charged where nobody asked for it.
    read = replace(finding("EVAL006"), evidence=EvidenceKind.SOURCE)
    assert judged(read).points == 100


@pytest.mark.parametrize("more", [{"severity": Severity.HINT}, {"refuted": "The trace saw disjoint shards."}])
def test_hints_and_refuted_findings_cost_nothing(more: dict[str, Any]) -> None:
    outcome = judged(finding("DATA003", **more))
    assert (outcome.verdict, outcome.points) == (Verdict.ACCEPTED, 100)


def test_a_fault_folded_into_its_cause_still_costs() -> None:
    checks = checked(DATA001=State.CONTRADICTED)
    outcome = judged(checks=checks)
    assert item(outcome, "partition").earned == 0
    assert outcome.verdict is Verdict.REJECTED
    assert "“Every rank trains on the whole data set”" in outcome.reason, (
        "no code without a card to look it up"
    )
    assert "DATA001" not in outcome.reason


@pytest.mark.parametrize(("severity", "share"), [("error", 0), ("warning", 0.5), ("hint", 1)])
def test_a_folded_fault_costs_what_it_would_by_itself(severity: str, share: float) -> None:
    cause = finding("DATA003", details={"explains": ["DATA001"], "milder": {"DATA001": severity}})
    two = (RubricItem("partition", "Divided", 40, True, ("DATA001", "DATA002"), None), *RUBRIC[1:])
    outcome = judged(cause, task=make_task(Path("nowhere"), two), checks=checked(DATA001=State.CONTRADICTED))
    partition = item(outcome, "partition")
    assert partition.earned == share * partition.points


def test_an_error_costs_where_its_item_is_and_not_where_all_else_was_seen_to_be_right() -> None:
    error = finding("EVAL001", Severity.ERROR, details={"seen_right": ["EVAL003"]})
    alone = judged(error)
    assert item(alone, "validation").earned == 0, "nobody else would charge it"
    more = (*RUBRIC[:-1], RubricItem("printing", "Printed once", 10, True, ("IO002", "EVAL001"), None))
    outcome = judged(error, task=make_task(Path("nowhere"), more))
    assert (item(outcome, "validation").earned, item(outcome, "printing").earned) == (20, 0)
    assert outcome.verdict is Verdict.REJECTED


@pytest.mark.parametrize(
    ("accuracy", "earned"), [(0.9, 20), (0.899, 10), (0.81, 10), (0.8, 5), (0.72, 5), (0.7, 0)]
)
def test_accuracy_has_steps_and_gates(accuracy: float, earned: float) -> None:
    outcome = judged(evaluation=evaluation(accuracy))
    assert item(outcome, "accuracy").earned == earned
    arithmetic = f"That earns {earned:g} of 20 points."
    assert item(outcome, "accuracy").reason.endswith(arithmetic) == (0 < earned < 20)
    assert outcome.verdict is (Verdict.ACCEPTED if accuracy >= 0.9 else Verdict.REJECTED)


def test_a_missed_accuracy_says_why_and_the_reason_costs_nothing_more() -> None:
    scored = replace(
        evaluation(0.1),
        validation={"accuracy": 0.1},
        others=(
            OtherScore(Change.NOTHING, "the task's own way", 0.1, 50, -1.0, 1.0),
            OtherScore(Change.RANGE, "no normalisation", 0.98, 50, 0.0, 1.0),
        ),
    )
    why = finding("EVAL011")
    outcome = judged(replace(why, evidence=EvidenceKind.EVALUATION), evaluation=scored)
    accuracy = item(outcome, "accuracy")
    assert (accuracy.earned, accuracy.codes) == (0, ("EVAL011",))
    assert (
        "0.100 on 100 hidden samples; at least 0.900 is asked for. On images from 0 to 1" in accuracy.reason
    )
    assert (item(outcome, "validation").earned, outcome.verdict) == (20, Verdict.REJECTED)


@pytest.mark.parametrize("problem", list(ArtifactProblem))
def test_weights_that_cannot_be_scored_earn_nothing_and_say_why(problem: ArtifactProblem) -> None:
    outcome = judged(evaluation=Evaluation(problem, "The file is a folder."))
    assert outcome.verdict is Verdict.REJECTED
    assert item(outcome, "accuracy").reason == "The file is a folder."
    # A run that learnt nothing is not paid for being quick.
    assert item(outcome, "time").earned == 0


@pytest.mark.parametrize(("cpu_s", "earned"), [(4.5, 10), (4.6, 5), (5.62, 5), (5.7, 0)])
def test_time_costs_points_but_never_gates(cpu_s: float, earned: float) -> None:
    outcome = judged(record=record(cpu_s))
    assert item(outcome, "time").earned == earned
    assert outcome.verdict is Verdict.ACCEPTED


def test_each_profile_has_its_clock() -> None:
    slow_wall = record(cpu_s=3.0, wall_s=40.0)
    assert item(judged(record=slow_wall), "time").earned == 10
    assert item(judged(record=slow_wall, profile="gpu"), "time").earned == 0


def test_a_profile_with_gpus_is_judged_only_where_each_rank_was_seen_to_have_one() -> None:
    gpus = tuple(UsedGpu(f"GPU-{n}", "a model", 80 << 30, 79 << 30) for n in "ab")
    whole = judged(profile="gpu", record=replace(record(), devices=gpus))
    assert whole.verdict is Verdict.ACCEPTED
    for devices in ((), gpus[:1]):
        outcome = judged(profile="gpu", record=replace(record(), devices=devices))
        assert outcome.verdict is Verdict.JUDGE_ERROR
        assert "gives each of 2 ranks a GPU" in outcome.reason
    # A crash on a CPU is no learner's either.
    crashed = judged(profile="gpu", record=record(ending=Ending.CRASHED))
    assert crashed.verdict is Verdict.JUDGE_ERROR


def test_a_profile_with_gpus_that_was_run_on_the_cpu_on_purpose_is_judged_without_its_time() -> None:
    meant = evidence("gpu", evaluation=evaluation())
    run = replace(meant, facts=replace(meant.facts, on_cpu=True, timed=False))
    outcome = score(run, TASK, (), checked())
    assert outcome.verdict is Verdict.ACCEPTED
    assert item(outcome, "time").state is ItemState.NOT_SHOWN
    assert run.profile == "cpu"


def test_without_a_reference_time_the_other_items_share_its_points() -> None:
    outcome = judged(calibration=None)
    time = item(outcome, "time")
    assert (time.state, time.points, time.full_points) == (ItemState.NOT_SHOWN, 0, 10)
    assert [r.points for r in outcome.rubric] == [22.2, 0, 44.5, 22.2, 11.1]
    assert (outcome.points, outcome.max_points, outcome.verdict) == (100, 100, Verdict.ACCEPTED)
    assert any("grader calibrate tiny" in note for note in outcome.notes)


def test_a_provisional_reference_is_said_to_be_one() -> None:
    assert any("provisional" in note for note in judged(calibration=calibration(3.0, provisional=True)).notes)


@pytest.mark.parametrize(("alone", "told"), [(400.0, True), (40.0, False)])
def test_a_speed_up_that_no_two_ranks_can_have_is_not_told(alone: float, told: bool) -> None:
    # Two ranks train on 640 images per second; 40 alone were measured while something else kept the machine busy.
    trace = Trace((trace_of(0), trace_of(1)))
    metrics = judged(trace=trace, calibration=replace(calibration(1.0), one_rank_samples_per_s=alone)).metrics
    assert metrics["samples_per_s"] == pytest.approx(640.0)
    assert (metrics["speedup"] is not None, metrics["samples_per_s_one_rank"] is not None) == (told, told)


def test_what_was_not_seen_pays_where_the_outcome_vouches_and_says_so() -> None:
    little = judged(checks=checked(IO002=State.NOT_OBSERVABLE))
    assert (little.points, little.verdict) == (100, Verdict.ACCEPTED)
    printing = item(little, "printing")
    assert (printing.state, printing.earned, printing.not_seen) == (ItemState.NOT_SEEN, 10, 10)
    assert "because the accuracy was reached and all ranks ended with the same weights" in printing.reason
    other = judged(checks=checked(IO002=State.NOT_OBSERVABLE), trace=ended_with(1.0, 2.0))
    assert (other.points, item(other, "printing").state) == (90, ItemState.NOT_SEEN)
    assert "earns nothing by itself" in item(other, "printing").reason


def test_much_that_was_not_seen_is_looked_at_by_a_person() -> None:
    part = judged(checks=checked(DATA004=State.NOT_OBSERVABLE))
    assert (part.verdict, item(part, "partition").not_seen) == (Verdict.ACCEPTED, 10)
    unseen = dict.fromkeys(("DATA003", "DATA004", "IO002"), State.NOT_OBSERVABLE)
    much = judged(checks=checked(**unseen))
    assert much.verdict is Verdict.HELD
    assert "No attempt is lost" in much.reason
    assert "DATA003" not in much.reason
    assert f"a person looks at “{item(much, 'partition').title}”" in much.reason
    assert much.review_subjects[0] == f"“{item(much, 'partition').title}”"
    assert any("20 of 40 points" in reason for reason in much.review)


def test_who_makes_the_examination_fail_is_held_and_earns_nothing_by_it() -> None:
    """However well the rest speaks for the run: else files that nobody can look at would be worth points."""
    asked = replace(
        TASK, rubric=(*TASK.rubric[:-1], RubricItem("by-hand", "By hand", 10, False, (), None, answer="ring"))
    )
    failed = replace(evaluation(), unexamined="`examine()` failed at evaluate.py:7: KeyError: 'w'")
    outcome = judged(task=asked, evaluation=failed)
    assert outcome.verdict is Verdict.HELD
    assert (item(outcome, "by-hand").earned, item(outcome, "by-hand").state) == (0, ItemState.NOT_SEEN)
    assert "evaluate.py" not in item(outcome, "by-hand").reason
    assert any("evaluate.py:7: KeyError" in reason for reason in outcome.review)
    assert "the files that the run left" in outcome.reason


def test_what_gates_and_neither_was_seen_nor_is_vouched_for_is_a_persons_to_decide() -> None:
    unseen, differing = checked(DATA004=State.NOT_OBSERVABLE), ended_with(1.0, 2.0)
    assert judged(checks=unseen, trace=differing).verdict is Verdict.HELD
    assert judged(checks=checked(EVAL001=State.NOT_OBSERVABLE), trace=differing).verdict is Verdict.ACCEPTED


def test_who_trains_nothing_earns_ten_points_at_most() -> None:
    idle = Trace((RankTrace(0, None, True), RankTrace(1, None, True)))
    outcome = judged(trace=idle, evaluation=evaluation(0.1))
    assert (outcome.verdict, outcome.points) == (Verdict.REJECTED, 10)
    assert sum(result.earned for result in outcome.rubric) == 10
    assert item(outcome, "printing").reason.startswith("Nothing was trained: ")


def test_what_never_happened_is_no_merit_of_a_run_that_did_nothing() -> None:
    silent = tuple(replace(one, evidence=()) if one.code == "IO002" else one for one in checked())
    idle = Trace((RankTrace(0, None, True), RankTrace(1, None, True)))
    untrained = item(judged(checks=silent, trace=idle, evaluation=evaluation(0.1)), "printing")
    assert (untrained.state, untrained.earned) == (ItemState.NOT_REACHED, 0)
    assert untrained.reason.startswith("IO002: ")
    trained = item(judged(checks=silent), "printing")
    assert (trained.state, trained.earned) == (ItemState.EARNED, 10)


def test_what_was_never_begun_is_not_reached() -> None:
    outcome = judged(checks=checked(EVAL001=State.NOT_REACHED, EVAL003=State.NOT_REACHED))
    validation = item(outcome, "validation")
    assert (validation.earned, validation.state, validation.not_seen) == (0, ItemState.NOT_REACHED, 0)
    assert outcome.verdict is Verdict.ACCEPTED
    assert judged(checks=checked(DATA004=State.NOT_REACHED)).verdict is Verdict.REJECTED


def test_a_learner_who_misses_anyway_is_told_and_not_held() -> None:
    unseen = checked(DATA004=State.NOT_OBSERVABLE, DATA003=State.NOT_OBSERVABLE)
    assert judged(checks=unseen, evaluation=evaluation(0.1)).verdict is Verdict.REJECTED


def test_a_review_finding_holds_whatever_else_is_wrong() -> None:
    review = Finding("TRUST002", Severity.REVIEW, EvidenceKind.OUTSIDE, "The trace cannot be true.")
    for outcome in (judged(review), judged(review, finding("DATA001", Severity.ERROR))):
        assert outcome.verdict is Verdict.HELD
        assert "TRUST002" not in outcome.reason
        assert "The trace cannot be true." in outcome.review[0]
    assert judged(replace(review, details={"holds": False})).verdict is Verdict.ACCEPTED


@pytest.mark.parametrize(
    ("ending", "verdict"),
    [
        (Ending.CRASHED, Verdict.CRASHED),
        (Ending.TIMED_OUT, Verdict.TIMED_OUT),
        (Ending.DEADLOCKED, Verdict.DEADLOCKED),
        (Ending.OUT_OF_MEMORY, Verdict.OUT_OF_MEMORY),
    ],
)
def test_a_run_that_ended_early_keeps_what_it_showed(ending: Ending, verdict: Verdict) -> None:
    checks = tuple(
        replace(c, state=State.NOT_OBSERVABLE) if c.code in {"EVAL001", "EVAL003", "DATA004"} else c
        for c in checked()
    )
    outcome = judged(
        checks=checks, record=record(ending=ending), evaluation=Evaluation(ArtifactProblem.MISSING, "None.")
    )
    assert outcome.verdict is verdict
    assert outcome.reason == f"It {ending}."
    assert outcome.max_points == 100
    assert outcome.points == 30 + 10
    assert item(outcome, "validation").state is ItemState.NOT_REACHED
    assert item(outcome, "accuracy").state is ItemState.NOT_REACHED
    partition = item(outcome, "partition")
    assert partition.state is ItemState.PARTLY
    assert partition.reason.endswith("Of its 4 parts 1 was not reached. That earns 30 of 40 points.")
    # Errors do not outweigh how it ended.
    assert judged(finding("DATA001", Severity.ERROR), record=record(ending=ending)).verdict is verdict


def test_reading_alone_earns_nothing_when_the_run_ended_early() -> None:
    text_only = tuple(replace(c, evidence=(EvidenceKind.SOURCE,)) for c in checked())
    early = judged(checks=text_only, record=record(ending=Ending.CRASHED), evaluation=None)
    assert early.points == 0
    assert judged(checks=text_only).points == 100


def test_nothing_was_run() -> None:
    syntax = Finding("SYNTAX", Severity.ERROR, EvidenceKind.SOURCE, "train.py:3 does not parse.")
    facts = attempt_facts("def broken(:\n")
    outcome = score(SourceEvidence(facts, parse(facts.submission)), TASK, (syntax,), ())
    assert (outcome.verdict, outcome.points, outcome.max_points) == (Verdict.REJECTED, 0, 100)
    assert outcome.reason == "Nothing was run. train.py:3 does not parse."


def test_our_own_interruption_is_no_verdict_on_the_learner() -> None:
    assert judged(record=record(ending=Ending.INTERRUPTED)).verdict is Verdict.JUDGE_ERROR


def test_far_too_fast_is_looked_at_by_a_person() -> None:
    full = calibration(8.0, 8.0, 8.0)
    assert judged(record=record(0.5), calibration=full).verdict is Verdict.HELD
    assert judged(record=record(1.2), calibration=full).verdict is Verdict.ACCEPTED
    # One run knows no band.
    assert (
        judged(record=record(0.5), calibration=calibration(8.0, provisional=True)).verdict is Verdict.ACCEPTED
    )


def test_a_near_miss_is_repeated_and_only_a_near_miss() -> None:
    def asked(cpu_s: float, *repeats: float, ending: Ending = Ending.COMPLETED, **run: Any) -> bool:
        run = {"calibration": calibration(2.9, 3.0, 3.2), **run}
        times = tuple(record(seconds) for seconds in repeats)
        return needs_repeat(evidence(record=record(cpu_s, ending=ending), repeats=times, **run), TASK)

    assert asked(4.6)
    assert not asked(4.4)
    assert not asked(6.0)
    assert not asked(4.6, ending=Ending.CRASHED)
    assert not asked(4.6, calibration=None)
    assert asked(4.6, 4.7)
    assert not asked(4.6, 4.7, 4.8)


@settings(deadline=None)  # a busy machine is no failure
@given(st.floats(0.1, 20), st.lists(st.floats(0.1, 20) | st.none(), max_size=4))
def test_repeats_never_cost(cpu_s: float, repeated: list[float | None]) -> None:
    """A repeat may also fail; then it has no time."""
    repeats = tuple(record(s) if s is not None else record(ending=Ending.CRASHED) for s in repeated)
    alone, again = judged(record=record(cpu_s)), judged(record=record(cpu_s), repeats=repeats)
    assert item(again, "time").earned >= item(alone, "time").earned
    assert again.points >= alone.points


def test_a_miss_on_a_busy_machine_is_repeated_until_a_run_is_left_alone() -> None:
    def asked(cpu_s: float, *repeats: RunRecord) -> bool:
        first = replace(record(cpu_s), disturbed=True)
        found = evidence(record=first, repeats=repeats, calibration=calibration(3.0, 3.0, 3.0))
        return needs_repeat(found, TASK)

    assert asked(8.0)
    assert asked(8.0, replace(record(8.0), disturbed=True))
    assert not asked(4.4), "it met the target all the same"
    assert not asked(14.0), "no neighbour costs that much"
    assert not asked(8.0, record(4.4))
    assert not asked(8.0, record(8.0)), "left alone it was as slow"
    assert not asked(8.0, *[replace(record(8.0), disturbed=True)] * 2)


def test_a_time_on_a_busy_machine_rejects_nobody() -> None:
    must = make_task(Path("x"), tuple(replace(one, must=one.must or one.id == "time") for one in RUBRIC))
    busy = replace(record(8.0), disturbed=True)
    held = judged(task=must, record=busy)
    assert (held.verdict, held.points, item(held, "time").state) == (Verdict.HELD, 90, ItemState.NOT_SEEN)
    (why,) = held.review
    assert "The machine was busy with other work while this ran, so 8.0 s CPU time" in why
    assert held.review_subjects == ("“In time”",)
    assert judged(task=must, record=record(8.0)).verdict is Verdict.REJECTED
    assert judged(task=must, record=replace(busy, ranks=record(14.0).ranks)).verdict is Verdict.REJECTED
    assert judged(task=must, record=busy, repeats=(record(8.0),)).verdict is Verdict.REJECTED
    assert judged(task=must, record=busy, evaluation=evaluation(0.1)).verdict is Verdict.REJECTED
    settled = judged(task=must, record=busy, repeats=(busy, record(4.4)))
    assert settled.verdict is Verdict.ACCEPTED
    assert "the median of the 1 of 3 runs that nothing else disturbed" in item(settled, "time").reason
    assert "while other work kept the machine busy" in settled.notes[-1]
    assert judged(task=must, record=replace(busy, ranks=record(4.4).ranks)).points == 100
    # Where time gates nothing it holds nothing, and what it earned on a busy machine it has earned.
    free = judged(record=replace(busy, ranks=record(5.0).ranks))
    assert (free.verdict, free.points) == (Verdict.ACCEPTED, 95)


def test_the_median_of_repeats_decides() -> None:
    assert item(judged(record=record(4.6), repeats=(record(4.4), record(4.4))), "time").earned == 10
    assert item(judged(record=record(4.6), repeats=(record(4.4), record(4.7))), "time").earned == 5


@settings(deadline=None)  # a busy machine is no failure
@given(
    st.lists(st.tuples(st.sampled_from(CODES), st.sampled_from(list(Severity)))),
    st.floats(0, 1),
    st.floats(0.1, 9),
)
def test_points_stay_within_their_bounds_and_repeat_to_the_byte(
    found: list[tuple[str, Severity]], accuracy: float, cpu_s: float
) -> None:
    findings = tuple(finding(code, severity) for code, severity in found)
    once, twice = (judged(*findings, evaluation=evaluation(accuracy), record=record(cpu_s)) for _ in range(2))
    assert once == twice
    assert 0 <= once.points <= once.max_points <= 100
    for result in once.rubric:
        assert 0 <= result.earned <= result.points <= result.full_points
        assert result.reason
    accepted = once.verdict is Verdict.ACCEPTED
    assert not (accepted and any(severity is Severity.ERROR for _, severity in found))
    assert not (accepted and accuracy < 0.9)
