"""The plots of a report: which there are, what each says in words, and what is said where there is nothing to draw.

Each plot is an inline SVG with a legend and a sentence that tells the same in words. Figures are decoration around
evidence: no verdict is ever read off them.
"""

from __future__ import annotations

from dataclasses import dataclass

from grader.judging.attempt import Attempt
from grader.report.plots import curves, shards, task_figures, timing


@dataclass(frozen=True, slots=True)
class Plot:
    """One figure of the report.

    Attributes:
        name: id in the page.
        title: heading.
        svg: the drawing, "" where there is nothing to draw.
        summary: what it shows, or why it is missing; one or two sentences.
        legend: (CSS variable of the colour, label).
        wide: whether it takes the full width.
    """

    name: str
    title: str
    svg: str
    summary: str
    legend: tuple[tuple[str, str], ...] = ()
    wide: bool = False


def draw_plots(attempt: Attempt) -> tuple[Plot, ...]:
    """All plots in the order of the report, the task's own at their end."""
    evaluation = attempt.evaluation
    own = evaluation.figures if evaluation is not None else ()
    undrawn = evaluation.undrawn if evaluation is not None else ""
    return (
        Plot("plot-loss", "Loss", *curves.loss(attempt)),
        *(
            Plot(f"plot-metric-{m.name}", m.heading, *curves.network(attempt, m))
            for m in attempt.grade.measures
        ),
        Plot("plot-coverage", "Which rank saw which sample", *shards.coverage(attempt), wide=True),
        Plot("plot-timeline", "What each rank did with its time", *timing.timeline(attempt), wide=True),
        Plot("plot-throughput", curves.per_second(attempt).capitalize(), *curves.throughput(attempt)),
        Plot("plot-time", timing.time_title(attempt), *timing.against_target(attempt)),
        Plot("plot-learning-rate", "Learning rate", *curves.learning_rate(attempt)),
        Plot("plot-memory", "Memory", *curves.memory(attempt)),
        *(Plot(f"plot-own-{one.name}", one.title, *task_figures.drawn(one), wide=True) for one in own),
        *((Plot("plot-own", "The task's own", "", f"Not drawn: {undrawn}."),) if undrawn else ()),
    )
