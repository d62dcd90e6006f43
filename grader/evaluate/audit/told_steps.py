"""What a run told for the scorer alone: whole steps, with the samples that each rank drew for them, and pictures.

Everything here comes from the learner's own processes: what does not fit together is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import count, takewhile
from pathlib import Path
from typing import Any, NamedTuple

from grader.checks.run.data.loader_passes import passes_of
from grader.checks.run.optimisation.step_moments import first_apart
from grader.model.dataset import PreparedDataset
from grader.model.trace import RankTrace
from grader.probe.data.fed_pictures import MOST_ELEMENTS, MOST_PICTURES
from grader.probe.trace import events
from grader.run.trace_fields import Fields, WrongFieldError
from grader.run.trace_lines import Problems, read_lines
from grader.run.trace_reader import read_trace
from grader.run.workspace import Workspace

MOST_STEPS = 8
"""Steps of a run that are worked out again, spread over it."""
MOST_SAMPLES = 1 << 11
"""Of one step, on all ranks."""
_NEAR = 2
"""Steps before and after, whose samples may be meant where batches are drawn ahead."""
_MOST_BYTES = 4 << 20
_MOST_NAMES = 1 << 10
_MOST_LOOKS = 16
_MOST_ENCODED = 4 * -(-MOST_PICTURES * MOST_ELEMENTS // 3)


class Told(NamedTuple):
    """Data for the scorer.

    Attributes:
        steps: for each `n`, `by` (rank that told it), `stride`, `names`, `weights` and `gradients` (base64 as in the
            events, by parameter, weights in parts) and, once they are known, `samples`: for each rank the batches of
            indices that it drew for this step, and, in the order of how near they are, for those around it.
        pictures: of each look `rank`, `num`, `text` and `values` (as in the event).
    """

    steps: list[dict[str, Any]]
    pictures: list[dict[str, Any]]


def told(workspace: Workspace, dataset: PreparedDataset, has_images: bool = True) -> Told:
    """What the run told that lies in a workspace; often there are no steps.

    Args:
        dataset: what was mounted for it; only of its own training images is it known what was drawn.
        has_images: whether it has images; steps are of no use without.
    """
    paths = list(takewhile(Path.exists, map(workspace.trace, count())))
    by_rank = [told_by(rank, path) for rank, path in enumerate(paths)]
    steps = sorted((one for told in by_rank for one in told.steps), key=lambda one: one["n"])
    pictures = [one for told in by_rank for one in told.pictures]
    whole = has_images and steps and len(paths) > 1
    return Told(_with_samples(steps, paths, dataset) if whole else [], pictures)


def _with_samples(
    told: list[dict[str, Any]], paths: list[Path], dataset: PreparedDataset
) -> list[dict[str, Any]]:
    """The steps of which all samples are known, with these."""
    ranks = read_trace(paths).ranks
    drawn = [_drawn(rank, dataset.num_train) for rank in ranks]
    # Of a rank that skips a step, as one without a batch may, the next one is other ranks' step after that.
    apart = first_apart(ranks)
    if apart is None and len({len(rank.steps) for rank in ranks}) > 1:
        apart = 0
    together = [one for one in told if apart is None or one["n"] < apart]
    found = [one | {"samples": [_around(batches, one["n"]) for batches in drawn]} for one in together]
    fitting = [one for one in found if _fits(one["samples"])]
    spread = max(1, -(-len(fitting) // MOST_STEPS))
    return fitting[::-spread][::-1]


def told_by(rank: int, path: Path) -> Told:
    """What a rank told in its trace, steps without samples; whatever the file holds, nothing is raised."""
    steps: dict[int, dict[str, Any]] = {}
    pictures: list[dict[str, Any]] = []
    for line in read_lines(path, Problems()):
        fields = Fields(line.fields)
        try:
            if line.kind == events.AUDITED:
                names = fields.texts("names")
                if len(names) <= _MOST_NAMES:
                    steps[fields.whole("n")] = {
                        "n": fields.whole("n"),
                        "by": rank,
                        "stride": fields.whole("stride", 1),
                        "names": list(names),
                        "weights": [[] for _ in names],
                        "gradients": ["" for _ in names],
                    }
            elif line.kind == events.AUDITED_PART:
                _add(steps[fields.whole("n")], fields)
            elif line.kind == events.PICTURES and len(pictures) < _MOST_LOOKS:
                num, values = fields.whole("num", 1), fields.encoded("values")
                if num <= MOST_PICTURES and len(values) <= _MOST_ENCODED:
                    text = fields.maybe("text", fields.flag) or False
                    pictures.append({"rank": rank, "num": num, "text": text, "values": values})
        except (WrongFieldError, LookupError):
            continue
    return Told(list(steps.values()), pictures)


def _add(step: dict[str, Any], fields: Fields) -> None:
    of = fields.whole("of")
    size = sum(len(part) for parts in step["weights"] for part in parts)
    weights = fields.encoded("weights")
    if size + len(weights) <= _MOST_BYTES:
        step["weights"][of].append(weights)
        step["gradients"][of] = fields.maybe("gradients", fields.encoded) or step["gradients"][of]


def _drawn(rank: RankTrace, num_train: int) -> dict[int, list[list[int]]]:
    """Batches of the training images by step; a batch that can't be told has an index that there is not."""
    found: dict[int, list[list[int]]] = defaultdict(list)
    for one in passes_of(rank):
        if one.kind == "training":
            whole = one.loader is not None and one.loader.root_size == num_train
            for batch in one.batches:
                found[batch.step].append(list(batch.indices or (-1,)) if whole else [-1])
    return found


def _around(batches: dict[int, list[list[int]]], step: int) -> list[list[list[int]]]:
    near = [step, *(step + off for n in range(1, _NEAR + 1) for off in (n, -n))]
    return [batches.get(n, []) for n in near]


def _fits(samples: Sequence[Sequence[Sequence[Sequence[int]]]]) -> bool:
    """Whether each rank drew known samples for the step, not too many."""
    own = [batch for around in samples for batch in around[0]]
    known = all(around[0] for around in samples) and all(min(batch, default=-1) >= 0 for batch in own)
    return known and sum(map(len, own)) <= MOST_SAMPLES
