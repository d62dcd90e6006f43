"""What an optimizer steps its groups of parameters with, beside learning rates: told at first, and when it has changed.

Numbers that are there as such, and those switches that change a step. Looks when the optimizer's weights are looked at
anyway, which is drawn by lot.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from grader.probe.trace import events
from grader.probe.trace.writer import writer

_SWITCHES = ("nesterov", "amsgrad", "maximize", "decoupled_weight_decay")
"""The others (`fused`, `foreach`, …) say how a step is computed."""
_MAX_GROUPS, _MAX_SETTINGS, _MAX_NUMBERS, _MAX_TOLD = 64, 32, 4, 512

Settings: TypeAlias = dict[str, Any]


class ToldSettings:
    """Those of one optimizer."""

    __slots__ = ("_groups", "_left")

    def __init__(self) -> None:
        self._groups: list[Settings] = []
        self._left = _MAX_TOLD

    def look(self, optimizer: Any, number: int, step: int) -> None:
        """Tell them as they are at this step of the optimizer of this number, unless they are what was told last."""
        groups = [_settings(group) for group in optimizer.param_groups[:_MAX_GROUPS]]
        if groups != self._groups and self._left:
            self._groups = groups
            self._left -= 1
            writer.write(events.SETTINGS, n=step, optimizer=number, groups=groups)


def _settings(group: dict[str, Any]) -> Settings:
    found = {name: value for name, value in group.items() if name != "lr" and _is_setting(name, value)}
    return dict(list(found.items())[:_MAX_SETTINGS])


def _is_setting(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return name in _SWITCHES
    if isinstance(value, (tuple, list)):
        return 0 < len(value) <= _MAX_NUMBERS and all(one is None or _is_number(one) for one in value)
    return _is_number(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
