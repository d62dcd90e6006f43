"""Optimizer steps as they happen: their number, pace, loss and learning rate, and fingerprints of what they step on.

Uses torch's public global step hooks. Counts the outermost optimizer only: a sharding optimizer steps others inside.
"""

from __future__ import annotations

import functools
import sys
import weakref
from types import FrameType
from typing import Any

from grader.probe.communication import process_groups
from grader.probe.gradients import backward_passes
from grader.probe.gradients.gradient_clearing import Watch, missing, watch
from grader.probe.gradients.own_gradients import OwnGradients, look_at
from grader.probe.hooks import code_locations, sampling
from grader.probe.hooks.counters import counters
from grader.probe.hooks.patches import guarded, replace, skip_compiling
from grader.probe.models import evaluation_passes, tracked_models, trained_models, unheld_parameters
from grader.probe.models.fingerprints import are_filled, choose, fingerprint
from grader.probe.models.layouts import report_placements
from grader.probe.models.parameter_changes import report_parameter_changes
from grader.probe.models.tracked_models import TrackedModel
from grader.probe.steps import audited_steps, device_steps
from grader.probe.steps.movements import Movements
from grader.probe.steps.optimizer_settings import ToldSettings
from grader.probe.steps.step_events import EVERY, FIRST_SAMPLED, next_id, stepped, write_step
from grader.probe.steps.weight_looks import WeightLooks
from grader.probe.trace import events
from grader.probe.trace.writer import clock, writer

_ELEMENTS_PER_SAMPLE = 1 << 18


