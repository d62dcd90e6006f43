"""Print what a rehearsal showed: a few lines for people, JSON for programs. Computes nothing."""

from __future__ import annotations

import sys
from typing import Any

from grader.rehearsal.result import LATEST_S, RehearsalResult, quantile


def to_json(played: RehearsalResult) -> dict[str, Any]:
    """The rehearsal for programs; times in seconds since the beginning."""
    scenario, waits = played.scenario, played.waits_s
    firsts = sorted(played.firsts_s.values())
    return {
        "schema": 1,
        "learners": scenario.num_learners,
        "window_s": scenario.window_s,
        "gpus": scenario.num_gpus,
        "need": scenario.need,
        "failing": scenario.failing,
        "seed": scenario.seed,
        "task": scenario.task or None,
        "durations": scenario.durations.source,
        "attempts": len(played.served),
        "accepted_learners": played.num_accepted,
        "refused": dict(sorted(played.refused.items())),
        "wait_s": {
            "median": round(quantile(waits, 0.5), 1),
            "p95": round(quantile(waits, 0.95), 1),
            "max": round(waits[-1], 1) if waits else 0.0,
        },
        "first_grade_s": {str(n): round(at, 1) for n, at in sorted(played.firsts_s.items())},
        "last_first_grade_s": round(firsts[-1], 1) if firsts else None,
        "without_grade": list(played.without),
        "last_grade_s": round(played.last_s, 1),
        "last_grade_after_window_s": round(max(0.0, played.last_s - scenario.window_s), 1),
        "latest_allowed_after_window_s": LATEST_S,
        "regrades": len(played.regrades_s),
        "regrades_within_window": sum(at <= scenario.window_s for at in played.regrades_s),
        "gpu_busy": round(played.busy, 3),
        "met": played.met,
    }


def print_rehearsal(played: RehearsalResult) -> None:
    """What an instructor wants to know before the day."""
    scenario, facts = played.scenario, to_json(played)
    waits, places = facts["wait_s"], scenario.places
    median, p95, longest = (_span(waits[name]) for name in ("median", "p95", "max"))
    lines = [
        f"{scenario.num_learners} learners, {_span(scenario.window_s)} until it is due",
        *([f"the deadline of {scenario.task}"] if scenario.task else []),
        f"{scenario.num_gpus} {places}, {scenario.need} for each attempt; {scenario.failing:.0%} of the attempts fail",
        f"running times {scenario.durations.source}",
        "",
        f"attempts       {facts['attempts']}; {facts['accepted_learners']} learners have an accepted one",
        f"waits          median {median}, 95 % below {p95}, longest {longest}",
        f"first grades   {_firsts(played)}",
        f"last grade     {_after(played.last_s, scenario.window_s)}",
        f"regrades       {facts['regrades_within_window']} of {facts['regrades']} done within the window",
        f"{places:<15}busy for {played.busy:.0%} of the window",
    ]
    if played.refused:
        refused = ", ".join(f"{number} × {limit}" for limit, number in sorted(played.refused.items()))
        lines.append(f"refused        {refused}")
    sys.stdout.write("\n".join(lines) + "\n\n")
    sys.stdout.write(_timeline(played))
    if played.met:
        print("Everybody is served in time.")
    elif played.without:
        print(
            f"{len(played.without)} learners have no grade when the window closes: more {places}, a shorter workshop "
            "profile, or an earlier start would help."
        )
    else:
        print(f"The last grade comes more than {_span(LATEST_S)} after the window.")


def _firsts(played: RehearsalResult) -> str:
    firsts = sorted(played.firsts_s.values())
    if not firsts:
        return "none"
    half = _span(quantile(firsts, 0.5))
    last = _span(firsts[-1])
    missing = f"; {len(played.without)} without one at the end" if played.without else ""
    return f"half of the room after {half}, everybody after {last}{missing}"


def _timeline(played: RehearsalResult) -> str:
    """How many grades came in each tenth of the window, and after it."""
    window_s = played.scenario.window_s
    counts = [0] * 11
    for one in played.served:
        counts[min(10, int(one.finished_s / window_s * 10))] += 1
    highest = max(counts) or 1
    lines = []
    for tenth, number in enumerate(counts):
        label = "after it" if tenth == 10 else f"to {_span(window_s * (tenth + 1) / 10)}"
        lines.append(f"  {label:>9}  {'█' * round(number / highest * 40)} {number}")
    return "grades\n" + "\n".join(lines) + "\n\n"


def _after(at_s: float, window_s: float) -> str:
    if at_s <= window_s:
        return f"{_span(at_s)}, within the window"
    return f"{_span(at_s - window_s)} after the window"


def _span(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if rest else f"{minutes} min"
