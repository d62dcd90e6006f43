"""The engine's policy, line by line: what outranks what, what folds, and what is merely advice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from grader.checks.evidence import Evidence
from grader.checks.policy import applicable, apply_rules, apply_source_rules
from grader.checks.rule import Rule
from grader.errors import InfraError
from grader.model.evaluation import Evaluation, ReportedMetrics
from grader.model.finding import EvidenceKind, Finding, Severity
from grader.model.grade import CheckResult, State
from grader.model.run import Ending

FLAGGED, CLEAN, UNSEEN = State.CONTRADICTED, State.VERIFIED, State.NOT_OBSERVABLE

HEAD = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from torchvision import datasets

dist.init_process_group("gloo")
train_set = datasets.FashionMNIST("data", train=True)
"""
LOOP = """
model = DistributedDataParallel(torch.nn.Linear(784, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for images, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images.flatten(1)), labels).backward()
        optimizer.step()
dist.destroy_process_group()
"""
NO_SAMPLER = HEAD + "loader = DataLoader(train_set, batch_size=64, shuffle=True)\n" + LOOP
SAMPLER = (
    HEAD
    + "sampler = DistributedSampler(train_set)\nloader = DataLoader(train_set, batch_size=64, sampler=sampler)\n"
    + LOOP
)
GUARDED = HEAD + "if dist.get_rank() == 0:\n    dist.barrier()\ndist.destroy_process_group()\n"
ONE_GPU = (
    HEAD.replace("gloo", "nccl")
    + "model = DistributedDataParallel(torch.nn.Linear(784, 10).to('cuda'))\ndist.destroy_process_group()\n"
)

PLAIN = {"sampler": "RandomSampler", "num_replicas": None, "sampler_rank": None, "sampler_seed": None}


def found(findings: tuple[Finding, ...], code: str) -> list[Finding]:
    return [f for f in findings if f.code == code]


def check(checks: tuple[CheckResult, ...], code: str) -> CheckResult:
    return next(c for c in checks if c.code == code)


def undivided(tell: Any) -> Any:
    story = tell.Story()
    story.group()
    story.wrap()
    for _ in range(2):
        story.epoch({r: range(95, -1, -1) for r in range(2)}, **PLAIN)
    return story


# ---- 1: what the run saw -----------------------------------------------------------------------------------------


def test_trace_and_source_make_one_finding(tell: Any, only: Any) -> None:
    story = undivided(tell)
    story.text = NO_SAMPLER
    findings, checks = apply_rules(story.evidence(), only("DATA001"))
    (finding,) = found(findings, "DATA001")
    assert finding.severity is Severity.ERROR
    assert finding.evidence is EvidenceKind.TRACE
    assert finding.confirmed
    assert finding.fix is not None, "what the text's half would write is what the run's finding offers"
    lines = [p.line for p in finding.where]
    assert lines[0] == 11  # where the trace saw the loader built
    assert len(lines) == len(set(lines))
    result = check(checks, "DATA001")
    assert (result.state, result.evidence) == (FLAGGED, (EvidenceKind.TRACE, EvidenceKind.SOURCE))


def test_the_trace_alone_is_not_confirmed(tell: Any, only: Any) -> None:
    findings, _ = apply_rules(undivided(tell).evidence(), only("DATA001"))
    assert [f.confirmed for f in found(findings, "DATA001")] == [False]


def test_places_of_both_are_merged_without_duplicates(tell: Any, only: Any) -> None:
    story = undivided(tell)
    story.text = NO_SAMPLER
    line = next(n for n, text in enumerate(NO_SAMPLER.splitlines(), 1) if "DataLoader(train_set" in text)
    for rank in range(2):
        loaders = story.ranks[rank].fields["loaders"]
        loaders[0] = replace(loaders[0], site=tell.site(line))
    findings, _ = apply_rules(story.evidence(), only("DATA001"))
    (finding,) = found(findings, "DATA001")
    assert [p.line for p in finding.where].count(line) == 1
    assert finding.where[0].column > 0  # the source knows the place more exactly


# ---- 2: the run wins ---------------------------------------------------------------------------------------------


def test_the_run_refutes_the_source(tell: Any, only: Any) -> None:
    story = tell.honest()
    story.text = GUARDED
    findings, checks = apply_rules(story.evidence(), only("DIST003"))
    (finding,) = found(findings, "DIST003")
    assert finding.severity is Severity.HINT
    assert finding.evidence is EvidenceKind.SOURCE
    assert "All ranks ran to their end" in finding.refuted
    assert finding.fix is None, "nothing is to be mended where the run showed something else"
    assert check(checks, "DIST003").state is CLEAN


def test_a_source_warning_that_the_run_refutes_is_a_hint(tell: Any, only: Any) -> None:
    story = tell.honest()
    story.text = SAMPLER  # no set_epoch to be seen, yet the epochs came in new orders
    findings, checks = apply_rules(story.evidence(), only("DATA002"))
    (finding,) = found(findings, "DATA002")
    assert finding.severity is Severity.HINT
    assert finding.refuted
    assert check(checks, "DATA002").state is CLEAN


