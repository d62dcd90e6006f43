"""What somebody who waits for a verification is told, as it runs and at its end."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from grader.cli.live import LiveView
from grader.cli.verification_printing import print_verification
from grader.model.verify_case import VerifyCase
from grader.run.runtime import Progress

LONG = VerifyCase(
    task="house-prices-in-the-suburbs",
    submission="deadlocked/early_stop_on_rank_zero.patch",
    expected_verdict="deadlocked",
    verdict="deadlocked",
    expected_codes=("DIST008",),
    codes=("DIST008",),
    seconds=12.34,
    message="",
    ok=True,
)
BROKEN = replace(
    LONG,
    submission="rejected/never_wrapped.py",
    expected_verdict="rejected",
    message="verdict deadlocked, promised rejected",
    ok=False,
    way_on="To see its report: grader verify house-prices-in-the-suburbs --only x --keep build/verify",
)


def test_each_is_named_as_it_begins_and_phases_are_of_what_is_judged_alone() -> None:
    told = io.StringIO()
    with LiveView(told, total=3) as view:
        view.case(replace(BROKEN, cached=True))
        view.start(LONG.name)
        view.progress(Progress("prepare", 0.0))
        view.start("skeletons/first")
        view.case(LONG)
    lines = told.getvalue().splitlines()
    assert [line for line in lines if " of " in line] == [f"2 of 3  {LONG.name}", "3 of 3  skeletons/first"]
    assert "prepare" not in told.getvalue()
    assert f"  {BROKEN.way_on}" in lines
    alone = io.StringIO()
    with LiveView(alone) as view:
        view.progress(Progress("prepare", 0.0))
    assert alone.getvalue() == "· prepare\n"


@pytest.mark.parametrize("width", [40, 80, 200])
def test_names_are_whole_on_any_terminal_and_a_broken_promise_names_a_way_on(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    print_verification([LONG, BROKEN], as_json=False)
    told = capsys.readouterr().out
    assert LONG.name in told
    assert BROKEN.name in told
    assert "deadlocked, not rejected" in told
    assert BROKEN.way_on in told
    assert told.rstrip().endswith("1 of 2 kept their promise")
