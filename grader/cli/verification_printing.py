"""What a verification found on standard output, as text for people or JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from grader.cli.printing import emit_json, stdout_console
from grader.cli.rows import mark, print_rows

if TYPE_CHECKING:
    from grader.model.verify_case import VerifyCase


def print_verification(cases: Sequence[VerifyCase], *, as_json: bool) -> None:
    """Every case of a verification, and how many kept their promise."""
    if as_json:
        emit_json({"schema": 1, "ok": all(c.ok for c in cases), "cases": [asdict(c) for c in cases]})
        return
    if not cases:
        print("nothing to verify: no submission is left after --changed-since and --shard")
        return
    console = stdout_console()
    rows = [
        (
            mark(None if case.skipped else case.ok),
            case.name,
            _verdict(case),
            " ".join(case.codes),
            "judged again" if case.cached else f"{case.seconds:.1f} s",
        )
        for case in cases
    ]
    print_rows(console, ("", "submission", "verdict", "codes", "time"), rows)
    for case in cases:
        if not case.ok:
            console.print(f"[red]✗[/red] {case.name}: ", end="")
            console.print(case.message, markup=False)
            if case.way_on:
                console.print(f"  {case.way_on}", markup=False, soft_wrap=True)
    for case in cases:
        if case.effects:
            console.print(f"[yellow]≠[/yellow] {case.name}: ", end="")
            console.print(f"other than when it was run: {', '.join(case.effects)}", markup=False)
    for reason in dict.fromkeys(case.skipped for case in cases if case.skipped):
        console.print(f"[yellow]–[/yellow] {sum(case.skipped == reason for case in cases)} skipped: {reason}")
    cases = [case for case in cases if not case.skipped]
    kept = sum(case.ok for case in cases)
    num_cached = sum(case.cached for case in cases)
    known = f", {num_cached} of them judged again from kept evidence" if num_cached else ""
    console.print(f"{kept} of {len(cases)} kept their promise{known}")


def _verdict(case: VerifyCase) -> str:
    if case.skipped:
        return "skipped"
    return (
        case.verdict
        if case.verdict == case.expected_verdict
        else f"{case.verdict}, not {case.expected_verdict}"
    )