def test_a_hint_of_the_source_that_the_run_refutes_is_not_told(tell: Any, only: Any) -> None:
    padded = SAMPLER + (
        "val_sampler = DistributedSampler(val_set, shuffle=False)\n"
        "val_loader = DataLoader(val_set, batch_size=64, sampler=val_sampler)\n"
        "model.eval()\nwith torch.no_grad():\n    for images, labels in val_loader:\n        model(images)\n"
    )
    told = {}
    for size in (32, 31):
        story = tell.Story(num_validation=size)
        story.text = padded
        story.group()
        story.wrap()
        story.epoch(tell.strided(96, 2))
        story.validate(tell.strided(size, 2, shuffle=False), reduce="all_reduce")
        read, _ = apply_source_rules(story.evidence().script, only("EVAL003"))
        assert found(read, "EVAL003"), "the text alone suggests it"
        findings, checks = apply_rules(story.evidence(), only("EVAL003"))
        told[size] = [(f.code, f.evidence) for f in findings], check(checks, "EVAL003").state
    assert told == {32: ([], CLEAN), 31: ([("EVAL003", EvidenceKind.TRACE)], FLAGGED)}


# ---- 3: the source alone -----------------------------------------------------------------------------------------


def test_an_error_in_the_source_alone_is_a_hint(tell: Any, only: Any) -> None:
    story = tell.Story()
    story.text = GUARDED
    story.ending = Ending.CRASHED
    findings, checks = apply_rules(story.evidence(), only("DIST003"))
    (finding,) = found(findings, "DIST003")
    assert (finding.severity, finding.refuted) == (Severity.HINT, "")
    assert check(checks, "DIST003").state is State.NOT_REACHED
    assert "it counts once they are in one" in check(checks, "DIST003").reason


def test_a_warning_in_the_source_alone_keeps_its_severity(tell: Any, only: Any) -> None:
    story = tell.Story()
    story.text = SAMPLER
    story.ending = Ending.CRASHED
    findings, checks = apply_rules(story.evidence(), only("DATA002"))
    (finding,) = found(findings, "DATA002")
    assert finding.severity is Severity.WARNING
    assert (check(checks, "DATA002").state, check(checks, "DATA002").evidence) == (
        FLAGGED,
        (EvidenceKind.SOURCE,),
    )


@pytest.mark.parametrize(
    ("profile", "gravest", "state"), [("cpu", Severity.WARNING, UNSEEN), ("gpu", Severity.ERROR, FLAGGED)]
)
def test_the_profile_decides_where_the_run_cannot_show_it(
    tell: Any, only: Any, profile: str, gravest: Severity, state: State
) -> None:
    story = tell.Story()
    story.text = ONE_GPU
    story.profile = profile
    findings, checks = apply_rules(story.evidence(), only("DEV001"))
    assert found(findings, "DEV001")
    assert min(f.severity.rank for f in found(findings, "DEV001")) >= gravest.rank
    assert check(checks, "DEV001").state is state


def test_neither_source_nor_run(tell: Any, only: Any) -> None:
    findings, checks = apply_rules(tell.honest().evidence(), only("DEV001"))
    assert findings == ()
    assert check(checks, "DEV001").state is UNSEEN
    assert "no GPU" in check(checks, "DEV001").reason


# ---- 4: one cause is told once -----------------------------------------------------------------------------------


def test_what_a_missing_group_brings_about_folds_into_it(tell: Any, task: Any) -> None:
    story = tell.Story()
    story.epoch(tell.strided(96, 2), grads=lambda rank, step: (1.0 + rank, 2.0, 3.0))
    for rank in range(2):
        story.params(rank, 3, (1.0 + rank, 2.0, 3.0))
        story.ranks[rank].event("end", group_destroyed=None)
    findings, checks = apply_rules(story.evidence(), task)
    (finding,) = found(findings, "DIST001")
    assert finding.details["explains"] == ["GRAD001", "GRAD007"]
    assert not found(findings, "GRAD001")
    assert not found(findings, "GRAD007")
    assert check(checks, "GRAD001").state is FLAGGED
    assert check(checks, "GRAD007").state is FLAGGED


def test_unequal_shards_explain_the_deadlock(tell: Any, task: Any) -> None:
    story = tell.Story()
    story.text = "\n" * 60
    story.group()
    story.wrap()
    story.epoch({0: range(40), 1: range(40, 48)}, size=48, exhausted={0: None, 1: True}, **PLAIN)
    story.wait(0, "DDP gradient all-reduce", 24)
    story.wait(1, "barrier", 50)
    findings, checks = apply_rules(story.evidence(), task)
    assert [f.code for f in findings if f.severity is Severity.ERROR] == ["DATA005"]
    assert check(checks, "DIST009").state is FLAGGED


