"""Asks a task's `figures()` for something to draw, in a child of the scorer that is only there for it.

Learners see what it gives, so it is given nothing hidden. Nothing counts for points: where it fails, or takes too
long, the run keeps its score and the report says why a figure is missing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.evaluate.files.plain_files import RefusedError
from grader.evaluate.files.results import read_results
from grader.evaluate.files.weight_files import load_weights
from grader.evaluate.scorer.author_faults import TaskFaultError, author_call
from grader.evaluate.scorer.run_scoring import ScoringCache, ScoringRequest, fresh_network
from grader.model.run_account import RunAccount
from grader.model.task_figure import Numbers, Panel, Series, Surface, TaskFigure

if TYPE_CHECKING:
    from torch import Tensor

WALL_S = 45.0
"""Time after which a task's figures are given up."""
_MOST = 1e15
"""Beyond it no plot can be read."""
MAX_FIGURES, MAX_PANELS, MAX_SERIES, MAX_POINTS, MAX_SIDE, MAX_TEXT = 4, 4, 16, 1_000, 64, 1_000


@dataclass(frozen=True, slots=True)
class Drawable:
    """What `figures()` is given.

    Attributes:
        model: the task's network with the run's weights; None where there are none that could be scored.
        images, labels: the training split as `evaluate()` gets others, uint8 (N, H, W) and int64 (N,); None where the
            task scores nothing, or on data of its own.
        folder: what scripts find of that data; None where there is none.
        data_version: of the prepared data.
        left, run: as `examine()` gets them.
    """

    model: Any
    images: Tensor | None
    labels: Tensor | None
    folder: Path | None
    data_version: str
    left: dict[str, Any]
    run: RunAccount


def draw_run(
    request: ScoringRequest, cache: ScoringCache, _mark: Callable[[bytes], object]
) -> dict[str, Any]:
    """`figures` and `undrawn` of a run's evaluation; `request` as for scoring, which has found nothing against it."""
    import torch

    module, images, labels = cache.module(request), None, None
    folder = Path(request.visible) if request.reads_folder else None
    if request.visible and folder is None:
        train = cache.split(request.visible, request, "train")
        images, labels = torch.from_numpy(train[0].copy()), torch.from_numpy(train[1].copy())
    left, _ = read_results(Path(request.outputs), request.artifacts)
    account = RunAccount.from_json(request.run)
    seen = Drawable(_trained(request, cache), images, labels, folder, request.data_version, left, account)
    try:
        return {
            "figures": [asdict(f) for f in author_call(lambda: checked(module.figures(seen)), "`figures()`")]
        }
    except TaskFaultError as error:
        return {"undrawn": str(error)}


def _trained(request: ScoringRequest, cache: ScoringCache) -> Any:
    """The task's network with the run's weights; None where none can be scored."""
    if not request.hidden:
        return None
    model = fresh_network(cache.module(request), request.model_size)
    try:
        model.load_state_dict(load_weights(Path(request.outputs), model.state_dict()).tensors)
    except RefusedError:
        return None
    return model.eval()


def checked(given: Any) -> tuple[TaskFigure, ...]:
    """The figures that `figures()` returned, of bounded size; what is no number, or a huge one, leaves a gap.

    Raises:
        ValueError: they are anything else; the text says what.
    """
    figures = tuple(given) if isinstance(given, list | tuple) else (given,)
    if len(figures) > MAX_FIGURES or not all(isinstance(figure, TaskFigure) for figure in figures):
        raise ValueError(
            f"`figures()` returns at most {MAX_FIGURES} `TaskFigure`s in a list, not {given!r:.80}"
        )
    names = [figure.name for figure in figures]
    if len(set(names)) < len(names) or not all(re.fullmatch(r"[a-z0-9-]{1,40}", name) for name in names):
        raise ValueError(
            f"each figure needs a name of its own, of lower-case letters, digits and dashes: {names!r:.80}"
        )
    for figure in figures:
        longest = max(len(text) for text in _texts(asdict(figure)))
        if not 1 <= len(figure.panels) <= MAX_PANELS or longest > MAX_TEXT:
            raise ValueError(
                f"the figure {figure.name} needs 1 to {MAX_PANELS} panels and words of bounded length"
            )
    return tuple(replace(f, panels=tuple(_panel(f.name, panel) for panel in f.panels)) for f in figures)


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict | list | tuple):
        inside = value.values() if isinstance(value, dict) else value
        return [text for item in inside for text in _texts(item)]
    return [value] if isinstance(value, str) else []


def _panel(name: str, panel: Panel) -> Panel:
    if len(panel.series) > MAX_SERIES:
        raise ValueError(f"the figure {name} has more than {MAX_SERIES} series in a panel")
    series = tuple(replace(one, xs=_numbers(one.xs), ys=_numbers(one.ys)) for one in panel.series)
    for curve in series:
        _same_length(name, curve)
    return replace(panel, series=series, surface=_surface(name, panel.surface) if panel.surface else None)


def _same_length(name: str, curve: Series) -> None:
    if len(curve.xs) != len(curve.ys) or len(curve.xs) > MAX_POINTS:
        raise ValueError(
            f"the figure {name} has a series, “{curve.label}”, with other ys than xs, or over {MAX_POINTS}"
        )


def _surface(name: str, surface: Surface) -> Surface:
    sides = (len(surface.ys), len(surface.xs))
    if {len(row) for row in surface.heights} != {sides[1]} or len(surface.heights) != sides[0]:
        raise ValueError(f"the figure {name} needs a row of {sides[1]} heights for each of its {sides[0]} ys")
    if not (min(sides) >= 2 and max(sides) <= MAX_SIDE and 1 <= len(surface.levels) <= MAX_SERIES):
        raise ValueError(
            f"the figure {name} needs a grid of 2 to {MAX_SIDE} a side and 1 to {MAX_SERIES} levels"
        )
    return replace(surface, heights=tuple(_numbers(row) for row in surface.heights))


def _numbers(values: Numbers) -> Numbers:
    return tuple(float(v) if v is not None and math.isfinite(v) and abs(v) < _MOST else None for v in values)
