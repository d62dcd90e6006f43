"""The reports' vocabulary: one wording for each verdict, state and unit, so that all reports speak alike.

What pages and mails say, too, is in the language of their reader; reports are in English.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Sequence
from typing import TYPE_CHECKING

from grader.model.finding import EvidenceKind, Finding, Severity, family_of
from grader.model.grade import ItemState, Verdict
from grader.translation import N_, TranslatedTexts, counted, gettext, with_own_signs

if TYPE_CHECKING:
    from grader.model.run import RankRecord, RunRecord

HEADLINES = TranslatedTexts(
    {
        Verdict.ACCEPTED: N_("Accepted"),
        Verdict.REJECTED: N_("Not accepted yet"),
        Verdict.CRASHED: N_("The script crashed"),
        Verdict.DEADLOCKED: N_("The ranks wait for each other"),
        Verdict.TIMED_OUT: N_("The run took longer than allowed"),
        Verdict.OUT_OF_MEMORY: N_("The run needed more memory than allowed"),
        Verdict.HELD: N_("Held for review"),
        Verdict.JUDGE_ERROR: N_("The judge failed, not your script"),
    }
)
VERDICTS = TranslatedTexts(
    {
        Verdict.ACCEPTED: N_("accepted"),
        Verdict.REJECTED: N_("rejected"),
        Verdict.CRASHED: N_("crashed"),
        Verdict.DEADLOCKED: N_("deadlocked"),
        Verdict.TIMED_OUT: N_("timed out"),
        Verdict.OUT_OF_MEMORY: N_("out of memory"),
        Verdict.HELD: N_("held"),
        Verdict.JUDGE_ERROR: N_("judge error"),
    }
)
TONES = {
    Verdict.ACCEPTED: "good",
    Verdict.REJECTED: "bad",
    Verdict.CRASHED: "bad",
    Verdict.DEADLOCKED: "bad",
    Verdict.TIMED_OUT: "bad",
    Verdict.OUT_OF_MEMORY: "bad",
    Verdict.HELD: "warn",
    Verdict.JUDGE_ERROR: "warn",
}
SYMBOLS = {"good": "✔", "bad": "✘", "warn": "!", "quiet": "–"}

SEVERITIES = {
    Severity.ERROR: ("Must be fixed", "Each of these stands between you and an accepted attempt."),
    Severity.WARNING: ("Costs points", "Real faults that do not stand in the way of acceptance."),
    Severity.HINT: ("Good to know", "Free advice; costs nothing."),
    Severity.REVIEW: ("For staff", "Not shown to learners."),
}
UNWEIGHED = {
    Severity.ERROR: ("Errors", "Faults that break a run, or what it learns."),
    Severity.WARNING: ("Warnings", "Real faults; which of them count, and for how much, is up to a task."),
    Severity.HINT: ("Hints", "Advice."),
}
"""The same of a script that nobody holds against a task."""
SEVERITY_TONES = {
    Severity.ERROR: "bad",
    Severity.WARNING: "warn",
    Severity.HINT: "hint",
    Severity.REVIEW: "hint",
}
ITEM_STATES = {
    ItemState.EARNED: ("earned", "good"),
    ItemState.PARTLY: ("partly", "warn"),
    ItemState.LOST: ("lost", "bad"),
    ItemState.NOT_REACHED: ("not reached", "bad"),
    ItemState.NOT_SHOWN: ("cannot be shown here", "quiet"),
    ItemState.NOT_SEEN: ("not seen", "quiet"),
}
"""How a rubric item ended, and its tone."""
EVIDENCES = {
    EvidenceKind.SOURCE: (N_("source"), "Read in your code; nothing was executed for it."),
    EvidenceKind.TRACE: (N_("trace"), "Recorded inside your script's own processes while they ran."),
    EvidenceKind.OUTSIDE: (
        N_("outside"),
        "Measured from outside your script, by the operating system and the judge's clock.",
    ),
    EvidenceKind.EVALUATION: (
        N_("evaluation"),
        "Measured by the judge on the weights that your script left behind.",
    ),
}

RUNTIMES = {
    "process": "as a plain process, not shut off from the machine",
    "docker": "in a container (docker)",
    "apptainer": "in a container (apptainer)",
}
"""How a script was run, for people; a plug-in's runtime is told by its name."""