def test_a_hint_does_not_swallow_a_warning(tell: Any, only: Any) -> None:
    story = tell.Story(num_validation=31)
    story.group()
    story.wrap()
    story.epoch(tell.strided(96, 2))
    story.validate(tell.strided(31, 2, shuffle=False), reduce="all_reduce")
    story.evaluation = Evaluation(
        None, artifact="model.pt", validation={"accuracy": 0.3}, num_validation=31,
        reported=ReportedMetrics(({"val_accuracy": 0.9},)),
    )  # fmt: skip
    findings, _ = apply_rules(story.evidence(), only("EVAL003", "EVAL007"))
    assert [(f.code, f.severity) for f in findings] == [
        ("EVAL007", Severity.WARNING),
        ("EVAL003", Severity.HINT),
    ]


def test_a_local_metric_explains_a_wrong_curve(tell: Any, only: Any) -> None:
    story = tell.Story()
    story.group()
    story.wrap()
    story.epoch(tell.strided(96, 2))
    story.validate(tell.strided(30, 2, shuffle=False))
    story.evaluation = Evaluation(
        None, artifact="model.pt", validation={"accuracy": 0.8}, num_validation=30,
        reported=ReportedMetrics(({"val_accuracy": 0.9},)),
    )  # fmt: skip
    findings, checks = apply_rules(story.evidence(), only("EVAL001", "EVAL007"))
    assert [f.code for f in findings] == ["EVAL001"]
    assert check(checks, "EVAL007").state is FLAGGED


# ---- 5 and the rest ----------------------------------------------------------------------------------------------


def test_review_is_never_advice(tell: Any, only: Any) -> None:
    story = tell.honest()
    story.ranks[0].suspicions = ("It wrote events for rank 1.",)
    findings, _ = apply_rules(story.evidence(), only("DATA001"))
    assert [(f.code, f.severity) for f in findings] == [("TRUST002", Severity.REVIEW)]


def test_a_task_chooses_its_checks_but_not_whether_the_judge_is_guarded(only: Any, task: Any) -> None:
    codes = [r.code for r in applicable(only("GRAD001", "DATA002"))]
    assert codes == ["DATA002", "GRAD001", "TRUST001", "TRUST002"]
    assert {"DATA001", "DIST003", "TRUST002"} <= {r.code for r in applicable(task)}


def test_an_honest_run_has_no_findings_and_all_its_checks(tell: Any, task: Any) -> None:
    findings, checks = apply_rules(tell.honest().evidence(), task)
    assert findings == ()
    assert [c.code for c in checks] == sorted(c.code for c in checks)
    assert all(c.reason.endswith((".", "…")) for c in checks)


def test_findings_are_sorted_by_what_to_mend_first(tell: Any, task: Any) -> None:
    story = undivided(tell)
    story.text = NO_SAMPLER
    for rank in range(2):
        story.save(rank, "model.pt", prefix="module.")
        story.ranks[rank].event("download", 15, dataset="FashionMNIST", root="data")
    findings, _ = apply_rules(story.evidence(), task)
    assert [f.severity.rank for f in findings] == sorted(f.severity.rank for f in findings)
    errors = [f.code for f in findings if f.severity is Severity.ERROR]
    assert errors == sorted(errors)
    assert {"DATA001", "IO001"} <= set(errors)


def test_the_same_evidence_gives_the_same_findings(tell: Any, task: Any) -> None:
    story = undivided(tell)
    story.text = NO_SAMPLER
    assert apply_rules(story.evidence(), task) == apply_rules(story.evidence(), task)


def test_a_script_that_does_not_parse_gets_that_one_finding(tell: Any, task: Any) -> None:
    story = undivided(tell)
    story.text = "def broken(:\n"
    seen = story.evidence()
    for findings, checks in (apply_rules(seen, task), apply_source_rules(seen.script, task)):
        assert len(findings) == 1
        assert findings[0].severity is Severity.ERROR
        assert findings[0].where[0].line == 1
        assert {c.state for c in checks} == {UNSEEN}


def test_what_was_not_run_is_read_with_the_same_caution(tell: Any, task: Any) -> None:
    story = tell.Story()
    story.text = GUARDED
    findings, checks = apply_source_rules(story.evidence().script, task)
    assert [f.severity for f in found(findings, "DIST003")] == [Severity.HINT]
    assert {c.state for c in checks} == {UNSEEN}


def test_a_rule_that_fails_loses_only_itself(tell: Any, only: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = apply_rules(tell.honest().evidence(), only("DATA001", "DATA002"))

    def broken(_rule: Rule, _evidence: Evidence) -> None:
        raise InfraError("rule DATA001 failed on the trace: ZeroDivisionError (data001.py:7)")

    watched = Rule.observe
    monkeypatch.setattr(
        Rule, "observe", lambda rule, seen: (broken if rule.code == "DATA001" else watched)(rule, seen)
    )
    findings, checks = apply_rules(tell.honest().evidence(), only("DATA001", "DATA002"))
    (failed,) = found(findings, "DATA001")
    assert (failed.severity, failed.holds) == (Severity.REVIEW, False)
    assert "data001.py:7" in failed.message
    states = {check.code: check.state for check in checks}
    assert states["DATA001"] is UNSEEN
    assert [c for c in checks if c.code != "DATA001"] == [c for c in whole[1] if c.code != "DATA001"]
