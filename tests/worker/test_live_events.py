"""What is told of a run while it goes on: bounded whatever is printed, its end included, nothing of a calibration."""

from __future__ import annotations

from grader.run.progress_events import read_progress
from grader.run.runtime import PrintedText, Progress
from grader.worker.live_events import LOG_BYTES, LiveEvents


def texts(live: LiveEvents) -> list[str]:
    return [data["text"] for kind, data in live.take() if kind == "log"]


def test_a_flood_is_cut_and_its_end_is_still_seen() -> None:
    live = LiveEvents()
    live.set_time_limit(100.0)
    for second in range(100):
        flood = tuple(PrintedText(rank, "stdout", f"second {second}\n" + "x" * 4000) for rank in range(4))
        live.on_progress(Progress("run", float(second), printed=flood))
    told = texts(live)
    assert sum(len(text) for text in told) <= LOG_BYTES + 100 * len(told)
    assert any(f"second {second}" in text for text in told for second in range(90, 100))
    assert any(text.startswith("[…]\n") for text in told), "nobody is told that something is missing"


def test_a_calibration_shows_nothing_of_the_tasks_own_submissions() -> None:
    live = LiveEvents()
    live.on_progress(Progress("calibrate 1/2 reference", 0.0))
    live.on_progress(
        Progress("run", 1.0, (5, 5), epoch=1, printed=(PrintedText(0, "stdout", "the solution's words\n"),))
    )
    live.on_progress(Progress("evaluate", 0.0))
    assert [kind for kind, _data in live.take()] == ["phase"]
    live.on_progress(Progress("prepare", 0.0))
    live.on_progress(
        Progress("run", 0.5, (1, 1), printed=(PrintedText(0, "stdout", "the learner's words\n"),))
    )
    assert texts(live) == ["the learner's words\n"]
    assert live.phase == "run"


def test_what_comes_from_beside_the_learners_code_is_checked() -> None:
    sign = read_progress(
        {
            "elapsed_s": 1.5,
            "steps": [3, 4],
            "line": "hello",
            "epoch": "many",
            "loss": float("nan"),
            "said": [
                [0, "stdout", "x" * 100_000],
                ["0", "stdout", "y"],
                [1, "socket", "z"],
                "nonsense",
                None,
            ],
        }
    )
    assert (sign.epoch, sign.loss) == (None, None)
    assert [(one.rank, one.stream) for one in sign.printed] == [(0, "stdout")]
    assert len(sign.printed[0].text) < 10_000