# In the order in which one refactors a script: first a group, then averaged gradients, then shares of the data.
FAMILIES = {
    "DIST": "Process group and launch",
    "DEV": "Devices",
    "GRAD": "Gradients and replicas",
    "SHARD": "A model in shards",
    "DATA": "Who trains on which sample",
    "EVAL": "Validation and metrics",
    "IO": "Files, printing, downloads",
    "OPT": "Learning rate and batch size",
    "PERF": "Time",
}

_KIB = 1024
_MINUTE_S = 60.0
_MANY = 8


def mend_order(finding: Finding) -> tuple[int, int]:
    """Sorts findings by what to mend first: the gravest, and among these what the rest builds on."""
    family = family_of(finding.code)
    return finding.severity.rank, list(FAMILIES).index(family) if family in FAMILIES else len(FAMILIES)


def plural(num: int, noun: str) -> str:
    """`1 error`, `2 errors`, `1,437 samples`."""
    return f"{num:,} {noun}" if num == 1 else f"{num:,} {noun}s"


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `3rd`, `11th`."""
    others = gettext("{number}th")
    last = {1: gettext("{number}st"), 2: gettext("{number}nd"), 3: gettext("{number}rd")}.get(
        number % 10, others
    )
    return (others if number % 100 in (11, 12, 13) else last).format(number=number)


def points_text(points: float) -> str:
    """Points without needless decimals."""
    if not math.isfinite(points):
        return "–"
    return with_own_signs(f"{points:.2f}".rstrip("0").rstrip("."))


def seconds_text(seconds: float) -> str:
    """A duration, in seconds or minutes, with the precision that a reader can use."""
    if not math.isfinite(seconds):
        return "–"
    if abs(seconds) < 1:
        return with_own_signs(f"{seconds:.2f} s")
    if abs(seconds) < _MINUTE_S:
        return with_own_signs(f"{seconds:.1f} s")
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"


def bytes_text(num: float) -> str:
    """A size in binary units."""
    if num < _KIB:
        return gettext("{number} bytes").format(number=f"{num:.0f}")
    for unit in ("KiB", "MiB"):
        num /= _KIB
        if num < _KIB:
            return with_own_signs(f"{num:.0f} {unit}" if num >= _MANY else f"{num:.1f} {unit}")
    return with_own_signs(f"{num / _KIB:.1f} GiB")


def number_text(value: float | None) -> str:
    """A number of unknown kind: thousands separated, four significant digits, a dash for nothing."""
    if value is None or not math.isfinite(value):
        return "–"
    if float(value).is_integer():
        return with_own_signs(f"{value:,.0f}")
    return with_own_signs(f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}")


def ranks_text(ranks: Sequence[int]) -> str:
    """`rank 2`, `ranks 0 and 1`, `ranks 0–7`, `ranks 0, 2, 5`."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if len(ranks) == 2:
        return f"ranks {ranks[0]} and {ranks[1]}"
    if list(ranks) == list(range(ranks[0], ranks[-1] + 1)):
        return f"ranks {ranks[0]}–{ranks[-1]}"
    return "ranks " + ", ".join(map(str, ranks))


def rank_text(record: RunRecord, rank: RankRecord) -> str:
    """`rank 1`; where there are several nodes, `rank 1 on node 0`."""
    return f"rank {rank.rank} on node {rank.node}" if record.num_nodes > 1 else f"rank {rank.rank}"


def exit_text(rank: RankRecord) -> str:
    """How one rank's process ended."""
    if rank.killed_by_judge or rank.exit_code is None:
        return "stopped by the judge"
    if rank.exit_code < 0:
        try:
            name = signal.Signals(-rank.exit_code).name
        except ValueError:
            name = f"signal {-rank.exit_code}"
        return f"killed by {name}"
    return "exit code 0" if rank.exit_code == 0 else f"exit code {rank.exit_code}"


def findings_text(findings: Sequence[Finding]) -> str:
    """`1 error, 2 warnings and 1 hint`; `no findings`."""
    errors, warnings, hints = (
        sum(one.severity is severity for one in findings)
        for severity in (Severity.ERROR, Severity.WARNING, Severity.HINT)
    )
    parts = []
    if errors:
        parts.append(counted("%(num)s error", "%(num)s errors", errors))
    if warnings:
        parts.append(counted("%(num)s warning", "%(num)s warnings", warnings))
    if hints:
        parts.append(counted("%(num)s hint", "%(num)s hints", hints))
    if not parts:
        return gettext("no findings")
    if len(parts) == 1:
        return parts[0]
    return gettext("{others} and {last}").format(others=", ".join(parts[:-1]), last=parts[-1])
