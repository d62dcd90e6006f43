"""Settings of optimizers beside the learning rate (`eps`, `betas`, `weight_decay`, …) that differ between ranks.

Compares optimizers that step the same parameters, or each rank's part of them; says nothing where ranks train different
ones. What a script's own optimizer counts or adapts in its groups is no setting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grader.checks.run.optimisation.learning_rates import same
from grader.model.trace import RankTrace, Step

_STANDARD = frozenset({
    "alpha", "amsgrad", "beta", "betas", "dampening", "decoupled_weight_decay", "eps", "lambd", "maximize", "momentum",
    "momentum_decay", "nesterov", "rho", "weight_decay",
})  # fmt: skip
"""Of torch's and others' optimizers: settings also where they change. Others are where they stay as they are."""

_Groups = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class ApartSetting:
    """The first setting in which two ranks differ.

    Attributes:
        name: as its optimizer calls it. step: of the first of the two ranks, at which it was so. values: theirs.
    """

    name: str
    step: Step
    ranks: tuple[int, int]
    values: tuple[Any, Any]


def apart_setting(ranks: Sequence[RankTrace], together: int | None) -> ApartSetting | None:
    """The first of all; None where there is none.

    Args:
        ranks: those that train. together: the first step that they took in different iterations, if any.
    """
    first, *others = ranks
    return next((one for other in others for one in _apart(first, other, together)), None)


def _apart(one: RankTrace, other: RankTrace, together: int | None) -> Iterator[ApartSetting]:
    for number, step in _first_steps(one).items():
        beside = _first_steps(other).get(number)
        if beside is None or step.grads is None or _stepped(step) != _stepped(beside):
            continue
        told = [_settings(rank, number) for rank in (one, other)]
        # Looks are drawn by how large the parameters are: of unequal parts, the first alone are at the same steps.
        all_alike = together is None and _looks(one, number) == _looks(other, number)
        now: list[_Groups] = [(), ()]
        for n in sorted({n for looks in told for n in looks}):
            now = [looks.get(n, before) for looks, before in zip(told, now, strict=True)]
            for name, values in _unlike(*now):
                if name in _STANDARD or all(_stays(name, looks) for looks in told):
                    at = next((s for s in one.steps if s.n == n), step)
                    yield ApartSetting(name, at, (one.rank, other.rank), values)
            if not all_alike:
                break


def _first_steps(rank: RankTrace) -> dict[int, Step]:
    return {step.optimizer: step for step in reversed(rank.steps)}


def _stepped(step: Step) -> tuple[object, ...]:
    return step.n, step.kind, len(step.lr), step.num_params, step.grad_names


def _looks(rank: RankTrace, optimizer: int) -> list[int]:
    return [s.n for s in rank.steps if s.optimizer == optimizer and s.grads is not None]


def _settings(rank: RankTrace, optimizer: int) -> dict[int, _Groups]:
    """Step → settings of each group; whatever a trace holds, they are what a group may have."""
    found: dict[int, _Groups] = {}
    for event in rank.events("settings"):
        n, groups = event.fields.get("n"), event.fields.get("groups")
        if event.fields.get("optimizer") == optimizer and isinstance(n, int) and isinstance(groups, list):
            found[n] = [one if isinstance(one, dict) else {} for one in groups]
    return found


def _unlike(one: _Groups, other: _Groups) -> Iterator[tuple[str, tuple[Any, Any]]]:
    for a, b in zip(one, other, strict=False):
        for name in sorted(a.keys() & b.keys()):
            if not _equal(a[name], b[name]):
                yield name, (a[name], b[name])


def _equal(a: object, b: object) -> bool:
    x, y = (value if isinstance(value, list) else [value] for value in (a, b))
    numbers = [tuple(float(n) if isinstance(n, int | float) else 0.0 for n in value) for value in (x, y)]
    return same(*numbers)


def _stays(name: str, looks: Mapping[int, _Groups]) -> bool:
    """Whether every group kept it as it was at first."""
    told = list(looks.values())
    return all([g.get(name) for g in one] == [g.get(name) for g in told[0]] for one in told)
