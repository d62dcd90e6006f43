"""What the kernel counted of a run, against what its ranks told: processor time for steps, bytes for averages.

No script can make these up: who wants them to fit has to do the work. Sentences for staff about what honest training
cannot look like; "" where nothing is odd or nothing can be said.
"""

from __future__ import annotations

from grader.checks.evidence import Evidence
from grader.checks.run.endings.end_counts import end_count
from grader.checks.run.models.replica_comparison import compare_gradients, sharded
from grader.model.run import RankRecord
from grader.model.trace import RankTrace

_LEAST_STEP_S = 30e-6
"""Python alone needs more than this for one backward pass and one optimizer step of the smallest model (measured about
150 µs for one linear layer on a fast core)."""
_MEMORY_BYTES_PER_S = 50e9
"""No core moves more memory than this per second; a step reads and writes every gradient at least once."""
_FEWEST_BYTES = 400_000
"""Below this the packets' own bytes blur the count."""
_SENT = 0.2
"""Of what averages in full precision move: those in full precision 1.02, in single bytes a quarter."""
_IDLE = 0.25
"""Of the busiest rank's processor time; with equal work honest ranks differ by a third at most."""
_OWN_WORK_S = 5.0
"""What one rank may compute for all, such as to draw a picture, whatever the others do."""


def too_many_steps(trace: RankTrace, record: RankRecord) -> str:
    """More steps than a rank's processor time has room for."""
    steps = len(trace.steps)
    on_device = any(not d.startswith("cpu") for w in trace.wraps for d in w.param_devices)
    gradient_bytes = 0 if on_device else max((w.gradient_bytes for w in trace.wraps), default=0)
    needed = steps * (_LEAST_STEP_S + max(0, gradient_bytes) * 2 / _MEMORY_BYTES_PER_S)
    if steps < 10 or needed <= record.cpu_s:
        return ""
    return (
        f"Rank {trace.rank} claims {steps:,} steps, which need at least {needed:.2f} s of CPU time, "
        f"but the kernel counted {record.cpu_s:.2f} s."
    )


def one_rank_works(evidence: Evidence) -> str:
    """Ranks that tell of equal work, of which one computed and another hardly did."""
    used = {record.rank: record.cpu_s for record in evidence.record.ranks}
    told = {rank.rank: rank for rank in evidence.trace.trainers if rank.rank in used}
    if evidence.profile != "cpu" or len(told) < 2:
        return ""
    busy, idle = max(told, key=used.__getitem__), min(told, key=used.__getitem__)
    if used[idle] >= _IDLE * used[busy] or used[busy] - used[idle] < _OWN_WORK_S:
        return ""
    if any(record.leftovers for record in evidence.record.ranks) or evidence.script.called("compile"):
        # What processes used that nobody waited for was charged to the busiest, whosever it was; and what one rank
        # has compiled, the others find done.
        return ""
    trained = {n: sum(step.samples for step in rank.steps) for n, rank in told.items()}
    forwards = {n: end_count(rank, "forwards") or 0 for n, rank in told.items()}
    # Who validates for all says so, and so does who gives the others less to do.
    if forwards[busy] > 1.5 * forwards[idle] or trained[busy] > 1.5 * trained[idle]:
        return ""
    return (
        f"Ranks {busy} and {idle} tell of {trained[busy]:,} and {trained[idle]:,} training samples; the kernel "
        f"counted {used[busy]:.1f} s of CPU time for rank {busy} and {used[idle]:.1f} s for rank {idle}."
    )


def silent_wire(evidence: Evidence) -> str:
    """Gradients said to be averaged, over a wire that carried too little for that."""
    measured = evidence.record.loopback_bytes
    active = evidence.trace.trainers
    sizes = [_gradient_bytes(r) for r in active]
    if (
        measured is None
        or evidence.profile != "cpu"
        or len(active) < 2
        or not all(sizes)
        or sharded(evidence.trace)
    ):
        return ""
    found = compare_gradients(evidence.trace)
    if not found.num_steps or found.difference is not None:
        return ""
    # Hooks may compress what is sent, by a factor of hundreds.
    if any(r.events("comm_hook") for r in active):
        return ""
    steps = min(len(r.steps) for r in active)
    expected = steps * min(sizes) * 2 * (len(active) - 1)
    if expected < _FEWEST_BYTES or measured >= _SENT * expected:
        return ""
    return (
        f"{steps:,} steps of averaged gradients move {expected:,} bytes between {len(active)} ranks; "
        f"{measured:,} bytes were counted."
    )


def _gradient_bytes(rank: RankTrace) -> int:
    """Of what a rank averages in a step: of its wrapper, or else of what its optimizer steps; 0 unknown."""
    wrapped = [w.gradient_bytes for w in rank.wraps if w.kind == "ddp"]
    stepped = [e.fields.get("param_bytes") for e in rank.events("held")]
    return min(wrapped or [size for size in stepped if isinstance(size, int)], default=0)