class _Optimizer:
    """What is known about one optimizer.

    Attributes:
        models: those that it trains; owners: what its looked-at steps say of them.
        head: what its step events say about it, as JSON. seconds: of its last step.
        chosen: fingerprinted parameters with their positions; names: theirs.
        every: after the first steps, one step in so many is fingerprinted; the same on every rank, since it depends on
            nothing but the parameters; looks: which ones.
        weights: looks at them. settings: what is told of its groups.
        told: the last step whose gradients were told; sequence: collectives of the default group at that time.
        watch: what backward passes find of a fingerprinted step's gradients, until the next step.
        own: what backward passes give, where the next step is fingerprinted.
        closure: whether its last step went forward and backward by itself.
        beside: whether it steps on tensors of its own (its part of a flat buffer, say) while a module is trained: what
            a rank has there need not be like another's, and `updates` looks at the module's weights instead.
    """

    __slots__ = (
        "_lr", "_lrs", "beside", "chosen", "closure", "every", "head", "held", "id", "looks", "models",
        "moves", "names", "own", "owners", "seconds", "sequence", "settings", "steps", "told", "watch", "weights",
    )  # fmt: skip

    def __init__(self, number: int, optimizer: Any) -> None:
        self.id = number
        self.steps = 0
        self.seconds: float | None = None
        self.head = f'"optimizer":{number},"kind":{writer.encode(type(optimizer).__name__)}'
        self._lrs: list[float] = []
        self._lr = "[]"
        self.told: int | None = None
        self.sequence: int | None = None
        self.watch: Watch | None = None
        params = [p for group in optimizer.param_groups for p in group["params"]]
        self.models: list[TrackedModel] = tracked_models.owners_of(params)
        self.own: OwnGradients | None = None
        self.closure = False
        self.beside = not self.models and counters.module_trained
        modules = [type(model).__name__ for one in self.models if (model := one.model()) is not None]
        self.owners = {"wraps": [one.wrap for one in self.models if one.wrap is not None], "modules": modules}
        named: dict[int, str] = {}
        for known in self.models:
            model = known.model()
            if model is not None:
                named |= {id(p): name for name, p in model.named_parameters()}
        if any(id(p) not in named for p in params):
            named = tracked_models.names_of(params) | named
        self.chosen = [(i, params[i]) for i in choose(params)]
        self.names = [named.get(id(p), f"parameter {i}") for i, p in self.chosen]
        self.every = EVERY * (1 + sum(p.numel() for _, p in self.chosen) // _ELEMENTS_PER_SAMPLE)
        self.looks = sampling.SampledSteps(self.every)
        self.weights = WeightLooks([p for _, p in self.chosen], self.names, named, self.every)
        self.settings = ToldSettings()
        self.held = frozenset(map(id, params))
        self.moves = Movements()
        report_placements(number, params, self.names, [p for _, p in self.chosen])

    def lr(self, optimizer: Any, sampled: bool) -> str:
        """The learning rates of all groups as JSON; of a step that isn't looked at those told last, if on a device."""
        given = [group.get("lr", 0.0) for group in optimizer.param_groups]
        if not sampled and any(getattr(lr, "is_cuda", False) for lr in given):
            return self._lr
        lrs = [float(lr) for lr in given]
        if lrs != self._lrs:
            self._lrs, self._lr = lrs, writer.encode(lrs)
        return self._lr

    def sampled(self) -> bool:
        """Whether the step that is about to be taken is fingerprinted."""
        steps = self.steps
        return steps < FIRST_SAMPLED or (steps >= self.looks.next and self.looks.at(steps))


_optimizers: dict[int, _Optimizer] = {}
_running: list[Any] = []
_running_from = 0.0


def _meet(optimizer: Any) -> _Optimizer:
    known = _optimizers[id(optimizer)] = _Optimizer(next_id(), optimizer)
    weakref.finalize(optimizer, _optimizers.pop, id(optimizer), None).atexit = False
    return known


def _is_inner(step: FrameType | None, optimizer: Any) -> bool:
    """Whether a step of this optimizer is part of the one that runs: another's, or that of a class which it extends.

    `step`: the frame of torch's that calls hooks. The stack really is inside of it, not after one that raised.
    """
    frame = step.f_back if step is not None and _running[0] is optimizer else step
    return _within(frame, _running[0])


def _within(frame: FrameType | None, optimizer: Any) -> bool:
    while frame is not None:
        if frame.f_locals.get("self") is optimizer:
            return True
        frame = frame.f_back
    return False


@guarded("step", values=True)
def _before_step(optimizer: Any, has_closure: bool) -> None:
    global _running_from
    stepped.add(id(optimizer))
    if _running and _is_inner(sys._getframe(3), optimizer):
        if _running[0] is optimizer:
            _tell_exchanged(_optimizers.get(id(optimizer)))
            audited_steps.look_again()
        _running.append(optimizer)
        return
    del _running[:]
    t = clock()
    known = _optimizers.get(id(optimizer)) or _meet(optimizer)
    known.weights.write()
    if known.moves.due:  # what steps the same weights in between is an optimizer, too
        alone = not any(one.held & known.held for one in _optimizers.values() if one is not known)
        known.moves.tell(alone=alone)
    if known.steps == 0:
        for model in known.models:
            trained_models.mark_trained(model)
    known.closure = has_closure
    if not has_closure:
        _step_now(optimizer, known, t)
    if known.moves.awaited:
        known.moves.begin(counters.steps - 1)
    _running.append(optimizer)
    counters.stepping = True
    _running_from = clock()


def _step_now(optimizer: Any, known: _Optimizer, t: float) -> None:
    more: dict[str, Any] = {}
    sampled, count = known.sampled(), known.steps
    if sampled:
        grads = None if known.beside else fingerprint(p.grad for _, p in known.chosen)
        more = {
            "grads": grads,
            "grad_names": known.names,
            "site": code_locations.here(),
            **missing(optimizer, known.models),
            **known.owners,
            **({"within": True} if backward_passes.going_backward() else {}),
            **(known.own.told() if known.own is not None else {}),
        }
        known.own = None
    counters.beside = known.beside
    asleep = _asleep(known.models)
    evaluation_passes.end()
    if not (known.beside or known.closure):
        audited_steps.begin(counters.steps, known.models)
    write_step(known, t, known.lr(optimizer, sampled), more, asleep=asleep)
    if sampled or known.weights.unannounced(count):
        known.settings.look(optimizer, known.id, counters.steps - 1)
        if not known.beside:
            known.weights.after(counters.steps - 1, optimizer)
    if not sampled:
        return
    known.told, known.sequence = counters.steps - 1, process_groups.sequence()
    if not known.beside:
        known.watch = watch(zip(known.names, (p for _, p in known.chosen), strict=True))
    count = count if count < FIRST_SAMPLED else count // known.every
    if count & (count - 1) == 0:  # after 0, 1, 2, 4, … steps, then windows: often enough, and cheap
        report_parameter_changes(known.models)
        unheld_parameters.look(known.models)


@guarded("after step", values=True)
def _after_step(optimizer: Any) -> None:
    if len(_running) > 1 and _running[-1] is optimizer:
        _running.pop()
        return
    if _running and _running[0] is not optimizer:
        return
    del _running[:]
    counters.stepping = False
    known = _optimizers.get(id(optimizer))
    if known is not None and known.closure:
        # Its forward and backward passes were inside; the gradients are those of the last of them.
        _step_now(optimizer, known, clock())
    device_steps.end()
    counters.step_ended = ended = clock()
    if known is not None:
        known.seconds = ended - _running_from
        _tell_exchanged(known)
        audited_steps.end()
        for model in known.models:
            trained_models.note_versions(model)
        if not (known.closure or known.beside):
            if known.sampled():
                known.own = look_at(p for _, p in known.chosen)
            elif known.weights.unannounced(known.steps):
                known.moves.look_ahead(known.steps, optimizer)
        if known.moves.due:
            known.moves.end()


def _tell_exchanged(known: _Optimizer | None) -> None:
    """Tell the gradients again where ranks have met since, within the step: what it steps on is what came of that."""
    if known is None or known.told != counters.steps - 1 or known.closure or known.beside:
        return
    before, known.sequence = known.sequence, process_groups.sequence()
    grads = [p.grad for _, p in known.chosen]
    if known.sequence != before and all(are_filled(grads)):
        writer.write(events.STEPPED_ON, n=known.told, grads=fingerprint(grads))


def _asleep(trained: list[TrackedModel]) -> bool:
    """Whether a step was trained in evaluation mode."""
    found = False
    for known in trained:
        modes, model = known.modes, known.model()
        # Of a model in parts, the outermost alone notes its passes.
        if model is not None and (modes.in_training or modes.lines):
            found |= modes.step(model, known.wrap)
    return found


def _hooks() -> tuple[Any, Any]:
    from torch.compiler import is_compiling

    def before(optimizer: Any, args: Any, kwargs: dict[str, Any]) -> None:
        if not is_compiling():
            has_closure = len(args) > 1 or bool(kwargs)
            if has_closure:
                has_closure = any(one is not None for one in (kwargs.get("closure"), *args[1:]))
            _before_step(optimizer, has_closure)

    def after(optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if not is_compiling():
            _after_step(optimizer)

    skip_compiling(before)
    skip_compiling(after)
    return before, after


@guarded("optimizer")
def _built(optimizer: Any) -> None:
    # Only to watch the model from its first forward pass on; parameters may still be added or moved.
    tracked_models.owners_of([p for group in optimizer.param_groups for p in group["params"]])


def install() -> None:
    """Hook optimizers."""
    from torch.optim.optimizer import (
        Optimizer,
        register_optimizer_step_post_hook,
        register_optimizer_step_pre_hook,
    )

    before, after = _hooks()
    register_optimizer_step_pre_hook(before)
    register_optimizer_step_post_hook(after)
    replace([Optimizer], "__init__", _wrap_built)


def _wrap_built(original: Any) -> Any:
    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        original(self, *args, **kwargs)
        _built(self)

    return __init__
