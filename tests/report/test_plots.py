"""The plots: what they say in words, that they follow the page's colours, and that long runs stay small."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.judging.attempt import Attempt
from grader.model.evaluation import ReportedMetrics
from grader.model.task_figure import Panel, Series, Surface, TaskFigure
from grader.model.trace import Trace
from grader.report.plots.report_plots import Plot, draw_plots
from tests.report import factory
from tests.report.document import Document


def plots(attempt: Attempt) -> dict[str, Plot]:
    return {plot.name.removeprefix("plot-"): plot for plot in draw_plots(attempt)}


@pytest.fixture(scope="module")
def drawn() -> dict[str, Plot]:
    return plots(factory.rejected())


def test_every_plot_is_drawn_titled_and_told_in_words(drawn: dict[str, Plot]) -> None:
    assert list(drawn) == [
        "loss", "metric-accuracy", "coverage", "timeline", "throughput", "time", "learning-rate", "memory",
    ]  # fmt: skip
    for plot in drawn.values():
        document = Document(plot.svg)
        assert not document.unbalanced
        assert document.all("title")[0].text == plot.title
        assert document.all("desc")[0].text == plot.summary
        assert plot.legend


def test_every_colour_follows_the_page(drawn: dict[str, Plot]) -> None:
    for plot in drawn.values():
        colours = set(re.findall(r"(?:fill|stroke): ?([^;\"]+)", plot.svg))
        assert {c for c in colours if c != "none" and not c.startswith("var(--")} == set(), plot.name
        assert "font-family: inherit" in plot.svg or "font-size" in plot.svg
        assert "DejaVu" not in plot.svg


def test_ids_are_unique_over_all_plots_and_only_those_that_are_used(drawn: dict[str, Plot]) -> None:
    everything = "".join(plot.svg for plot in drawn.values())
    ids = re.findall(r'\bid="([^"]+)"', everything)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', everything)) <= set(ids)


def test_the_same_attempt_gives_the_same_drawings(drawn: dict[str, Plot]) -> None:
    assert plots(factory.rejected()) == drawn


def test_shared_samples_are_counted_and_drawn_in_their_own_colour(drawn: dict[str, Plot]) -> None:
    assert drawn["coverage"].summary.startswith(
        "In the first epoch 0 samples of 1,437 went to exactly one rank, 1,437 to several and 0 to none."
    )
    assert "var(--overlap)" in drawn["coverage"].svg
    assert "fill: var(--rank-0)" not in drawn["coverage"].svg
    clean = plots(factory.accepted())["coverage"]
    assert "1,437 samples of 1,437 went to exactly one rank, 0 to several and 0 to none" in clean.summary
    assert "The split changes between epochs." in clean.summary
    assert "fill: var(--rank-0)" in clean.svg
    assert "fill: var(--rank-1)" in clean.svg
    assert "fill: var(--overlap)" not in clean.svg


def test_a_split_that_never_changes_and_samples_that_nobody_sees_are_told() -> None:
    epoch = (tuple(range(600)), tuple(range(600, 1200)))
    told = plots(replace(factory.accepted(), coverage=(epoch, epoch, epoch)))["coverage"]
    assert "1,200 samples of 1,437 went to exactly one rank, 0 to several and 237 to none" in told.summary
    assert "The split is the same in every epoch." in told.summary


def test_time_learning_rate_memory_and_speed_are_told_with_their_numbers(drawn: dict[str, Plot]) -> None:
    assert drawn["time"].summary == (
        "This run took 6.3 s; the target is 4.3 s. Accepted examples took between 2.8 s and 3.3 s on this machine."
    )
    assert ("bad", "this run") in drawn["time"].legend
    assert "goes from 0.0075 to 0.1 on all ranks" in drawn["learning-rate"].summary
    assert "One rank alone reaches 1,600." in drawn["throughput"].summary
    assert "MiB of process memory per rank" in drawn["memory"].summary
    assert (
        "0.940, or a little better, on data that the script never saw, against a target of 0.900"
        in drawn["metric-accuracy"].summary
    )


def test_a_time_without_a_target_is_titled_by_what_stands_beside_it() -> None:
    attempt = factory.accepted()
    untimed = replace(
        attempt, grade=replace(attempt.grade, metrics={**attempt.grade.metrics, "time_target_s": None})
    )
    beside = plots(untimed)["time"]
    assert beside.svg
    assert (beside.title, "target" in beside.title) == ("Time beside accepted examples", False)
    alone = plots(factory.with_evidence(untimed, calibration=None))["time"]
    assert (alone.svg, alone.title) == ("", "Time")
    assert alone.summary.startswith("Not drawn: there is no time target here. This run took ")


def test_accuracies_on_what_was_trained_on_and_on_what_was_not_are_one_picture_with_the_gap() -> None:
    attempt = factory.accepted()
    assert attempt.evaluation is not None
    assert attempt.evaluation.reported is not None
    epochs = tuple(
        e | {"train_accuracy": e["val_accuracy"] + 0.05} for e in attempt.evaluation.reported.epochs
    )
    told_more = replace(attempt.evaluation, reported=ReportedMetrics(epochs))
    both = plots(factory.with_evidence(attempt, evaluation=told_more))
    assert "a generalisation gap of +0.050" in both["metric-accuracy"].summary
    assert ("muted", "training, as reported") in both["metric-accuracy"].legend
    assert "generalisation" not in plots(attempt)["metric-accuracy"].summary


def test_ranks_with_different_learning_rates_get_a_line_each() -> None:
    attempt = factory.accepted()
    assert attempt.trace is not None
    first, second = attempt.trace.ranks
    slower = tuple(replace(step, lr=(0.01,)) for step in second.steps)
    told = plots(factory.with_evidence(attempt, trace=Trace((first, replace(second, steps=slower)))))[
        "learning-rate"
    ]
    assert "the ranks differ" in told.summary
    assert [label for _, label in told.legend] == ["rank 0", "rank 1"]


def test_waiting_for_data_is_told_as_a_share() -> None:
    attempt = factory.accepted()
    assert attempt.trace is not None
    hungry = tuple(
        replace(
            rank,
            steps=tuple(replace(s, data_s=0.03, compute_s=0.01, t=0.3 + 0.04 * s.n) for s in rank.steps),
            others=(),
        )
        for rank in attempt.trace.ranks
    )
    drawn = plots(factory.with_evidence(attempt, trace=Trace(hungry)))
    assert "75% went into waiting for data" in drawn["timeline"].summary


def test_long_runs_stay_small() -> None:
    long = factory.with_evidence(factory.accepted(), trace=factory.trace(num_steps=6000, seconds=300.0))
    big = tuple(tuple(tuple(range(rank, 60_000, 8)) for rank in range(8)) for _ in range(30))
    for plot in plots(replace(long, coverage=big)).values():
        assert len(plot.svg) < 60_000, plot.name


def test_where_there_is_nothing_to_draw_a_sentence_says_why() -> None:
    for attempt in (factory.crashed(), factory.does_not_parse()):
        for plot in plots(attempt).values():
            assert plot.svg == ""
            assert re.fullmatch(r"Not drawn: .+\.", plot.summary)


_FORGED = st.sampled_from(
    [0.0, -1.0, 1e-320, 0.5, 2.0, 1e9, 1e308, float("nan"), float("inf"), float("-inf")]
)


@settings(max_examples=8, deadline=None)
@given(st.lists(st.tuples(_FORGED, _FORGED, _FORGED, _FORGED, _FORGED), min_size=1, max_size=4))
def test_a_forged_trace_cannot_break_the_report(rows: list[tuple[float, ...]]) -> None:
    attempt = factory.accepted()
    assert attempt.trace is not None
    (rank, _) = attempt.trace.ranks
    steps = tuple(
        replace(
            rank.steps[0],
            t=t,
            data_s=data,
            compute_s=compute,
            loss=loss,
            lr=(lr,),
            optimizer_s=lr,
            rss_bytes=10**30,
        )
        for t, data, compute, loss, lr in rows
    )
    forged = replace(rank, steps=steps, loaders=(replace(rank.loaders[0], root_size=10**18),))
    odd = factory.with_evidence(attempt, trace=Trace((forged,)), calibration=None)
    odd = replace(odd, coverage=(((0, 1, -5, 10**15),), ((),)))
    for plot in plots(odd).values():
        assert plot.svg or plot.summary.startswith("Not drawn")
        assert "nan" not in plot.svg.split("</desc>")[-1]


def test_one_rank_and_one_step_are_enough_for_a_plot() -> None:
    attempt = factory.accepted()
    assert attempt.trace is not None
    rank = replace(attempt.trace.ranks[0], steps=attempt.trace.ranks[0].steps[:1])
    short = replace(
        factory.with_evidence(attempt, trace=Trace((rank,)), calibration=None), coverage=(((0, 1),),)
    )
    assert all(plot.svg for plot in plots(short).values())


HILL = tuple(tuple(float(x * x + y * y) for x in range(-3, 4)) for y in range(-3, 4))
AXIS = tuple(float(step) for step in range(-3, 4))


def with_figure(*panels: Panel) -> Attempt:
    figure = TaskFigure("valley", "A valley of <its> own", "It is 3 deep.", panels)
    known = replace(factory.evaluation(), figures=(figure,))
    return factory.with_evidence(factory.accepted(), evaluation=known)


def test_a_tasks_own_figure_is_drawn_in_the_pages_colours_and_told_in_its_words() -> None:
    dots = Series("here", (0.0,), (0.0,), dots=True, colour=1)
    attempt = with_figure(
        Panel("Hill", "x", "y", (dots,), Surface(AXIS, AXIS, HILL, (1.0, 4.0, 99.0))),
        Panel("Line", "x", "y", (Series("up", (0.0, 1.0, 2.0), (1.0, None, 3.0)), dots), from_zero=True),
    )
    every = plots(attempt)
    plot = every["own-valley"]
    assert (plot.title, plot.summary, plot.wide) == ("A valley of <its> own", "It is 3 deep.", True)
    assert plot.legend == (("rank-1", "here"), ("rank-0", "up")), "one entry for what both panels show"
    assert re.findall(r">(4|99)<", plot.svg) == ["4"], (
        "lines say how high they lie; none is drawn above the hill"
    )
    colours = set(re.findall(r"(?:fill|stroke): ?([^;\"]+)", plot.svg))
    assert {c for c in colours if c != "none" and not c.startswith("var(--")} == set()
    everything = "".join(one.svg for one in every.values())
    assert len(ids := re.findall(r'\bid="([^"]+)"', everything)) == len(set(ids))
    assert not Document(plot.svg).unbalanced


@pytest.mark.parametrize("height", [None, 5.0])
def test_a_surface_without_lines_is_an_empty_plane(height: float | None) -> None:
    flat = Surface((0.0, 1.0), (0.0, 1.0), ((height, height), (height, height)), (1.0,))
    assert plots(with_figure(Panel("Flat", "x", "y", surface=flat)))["own-valley"].svg


def test_why_a_tasks_own_figure_is_missing_is_told() -> None:
    known = replace(factory.evaluation(), undrawn="`figures()` was given up: scoring took too long")
    plot = plots(factory.with_evidence(factory.accepted(), evaluation=known))["own"]
    assert plot.svg == ""
    assert plot.summary == "Not drawn: `figures()` was given up: scoring took too long."
