"""How missing things are told: in the order of doing, nothing twice, and never as praise."""

from __future__ import annotations

import io

from rich.console import Console

from grader.checks.rubric_step import RubricStep, Sight
from grader.model.task import RubricItem
from grader.report.findings.readiness import print_readiness, readiness_view, steps_out

WRAP = ("GRAD001", "Nothing wraps the model. Write `model = DistributedDataParallel(model)`.")
GROUP = ("DIST001", "No line starts a process group.")


def step(
    name: str, sight: Sight, *says: tuple[str, str], must: bool = True, metric: str | None = None
) -> RubricStep:
    codes = {"gradients": ("GRAD001",), "shares": ("DATA001",), "group": ("DIST001",), "saves": ("IO001",)}
    return RubricStep(RubricItem(name, f"The {name}", 5, must, codes.get(name, ()), metric), sight, says)


STEPS = (
    step("accuracy", Sight.RUN, metric="accuracy"),
    step("saves", Sight.SEEN, ("IO001", "`train.py:9`: `torch.save(…)`")),
    step("shares", Sight.NOT_RIGHT, ("DATA001", "The sampler never reaches a loader.")),
    step("gradients", Sight.NOT_FOUND, WRAP),
    step("group", Sight.NOT_FOUND, GROUP),
    step("metrics", Sight.NOT_FOUND, WRAP, must=False),
)


def printed(steps: tuple[RubricStep, ...]) -> str:
    console = Console(file=io.StringIO(), width=80, color_system=None)
    print_readiness(steps, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_steps_come_in_the_order_in_which_one_does_them() -> None:
    order = ["group", "gradients", "shares", "saves", "accuracy", "metrics"]
    assert [one["id"] for one in steps_out(STEPS)] == order
    readiness = readiness_view(STEPS)
    assert [one.title for one in (*readiness.musts, *readiness.others)] == [f"The {name}" for name in order]
    assert [one.number for one in (*readiness.musts, *readiness.others)] == [1, 2, 3, 4, 5, 6]


def test_what_was_said_before_is_named_by_its_step() -> None:
    assert readiness_view(STEPS).others[0].says == "The same as in step 2."
    assert printed(STEPS).count("DistributedDataParallel") == 1


def test_what_is_wrong_leads_to_its_finding_which_says_the_rest() -> None:
    assert readiness_view(STEPS).musts[2].says == "See `DATA001` among the findings."


def test_the_closing_line_counts_what_is_open_and_promises_nothing() -> None:
    assert readiness_view(STEPS).summary == (
        "3 of 5 things that must be right are not in the text yet, or not right there."
    )
    assert (
        readiness_view(STEPS[:3]).summary == "1 of 3 things that must be right is not right in the text yet."
    )
    assert readiness_view(STEPS[:2]).summary == (
        "Nothing is missing that a text can show: 1 of 2 things that must be right is there, the rest only a run can "
        "tell."
    )
