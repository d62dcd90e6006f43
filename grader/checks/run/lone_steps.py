"""Steps that no other rank has a part in: one rank trains alone, or all of them do the very same work.

Says what is wrong there; that nothing was averaged is for the rule to find.
"""

from __future__ import annotations

from grader.checks.evidence import Evidence
from grader.checks.phrases import at, count, first_known, place, ranks
from grader.checks.rule import Hit
from grader.checks.run.replica_comparison import Comparison, contains, trainers
from grader.model.trace import RankTrace


def alone(evidence: Evidence, only: RankTrace) -> Hit:
    """One rank took all steps."""
    site = first_known([s.site for s in only.steps])
    return Hit(
        message=(
            f"Rank {only.rank} took all {count(len(only.steps), 'optimizer step')}; the other "
            f"{count(evidence.trace.world_size - 1, 'rank')} took none, so nothing was averaged. "
            f"{at(site, 'The optimizer')} is reached by one rank alone: the others' devices were idle."
        ),
        hint="Let every rank run the training loop on its share of the data; keep only printing and saving to rank 0.",
        where=place(site),
        ranks=(only.rank,),
        details={"steps_by_rank": {str(r.rank): len(r.steps) for r in evidence.trace.ranks}},
    )


def scored_alone(evidence: Evidence) -> Hit | None:
    """One rank took steps that no other did, on a model of its own, and that model is what was scored."""
    active = trainers(evidence.trace)
    scored = evidence.evaluation.sums if evidence.evaluation is not None else ()
    holders = [r for r in active if any(contains(scored, f.sums) for f in r.finals if f.sums)]
    if len(active) < 2 or len(holders) != 1:
        return None
    [holder] = holders
    others = [r for r in active if r is not holder]
    shared = {step.optimizer for r in others for step in r.steps}
    own = [step for step in holder.steps if step.optimizer not in shared]
    if not own:
        return None
    site = first_known([s.site for s in own]) or first_known([s.site for s in holder.saves])
    return Hit(
        message=(
            f"Rank {holder.rank} took {count(len(own), 'step')} on a model that no other rank trains, and that model "
            f"is what was scored. Of the {count(len(others[0].steps), 'step')} that the ranks took together nothing is "
            "in it but perhaps its start."
        ),
        hint="Train the model that you save on all ranks, through the wrapper, and let one of them save it.",
        where=place(site),
        ranks=(holder.rank,),
        details={"steps_by_rank": {str(r.rank): len(r.steps) for r in evidence.trace.ranks}},
    )


def twins(active: tuple[RankTrace, ...], found: Comparison, held: str) -> Hit:
    """Every rank took the same steps on the same samples, and nothing went from one to another."""
    site = first_known([s.site for s in active[0].steps])
    return Hit(
        message=(
            f"{ranks(r.rank for r in active)} held equal {held} at {count(found.num_steps, 'compared step')}, but "
            "nothing went from one to another: no wrapper, and fewer collectives than optimizer steps. They were equal "
            f"because every rank did the very same work. {at(site, 'The update')} is the step that one rank "
            "alone would take, and with different samples each would train a model of its own."
        ),
        hint="Wrap the model once it is on its device, `model = DistributedDataParallel(model)`, train through it, "
        "and give each rank samples of its own.",
        where=place(site),
        ranks=tuple(r.rank for r in active),
        details={"steps_compared": found.num_steps, "steps_different": 0},
    )
