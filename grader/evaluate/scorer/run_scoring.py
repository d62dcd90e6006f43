"""Score one run in the scorer's child: the task's network, the run's weights, every sample of a split once.

Runs the task's `evaluate.py`, which is trusted; reads the run's files, which are not, through `artifacts`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from grader.evaluate.files import reported_metrics
from grader.evaluate.files.plain_files import RefusedError, read_plain_file
from grader.evaluate.files.weight_files import fingerprint, fingerprints, load_weights, not_finite
from grader.evaluate.scorer import returned_metrics
from grader.evaluate.scorer.author_faults import TaskFaultError, author_call
from grader.evaluate.scorer.task_module import import_file
from grader.model.evaluation import ArtifactProblem, Evaluation, ReportedMetrics
from grader.model.metric import Metric

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

Part: TypeAlias = "tuple[NDArray[np.uint8], NDArray[np.int64]] | Path"
"""What a network is scored on: images and labels, or the folder of a part of the task's own data."""
READING, SCORING = b"reading\n", b"scoring\n"
"""Marks of progress: what fails between them is the file's fault, what fails elsewhere is not."""


@dataclass(frozen=True, slots=True)
class ScoringRequest:
    """One run to be scored; folders are absolute. `wall_s` limits the child.

    `visible` and `hidden` are "" where the task scores nothing: weights are then held against the network, if there
    are any. `class_labels`: label that each class has in this attempt, []: as prepared. `model_size`: what
    `build_model()` is given, "": nothing. `artifacts`: files besides weights by name, with the columns of a table and
    their kinds; `questions`: names of answers that the rubric asks `examine()` for; `run`: the account of the run that
    it is told, as data; `version`: of the task's folder, which `evaluate` lies in; `reads_folder`: `evaluate()` gets
    the folder of a part and not images, and `num_hidden` and `num_validation` are all that is known of their sizes;
    `metrics`: what networks are measured by, each with the fields of `Metric`; `levels`: what of them has to be reached
    on hidden data, by name; `explain`: the one whose value has to be explained; `told_steps`: those of which the run
    told all, `told_pictures`: of what its models were given, see `told_steps.Told`.
    """

    op: str
    evaluate: str
    visible: str
    hidden: str
    data_version: str
    class_labels: list[int] = field(default_factory=list)
    outputs: str = ""
    wall_s: float = 60.0
    model_size: str = ""
    artifacts: dict[str, dict[str, str]] = field(default_factory=dict)
    questions: list[str] = field(default_factory=list)
    run: dict[str, Any] = field(default_factory=dict)
    version: str = ""
    reads_folder: bool = False
    num_hidden: int = 0
    num_validation: int = 0
    metrics: list[dict[str, Any]] = field(default_factory=list)
    levels: dict[str, float] = field(default_factory=dict)
    explain: str = ""
    told_steps: list[dict[str, Any]] = field(default_factory=list)
    told_pictures: list[dict[str, Any]] = field(default_factory=list)

    @property
    def measured(self) -> tuple[Metric, ...]:
        """The task's metrics."""
        return tuple(map(Metric.of, self.metrics))

    @property
    def examined(self) -> bool:
        """Whether the task's `examine()` is asked about the run."""
        return bool(self.artifacts or self.questions)


