"""An assignment as its folder describes it, after all checks of the catalog have passed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from grader.model.metric import Metric
from grader.model.own_data import OwnData
from grader.model.precondition import Precondition

TIME = "time"
"""What the target for the time of a run goes by, beside the task's metrics."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one run: seconds, bytes."""

    wall_s: float
    memory_bytes: int
    output_bytes: int
    log_bytes: int


@dataclass(frozen=True, slots=True)
class Quoted:
    """A figure published elsewhere, with what it covers and where it stands; shown, never compared with ours."""

    figure: str
    covers: str
    source: str


@dataclass(frozen=True, slots=True)
class Profile:
    """Where a task runs: `cpu` (gloo) or `gpu` (nccl), with its sizes and limits.

    Attributes:
        name, backend, nproc_per_node, nnodes, limits: what one run gets there.
        cores_per_rank: processor cores that each rank gets, as far as the machine has them.
        datasets: those of the task's that are used there unless another is asked for; empty: all, in the task's order.
        quoted: published figures for such a machine.
        model_size: size of the task's network that is trained there; "": its only one, or its usual one.
        arguments: of the script, as the task has them (see `LaunchSpec.arguments`).
        shims: names of changes to PyTorch that stand in for GPUs where a run has none.
    """

    name: str
    backend: str
    nproc_per_node: int
    nnodes: int
    limits: Limits
    cores_per_rank: int = 1
    datasets: tuple[str, ...] = ()
    quoted: tuple[Quoted, ...] = ()
    model_size: str = ""
    arguments: tuple[str, ...] = ()
    shims: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """What a metric has to reach.

    Attributes:
        metric: name of one of the task's metrics, or `TIME`.
        levels: what a metric has to reach on hidden data, by data set name.
        factor: for `time`: allowed multiple of the slowest accepted style's calibrated median.
    """

    metric: str
    levels: dict[str, float] | None = None
    factor: float | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """What a task asks of the optimisation beyond its targets; each None (or empty) where it asks nothing.

    Attributes:
        base_learning_rate, base_batch_size: of the single-process script that the task starts from.
        scaling: rules by which the learning rate may follow the global batch, of `linear` and `sqrt`.
        warmup: the learning rate has to climb to its peak over the first steps.
        global_batch_size: samples of all ranks per optimizer step that the task prescribes.
        new_shares: each epoch has to deal out new shares.
        sharded: each rank has to hold its part of the model and no more.
    """

    base_learning_rate: float | None = None
    base_batch_size: int | None = None
    scaling: tuple[str, ...] = ()
    warmup: bool = False
    global_batch_size: int | None = None
    new_shares: bool = False
    sharded: bool = False


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that scripts leave besides weights: `columns` of a table as (name, kind); none for tensors."""

    name: str
    columns: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RubricItem:
    """Points, and what earns them.

    Attributes:
        id: stable short name; title: one line for the learner.
        points: full points.
        must: gates acceptance.
        requires: rule codes that must not be found.
        metric: name of a target that must be met, or None.
        steps: partial credit for a metric: (threshold, share of the points 0–1), ascending; empty = all or nothing.
        answer: name of what the task's `examine()` says about its artifacts and the run, "" for none.
        needs: what a run must have for the item to show, beyond what its rules need; None for nothing.
    """

    id: str
    title: str
    points: float
    must: bool
    requires: tuple[str, ...]
    metric: str | None
    steps: tuple[tuple[float, float], ...] = ()
    answer: str = ""
    needs: Precondition | None = None

    @property
    def about_network(self) -> bool:
        """Whether a metric decides it, and not the time."""
        return self.metric not in (None, TIME)


@dataclass(frozen=True, slots=True)
class Translation:
    """A statement in another language, such as `de`; `stale`: the original has changed since it was made."""

    language: str
    text: str
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """One assignment.

    Attributes:
        name: folder name; title, lab, summary: for people.
        folder: its folder; skeleton: the skeleton's folder.
        version: SHA-256 over the folder's files (submissions excluded), hex.
        launcher: `fork`, `torchrun` or `python`, see `LaunchSpec`.
        entry_point: script that is launched.
        datasets: names in order of preference; the first prepared one is used unless told otherwise.
        checks: codes that apply; empty means all.
        must: warning-level codes that gate acceptance here.
        profiles, targets, rubric: see their types.
        statement: Markdown text, in English; translations: the same in other languages, by language.
        reference: accepted submission for provisional calibration, a path below `submissions/`.
        expected: what it asks of the optimisation.
        costly: hint-level codes that are warnings here once a run has shown them.
        scored: networks are scored on the data; otherwise the data is there for scripts that want it, and weights are
            held against the network alone, if there are any.
        permute_labels: classes have other numbers for every submission.
        metrics: what networks are measured by, the one that says most first.
        own_data: the data that it brings along; None where it is judged on sets that everybody knows.
        samples: what one sample of its data is called, in the plural: images, sequences, tokens.
        counted_in_rows: a row of a batch is one of them; otherwise every number in it is, as tokens are in windows.
        artifacts: files besides weights that scripts leave, about which the task's `examine()` answers.
        second_look: a run that went wrong may be made again, line by line, to see which line is to blame.
    """

    name: str
    title: str
    lab: str
    summary: str
    folder: Path
    skeleton: Path
    version: str
    launcher: str
    entry_point: str
    datasets: tuple[str, ...]
    checks: tuple[str, ...]
    must: tuple[str, ...]
    profiles: tuple[Profile, ...]
    targets: tuple[Target, ...]
    rubric: tuple[RubricItem, ...]
    statement: str
    reference: str = ""
    expected: Expected = Expected()
    costly: tuple[str, ...] = ()
    scored: bool = True
    artifacts: tuple[Artifact, ...] = ()
    second_look: bool = True
    permute_labels: bool = True
    metrics: tuple[Metric, ...] = ()
    samples: str = "samples"
    counted_in_rows: bool = True
    translations: tuple[Translation, ...] = ()
    own_data: OwnData | None = None

    @property
    def has_images(self) -> bool:
        """Whether scripts and scorer read images with labels in FashionMNIST's layout, and not what the task made."""
        return self.own_data is None or self.own_data.is_images

    @property
    def examined(self) -> bool:
        """Whether the task's `examine()` is asked about a run."""
        return bool(self.artifacts) or any(item.answer for item in self.rubric)

    def told_in(self, languages: Iterable[str]) -> Translation:
        """The statement in the first of these languages that it is told in; in English where it is in none."""
        known = {"en": Translation("en", self.statement)} | {one.language: one for one in self.translations}
        return next((known[one] for one in languages if one in known), known["en"])

    def profile(self, name: str) -> Profile | None:
        """The profile of that name, or None."""
        return next((p for p in self.profiles if p.name == name), None)

    def target(self, metric: str) -> Target | None:
        """The target for that metric, or None."""
        return next((t for t in self.targets if t.metric == metric), None)

    def asked(self, target: Target) -> str:
        """What one of its targets asks, in words: `at least 0.850 on digits, at least 0.900 on fashion-mnist`."""
        metric = self.metric(target.metric)
        if metric is None or not target.levels:
            return f"at most {target.factor or 0:g} times the slowest accepted solution's"
        return ", ".join(f"{metric.asked(level)} on {name}" for name, level in target.levels.items())

    def metric(self, name: str) -> Metric | None:
        """The metric of that name, or None."""
        return next((m for m in self.metrics if m.name == name), None)

    def levels(self, dataset: str) -> dict[str, float]:
        """What each metric has to reach on a data set, by its name; without those that the task sets no target for."""
        every = {t.metric: (t.levels or {}).get(dataset) for t in self.targets}
        return {name: level for name, level in every.items() if level is not None}
