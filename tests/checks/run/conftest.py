"""Runs as they would have been told, put together by hand: what happened on each rank, in order, and nothing else.

Only the evidence is built here. Scripts are really parsed, ledgers really built, and rules really run over both.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from grader.checks.evidence import Evidence
from grader.checks.rule import Observation, load_rules
from grader.checks.source.script import parse
from grader.model.calibration import Calibration
from grader.model.call_site import Site
from grader.model.checkpoint_save import Save
from grader.model.drawn_data import Batch, Feed, Loader, Pass
from grader.model.evaluation import Evaluation
from grader.model.file_write import FileWrite
from grader.model.metric import ACCURACY, Metric
from grader.model.run import Ending, Failure, Frame, RankRecord, RunRecord, Waiting
from grader.model.submission import SourceFile, Submission
from grader.model.task import Expected, Task
from grader.model.trace import Collective, Event, Final, Group, Params, RankTrace, Start, Step, Trace, Wrap
from tests.attempt_facts import attempt_facts

NAMES = ("conv.weight", "fc.weight", "fc.bias")


@dataclass
class Rank:
    """One rank while it is being told."""

    rank: int
    world_size: int
    t: float = 1.0
    fields: dict[str, list[Any]] = field(default_factory=dict)
    steps: int = 0
    loaders: dict[str, Loader] = field(default_factory=dict)
    passes: dict[str, int] = field(default_factory=dict)
    ended: bool = True
    suspicions: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    silent: bool = False

    def add(self, kind: str, value: Any) -> None:
        self.fields.setdefault(kind, []).append(value)

    def tick(self) -> float:
        self.t += 0.01
        return self.t

    def event(self, kind: str, line: int = 0, /, **fields: Any) -> None:
        self.add("others", Event(kind, self.tick(), site(line) if line else None, fields))

    def trace(self) -> RankTrace:
        start = Start("2.6", "3.11", self.rank, self.rank, self.world_size, 100 + self.rank, self.rank)
        if self.silent:
            return RankTrace(self.rank, None, False)
        return RankTrace(
            self.rank,
            start,
            self.ended,
            **{k: tuple(v) for k, v in self.fields.items()},
            suspicions=self.suspicions,
            problems=self.problems,
            num_lines=100,
            num_bytes=10_000,
            last_t=self.t,
        )


def site(line: int, path: str = "train.py") -> Site:
    return Site(path, line, "main")


def frame(line: int, path: str = "train.py", own: bool = True) -> Frame:
    return Frame(path, line, "main", own)


class Story:
    """A run, told step by step; `evidence()` is what the rules get."""

    def __init__(self, world_size: int = 2, num_train: int = 96, num_validation: int = 30) -> None:
        self.world_size, self.num_train, self.num_validation = world_size, num_train, num_validation
        self.ranks = [Rank(r, world_size) for r in range(world_size)]
        self.text = "print('a script')\n"
        self.ending = Ending.COMPLETED
        self.waiting: dict[int, Waiting] = {}
        self.failures: dict[int, Failure] = {}
        self.exit_codes: dict[int, int | None] = {}
        self.killed: set[int] = set()
        self.cpu_s = 5.0
        self.logs: tuple[tuple[str, str], ...] = ()
        self.evaluation: Evaluation | None = None
        self.metrics: tuple[Metric, ...] = (ACCURACY,)
        self.levels: dict[str, float] = {}
        self.profile = "cpu"
        self.outputs: tuple[Any, ...] = ()
        self.loopback_bytes: int | None = None
        self.rank_cpu_s: dict[int, float] = {}
        self.trace_cut = False
        self.files: dict[str, str] = {}
        self.foreign_lines = self.gone_lines = 0
        self.known_train: int | None = num_train
        self.expected = Expected()
        self.calibration: Calibration | None = None
        self.disturbed = False

    def group(self, ranks: Iterable[int] | None = None, destroy: bool = False, line: int = 5) -> None:
        for r in self._some(ranks):
            op = "destroy" if destroy else "init"
            r.add("groups", Group(op, "gloo", r.rank, self.world_size, 1800.0, None, site(line), r.tick()))

    def wrap(
        self,
        kind: str = "ddp",
        devices: Sequence[str] = ("cpu",),
        num_batchnorm: int = 0,
        line: int = 8,
        **fields: Any,
    ) -> None:
        for r in self.ranks:
            device = devices[r.rank % len(devices)]
            wrap = Wrap(
                0,
                kind,
                site(line),
                "Net",
                1000,
                3,
                4000,
                0,
                num_batchnorm,
                0,
                (device,),
                None,
                True,
                False,
                r.tick(),
            )
            r.add("wraps", replace(wrap, **fields))

    def loader(
        self,
        rank: int,
        name: str,
        *,
        split: str | None = "train",
        size: int | None = None,
        root: int | None = None,
        **fields: Any,
    ) -> Loader:
        r = self.ranks[rank]
        if name not in r.loaders:
            whole = self.num_validation if split == "validation" else self.num_train
            values: dict[str, Any] = {
                "dataset": "FashionMNIST",
                "sampler": "DistributedSampler",
                "num_replicas": self.world_size,
                "sampler_rank": rank,
                "sampler_seed": 0,
                "shuffle": True,
                "drop_last": False,
                "num_workers": 0,
                "site": site(11 if split == "train" else 12),
                "batch_size": None,
            }
            values |= fields
            values.setdefault("root", 0)
            r.loaders[name] = Loader(
                id=len(r.loaders),
                root_size=whole if root is None else root,
                size=(whole if root is None else root) if size is None else size,
                split=split,
                iterable=False,
                resolvable=True,
                t=r.tick(),
                **values,
            )
            r.add("loaders", r.loaders[name])
        return r.loaders[name]

    def epoch(
        self,
        shards: Mapping[int, Sequence[int]],
        *,
        name: str = "train",
        batch: int = 8,
        every: int = 1,
        exhausted: bool | dict[int, bool | None] | None = True,
        known: bool = True,
        sampler_epoch: int | None = 0,
        grads: Callable[[int, int], tuple[float, ...]] | None = None,
        **loader: Any,
    ) -> None:
        """One training epoch: every rank draws its shard and steps after every `every`-th batch."""
        for rank, shard in shards.items():
            r = self.ranks[rank]
            built = self.loader(rank, name, **loader)
            number = r.passes.get(name, 0)
            r.passes[name] = number + 1
            begun = r.tick()
            for n in range(0, len(shard), batch):
                piece = tuple(shard[n : n + batch])
                indices = piece if known else None
                r.add(
                    "batches",
                    Batch(built.id, number, n // batch, len(piece), indices, 0.001, r.steps, r.tick()),
                )
                if (n // batch + 1) % every == 0:
                    self.step(rank, (grads or equal_gradients)(rank, r.steps), len(piece))
            ran_dry = exhausted.get(rank) if isinstance(exhausted, dict) else exhausted
            ended = None if ran_dry is None else r.tick()
            r.add("passes", Pass(built.id, number, sampler_epoch, site(20), begun, ended, ran_dry))

    def step(
        self, rank: int, grads: tuple[float | None, ...] | None, samples: int = 8, **fields: Any
    ) -> None:
        r = self.ranks[rank]
        values: dict[str, Any] = {
            "optimizer": 0,
            "kind": "SGD",
            "lr": (0.1,),
            "synced": True,
            "site": site(25),
            "loss": 1.0,
        } | fields
        step = Step(
            n=r.steps,
            samples=samples,
            data_s=0.001,
            compute_s=0.01,
            optimizer_s=0.001,
            grads=grads,
            grad_names=NAMES if grads else (),
            rss_bytes=None,
            device_bytes=None,
            t=r.tick(),
            **values,
        )
        r.add("steps", step)
        r.steps += 1

    def validate(
        self,
        shards: Mapping[int, Sequence[int]],
        *,
        batch: int = 8,
        exhausted: bool = True,
        reduce: str = "",
        name: str = "validation",
        **loader: Any,
    ) -> None:
        """One validation pass over the loader of this name, and after it a collective where one is named."""
        for rank, shard in shards.items():
            r = self.ranks[rank]
            loader = {"split": "validation", "shuffle": False, **loader}
            built = self.loader(rank, name, **loader)
            number = r.passes.get(name, 0)
            r.passes[name] = number + 1
            begun = r.tick()
            for n in range(0, len(shard), batch):
                piece = tuple(shard[n : n + batch])
                r.add(
                    "batches",
                    Batch(built.id, number, n // batch, len(piece), piece, 0.001, r.steps, r.tick()),
                )
                if n == 0:
                    r.event("evaluation", 30, op="begin")
            r.add("passes", Pass(built.id, number, None, site(29), begun, r.tick(), exhausted))
            if reduce:
                self.collective(rank, reduce, 33)

    def collective(self, rank: int, name: str, line: int) -> None:
        r = self.ranks[rank]
        r.add("collectives", Collective(name, site(line), 1, 2, "SUM", r.tick(), 0.001))

    def feed(self, rank: int, batches: Sequence[Sequence[str]]) -> None:
        r = self.ranks[rank]
        for hashes in batches:
            r.add("feeds", Feed(r.steps, tuple(hashes), len(hashes), r.tick()))
            self.step(rank, (1.0, float(r.steps), 0.5), len(hashes))

    def params(
        self, rank: int, n: int, sums: tuple[float, ...], drawn: Mapping[str, float | None] | None = None
    ) -> None:
        more = drawn or {}
        look = Params(n, NAMES, sums, self.ranks[rank].tick(), tuple(more), tuple(more.values()))
        self.ranks[rank].add("params", look)

    def final(
        self, rank: int, sums: tuple[float, ...], names: tuple[str, ...] = NAMES, sharded: bool = False
    ) -> None:
        self.ranks[rank].add("finals", Final(names, sums, sharded))

    def save(
        self,
        rank: int,
        path: str,
        *,
        api: str = "torch.save",
        prefix: str = "",
        sums: Any = (1.0, 2.0, 3.0),
        line: int = 40,
        num_tensors: int = 3,
    ) -> None:
        r = self.ranks[rank]
        r.add(
            "saves",
            Save(path, not path.startswith("/"), site(line), api, prefix, num_tensors, sums, r.tick()),
        )

    def write(self, rank: int, path: str, op: str = "open", line: int = 44) -> None:
        r = self.ranks[rank]
        r.add("files", FileWrite(op, path, not path.startswith("/"), site(line), r.tick()))

    def wait(self, rank: int, operation: str, *lines: int) -> None:
        frames = (frame(700, "torch/distributed/distributed_c10d.py", own=False), *(frame(n) for n in lines))
        self.waiting[rank] = Waiting(frames, operation, frame(lines[0]) if lines else None)
        self.ending = Ending.DEADLOCKED
        self.killed.add(rank)
        self.exit_codes[rank] = None

    def _some(self, ranks: Iterable[int] | None) -> list[Rank]:
        return self.ranks if ranks is None else [self.ranks[r] for r in ranks]

    def trace(self) -> Trace:
        return Trace(tuple(r.trace() for r in self.ranks))

    def evidence(self) -> Evidence:
        texts = {"train.py": self.text, **self.files}
        script = parse(Submission("a submission", tuple(SourceFile(*one) for one in texts.items())))
        trace = self.trace()
        records = tuple(
            RankRecord(
                rank=r.rank,
                exit_code=self.exit_codes.get(r.rank, 0),
                killed_by_judge=r.rank in self.killed,
                started_s=0.0,
                ended_s=r.t,
                cpu_user_s=self.rank_cpu_s.get(r.rank, self.cpu_s),
                cpu_system_s=0.0,
                peak_rss_bytes=1 << 28,
                stdout_bytes=0,
                stderr_bytes=0,
                stdout_lines=len(self.logs[r.rank][0].splitlines()) if self.logs else 0,
                output_cut=False,
                trace_bytes=1000,
                trace_cut=self.trace_cut,
                foreign_lines=self.foreign_lines,
                gone_lines=self.gone_lines,
                waiting=self.waiting.get(r.rank),
                failure=self.failures.get(r.rank),
            )
            for r in self.ranks
        )
        record = RunRecord(
            runtime="process",
            launcher="fork",
            isolated=False,
            world_size=self.world_size,
            ending=self.ending,
            ending_reason="",
            wall_s=10.0,
            deadline_s=60.0,
            ranks=records,
            outputs=self.outputs,
            loopback_bytes=self.loopback_bytes,
            disturbed=self.disturbed,
        )
        facts = attempt_facts(
            script.submission,
            profile=self.profile,
            nproc_per_node=self.world_size,
            num_train=self.known_train or 0,
            num_validation=self.num_validation,
        )
        return Evidence(
            facts,
            script,
            record,
            trace,
            evaluation=self.evaluation,
            calibration=self.calibration,
            logs=self.logs,
            expected=self.expected,
            scored=self.known_train is not None,
            metrics=self.metrics,
            levels=self.levels,
        )

    def observation(self, code: str) -> Observation:
        """What one rule saw."""
        rule = next(r for r in load_rules() if r.code == code)
        assert rule.check_run is not None
        evidence = self.evidence()
        if rule.needs is not None and not evidence.offers(rule.needs):
            seen = rule.observe(evidence)
            assert seen is not None
            return seen
        # Not every story troubles to tell of the group.
        return rule.check_run(evidence)


def equal_gradients(rank: int, step: int) -> tuple[float, ...]:
    return (1.0 + step, 0.5 * step - 3.0, 1e-9)


def strided(
    n: int, world_size: int, epoch: int = 0, *, shuffle: bool = True, pad: bool = True, seed: int = 0
) -> dict[int, list[int]]:
    """What DistributedSampler gives each rank."""
    order = list(range(n))
    if shuffle:
        random.Random(seed * 1000 + epoch).shuffle(order)
    if pad and len(order) % world_size:
        order += order[: world_size - len(order) % world_size]
    return {r: order[r::world_size] for r in range(world_size)}


def honest(world_size: int = 2, n: int = 96, epochs: int = 2, **epoch_options: Any) -> Story:
    """A correct run: group, wrap, shards that are disjoint, complete and renewed, one reduced validation, one save."""
    story = Story(world_size, n)
    story.group()
    story.wrap()
    for epoch in range(epochs):
        story.epoch(strided(n, world_size, epoch), sampler_epoch=epoch, **epoch_options)
    story.validate(strided(30, world_size, shuffle=False, pad=False), reduce="all_reduce")
    for r in story.ranks:
        story.params(r.rank, r.steps - 1, (1.0, 2.0, 3.0))
        story.final(r.rank, (1.0, 2.0, 3.0))
    story.save(0, "model.pt")
    story.group(destroy=True)
    for r in story.ranks:
        r.event("end", group_destroyed=True)
    return story


@dataclass(frozen=True)
class Tools:
    """The builders, as one fixture."""

    Story = Story
    honest = staticmethod(honest)
    strided = staticmethod(strided)
    equal_gradients = staticmethod(equal_gradients)
    site = staticmethod(site)
    frame = staticmethod(frame)
    names = NAMES
    replace = staticmethod(replace)


@pytest.fixture(scope="session")
def tell() -> Tools:
    """Builders of runs."""
    return Tools()


@pytest.fixture(scope="session")
def task() -> Task:
    """A task to which all checks apply."""
    folder = Path("tasks/any")
    return Task(
        name="any", title="", lab="", summary="", folder=folder, skeleton=folder, version="0", launcher="fork",
        entry_point="train.py", datasets=(), checks=(), must=(), profiles=(), targets=(), rubric=(), statement="",
    )  # fmt: skip


@pytest.fixture(scope="session")
def only(task: Task) -> Callable[..., Task]:
    """The same task with some checks only."""
    return lambda *codes: replace(task, checks=codes)