@dataclass(slots=True)
class ScoringCache:
    """What is kept between requests: modules by path, content and task, splits by folder and version.

    `proved`: modules whose `examine()` has something to say of a run that left nothing.
    """

    modules: dict[tuple[str, str, str], ModuleType] = field(default_factory=dict)
    splits: dict[tuple[str, str, str], tuple[NDArray[np.uint8], NDArray[np.int64]]] = field(
        default_factory=dict
    )
    proved: set[ModuleType] = field(default_factory=set)

    def module(self, request: ScoringRequest) -> ModuleType:
        """The task's evaluate.py, imported once per content of its folder; it may import modules that lie beside it."""
        path = Path(request.evaluate)
        key = (request.evaluate, hashlib.sha256(path.read_bytes()).hexdigest(), request.version)
        if key not in self.modules:
            self.modules[key] = import_file(path, f"task_evaluate_{len(self.modules)}")
        return self.modules[key]

    def parts(self, request: ScoringRequest) -> tuple[Part, Part]:
        """What the network is scored on: the hidden part, and the one that the script could validate on."""
        if request.reads_folder:
            return Path(request.hidden, "hidden"), Path(request.visible, "validation")
        return self.split(request.hidden, request), self.split(request.visible, request)

    def split(
        self, folder: str, request: ScoringRequest, part: str = "t10k"
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Files of a prepared folder; `t10k` are the validation split of the visible side, the hidden of the other.

        Labels, int64 (N,), are those of the request's attempt.
        """
        import numpy as np

        from grader.idx import read_split

        key = (folder, request.data_version, part)
        if key not in self.splits:
            self.splits[key] = read_split(Path(folder) / "FashionMNIST" / "raw", part)
        images, labels = self.splits[key]
        known = len(request.class_labels)
        return images, np.array([*request.class_labels, *range(known, 256)], np.int64)[labels]


def score_run(
    request: ScoringRequest, cache: ScoringCache, mark: Callable[[bytes], object]
) -> dict[str, Any]:
    """Score one run and return the answer to its request, and the name of the metric that has to be explained, or "".

    Args:
        request: what to score; cache: modules and splits.
        mark: called with `READING` before the run's files are touched and with `SCORING` after the last byte of them.
    """
    module = cache.module(request)
    model, expected = None, dict[str, "Tensor"]()
    try:
        # A task that is about tables alone may have no network.
        if hasattr(module, "build_model"):
            model = fresh_network(module, request.model_size)
            expected = author_call(model.state_dict, "`build_model().state_dict()`")
    except TaskFaultError as error:
        return {"task_error": str(error)}
    mark(READING)
    outputs = Path(request.outputs)
    metrics, metrics_problem = _reported(outputs, request.measured)
    found = Evaluation(None, reported=metrics, reported_problem=metrics_problem)
    weights = None
    if model is not None:
        found, weights = _weights(request, expected, found)
    mark(SCORING)
    try:
        if model is not None and weights is not None and request.hidden:
            model.load_state_dict(weights)
            found = _scored(module, model, request, cache, found)
    except TaskFaultError as error:
        return {"task_error": str(error)}
    unexplained = found.unexplained(request.measured, request.levels)
    return {"evaluation": asdict(found), "unexplained": unexplained.name if unexplained is not None else ""}


def fresh_network(module: ModuleType, size: str) -> Any:
    """What the task's `build_model()` makes, of that size where one is named."""
    return author_call(lambda: module.build_model(*(size,) if size else ()), "`build_model()`")


def _weights(
    request: ScoringRequest, expected: dict[str, Tensor], found: Evaluation
) -> tuple[Evaluation, dict[str, Tensor] | None]:
    """What is known of the weights that a run left, and the weights themselves if they can be scored."""
    try:
        weights = load_weights(Path(request.outputs), expected)
    except RefusedError as refused:
        if not request.hidden and refused.problem is ArtifactProblem.MISSING:
            # Nothing is scored, so nothing has to be left.
            return found, None
        why = replace(found, problem=refused.problem, detail=refused.detail)
        return replace(why, artifact=refused.artifact, artifact_bytes=refused.size), None
    found = replace(found, artifact=weights.artifact, artifact_bytes=weights.size, prefix=weights.prefix)
    if bad := not_finite(weights.tensors):
        detail = (
            f"{len(bad)} of {len(weights.tensors)} tensors in {weights.artifact} hold infinities or NaN, such as "
            f"`{bad[0]}`: the training diverged."
        )
        return replace(found, problem=ArtifactProblem.NOT_FINITE, detail=detail), None
    found = replace(found, sums=fingerprint(weights.tensors), fingerprints=fingerprints(weights.tensors))
    return found, weights.tensors


def _scored(
    module: ModuleType, model: Any, request: ScoringRequest, cache: ScoringCache, found: Evaluation
) -> Evaluation:
    """With the metrics of both splits, or why these weights have none.

    Raises:
        TaskFaultError: the task's `evaluate()` fails on a fresh network, too, so the weights are not to blame.
    """
    parts = cache.parts(request)

    def measured(network: Any) -> list[tuple[dict[str, float], int]]:
        return [metrics_of(module, network, part, request.measured) for part in parts]

    def fresh() -> Any:
        return fresh_network(module, request.model_size)

    try:
        (hidden, num_hidden), (validation, num_validation) = measured(model)
    except TaskFaultError as error:
        measured(fresh())
        detail = f"{found.artifact} cannot be scored: with these weights the task's {error}."
        return replace(found, problem=ArtifactProblem.REFUSED, detail=detail)
    if lost := returned_metrics.not_finite(request.measured, (hidden, validation)):
        metric, value = lost
        if again := returned_metrics.not_finite(
            request.measured, [values for values, _ in measured(fresh())]
        ):
            raise TaskFaultError(
                f"`evaluate()` returns {again[1]} for {again[0].name!r} of a fresh network, too"
            )
        detail = f"With the weights in {found.artifact} the {metric.title} is {value}, no number: training diverged."
        return replace(found, problem=ArtifactProblem.NOT_FINITE, detail=detail)
    # Finite weights can still overflow: what is no number is left out rather than written as one.
    hidden, validation = (
        {name: value for name, value in values.items() if math.isfinite(value)}
        for values in (hidden, validation)
    )
    return replace(
        found,
        hidden=hidden,
        validation=validation,
        num_hidden=num_hidden or request.num_hidden,
        num_validation=num_validation or request.num_validation,
    )


def metrics_of(
    module: ModuleType, model: Any, part: Part, metrics: Sequence[Metric]
) -> tuple[dict[str, float], int]:
    """What the task's `evaluate()` says of a network, and the number of samples, 0 where only the task knows it.

    Args:
        part: images (N, H, W) and labels (N,), or the folder that the task's own data lies in.
        metrics: what has to be among it.

    Raises:
        TaskFaultError: it fails, or says nothing of a metric.
    """
    import torch

    given = (part,) if isinstance(part, Path) else tuple(torch.from_numpy(array.copy()) for array in part)
    model.eval()
    with torch.inference_mode():
        said = author_call(lambda: module.evaluate(model, *given), "`evaluate()`")
    try:
        return returned_metrics.checked(said, metrics), 0 if isinstance(part, Path) else len(part[1])
    except ValueError as error:
        raise TaskFaultError(str(error)) from None


def _reported(outputs: Path, metrics: Sequence[Metric]) -> tuple[ReportedMetrics | None, str]:
    try:
        content = read_plain_file(outputs, "metrics.json", reported_metrics.MAX_BYTES)
        return (None, "") if content is None else (reported_metrics.parse(content, metrics), "")
    except RefusedError as refused:
        return None, refused.detail.rstrip(".")
    except (ValueError, RecursionError) as error:
        return None, str(error)
