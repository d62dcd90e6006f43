"""Read what the probes told: one stamped file per rank in, a `Trace` out.

Streams, tolerates anything (a killed rank truncates honestly, a hostile one writes what it likes) and judges nothing:
oddities are handed on as problems and suspicions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from grader.model import drawn_data
from grader.model import trace as model
from grader.model.line_change import Sums
from grader.probe.trace import events
from grader.run import trace_events
from grader.run.trace_fields import Fields, WrongFieldError
from grader.run.trace_lines import Problems, TraceLine, read_lines
from grader.run.trace_suspicions import Suspicions

MAX_OTHERS = 20_000
"""Events of one kind that does not come with every step or batch: the probe tells a few hundred of each."""


def read_trace(paths: Sequence[Path]) -> model.Trace:
    """Read one run's trace.

    Args:
        paths: one file per started rank, in order of rank; a missing file is a rank that told nothing.

    Returns:
        What they told. Whatever the files hold, no exception is raised for it.
    """
    return model.Trace(tuple(_RankReader(rank, len(paths)).read(path) for rank, path in enumerate(paths)))


class _RankReader:
    """Gathers one rank's events."""

    def __init__(self, rank: int, num_ranks: int) -> None:
        self._rank = rank
        self._num_ranks = num_ranks
        self._problems = Problems()
        self._suspicions = Suspicions(rank)
        self._start: model.Start | None = None
        self._ended = False
        self._kept: dict[str, list[Any]] = {}
        self._passes: dict[tuple[int, int], drawn_data.Pass] = {}
        self._others = Counter[str]()
        self._num_steps = 0
        self._later: dict[int, tuple[float | None, float]] = {}
        self._stepped_on: dict[int, Sums] = {}
        self._num_lines = self._num_bytes = 0
        self._last_t = 0.0

    def read(self, path: Path) -> model.RankTrace:
        for line in read_lines(path, self._problems):
            self._num_lines += 1
            self._num_bytes += line.num_bytes
            self._last_t = max(self._last_t, line.received)
            self._suspicions.look_at_time(line)
            self._suspicions.look_at_order(line.kind)
            try:
                self._take(line)
            except WrongFieldError as error:
                self._problems.add(
                    f"An event of kind {line.kind!a} has a wrong or missing field {error.name!a}."
                )
        if self._start is not None and not self._ended:
            self._problems.add("The trace stops before the script's end was told.")
        self._kept["steps"] = [self._completed(step) for step in self._kept.get("steps", ())]
        return model.RankTrace(
            rank=self._rank,
            start=self._start,
            ended=self._ended,
            passes=tuple(self._passes.values()),
            problems=self._problems.sentences(),
            suspicions=self._suspicions.sentences(),
            num_lines=self._num_lines,
            num_bytes=self._num_bytes,
            last_t=self._last_t,
            **{name: tuple(found) for name, found in self._kept.items()},
        )

    def _completed(self, step: model.Step) -> model.Step:
        """A step with what was there later only."""
        if step.n in self._stepped_on and step.grads is not None:
            step = replace(step, grads=self._stepped_on[step.n])
        if step.n not in self._later:
            return step
        loss, device_s = self._later[step.n]
        return replace(step, loss=loss if step.loss is None else step.loss, device_s=device_s)

    def _keep(self, name: str, record: Any) -> None:
        self._kept.setdefault(name, []).append(record)

    def _take(self, line: TraceLine) -> None:
        fields = Fields(line.fields)
        match line.kind:
            case events.START:
                start = trace_events.start(fields)
                self._suspicions.look_at_start(start.rank, start.world_size, self._num_ranks)
                self._start = self._start or start
            case events.STEP:
                step = trace_events.step(fields, line.t)
                self._suspicions.look_at_step(step.n, line, bool(self._problems))
                self._num_steps += 1
                self._later |= trace_events.later(fields)
                self._keep("steps", step)
            case events.STEPPED_ON:
                self._stepped_on |= trace_events.stepped_on(fields)
            case events.BATCH:
                self._keep("batches", trace_events.batch(fields, line.t, self._num_steps))
            case events.FEED:
                self._keep("feeds", trace_events.feed(fields, line.t, self._num_steps))
            case events.PASS:
                self._begin_pass(fields, line.t)
            case events.PASS_END:
                self._end_pass(fields, line.t)
            case events.FINAL:
                self._keep("finals", trace_events.final(fields))
            case kind if kind in trace_events.TIMED:
                name, read = trace_events.TIMED[kind]
                self._keep(name, read(fields, line.t))
            case events.AUDITED | events.AUDITED_PART | events.PICTURES:
                pass  # too much to keep: the scorer alone reads them (`evaluate.told_steps`)
            case _:
                self._take_other(line)

    def _take_other(self, line: TraceLine) -> None:
        event = trace_events.other(line.kind, line.t, line.fields)
        if event is None:
            self._problems.add("An event is of a kind that nobody knows.")
            return
        self._others[event.kind] += 1
        if self._others[event.kind] > MAX_OTHERS:
            self._problems.add(f"Of kind {event.kind!a} there are more events than are read.")
            return
        if event.kind == events.END:
            self._ended = True
            self._later |= trace_events.later(Fields(line.fields))
        if event.kind == events.EVALUATION and event.fields.get("trained") is True:
            self._take_back(events.EVALUATION)  # a step came of it
            return
        self._keep("others", event)

    def _take_back(self, kind: str) -> None:
        others = self._kept.get("others", [])
        number = next((n for n in reversed(range(len(others))) if others[n].kind == kind), None)
        if number is not None and others[number].fields.get("op") == "begin":
            del others[number]

    def _begin_pass(self, fields: Fields, t: float) -> None:
        loader, n = fields.whole("loader"), fields.whole("n")
        epoch = fields.maybe("sampler_epoch", lambda name: fields.whole(name, -(1 << 53)))
        if (loader, n) in self._passes:
            self._problems.add("A pass over a loader was begun twice.")
            return
        self._passes[loader, n] = drawn_data.Pass(
            loader, n, epoch, fields.site(), t, None, None, fields.maybe("state", fields.text)
        )

    def _end_pass(self, fields: Fields, t: float) -> None:
        key = fields.whole("loader"), fields.whole("pass")
        exhausted = fields.flag("exhausted")
        begun = self._passes.get(key)
        if begun is None or begun.exhausted is not None:
            self._problems.add("A pass over a loader ended that was not under way.")
            return
        changed = fields.maybe("changed", fields.flag) is True
        self._passes[key] = replace(begun, ended_t=t, exhausted=exhausted, changed=changed)
