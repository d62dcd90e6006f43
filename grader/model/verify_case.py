"""One submission that a task's author made a promise about, and what judging it really gave."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VerifyCase:
    """Promise and outcome of one submission of a task's folder.

    Attributes:
        task: name of the task.
        submission: path below the task's `submissions` folder, such as `rejected/no_sampler.py`.
        expected_verdict, verdict: promised by the folder's name, and given by the judge.
        expected_codes, codes: finding codes, sorted; promised by the file's `# expect:` lines, and found.
        seconds: how long judging took.
        message: what is different from the promise, one sentence; "" when all is as promised.
        ok: True when verdict and codes are as promised.
        cached: True when nothing was run: evidence of an earlier run was judged again.
        effects: what a change to what judges did to that run's outcome, as short sentences.
        short: ids of rubric items that could be seen and earned less than their points.
        runtime: where it was judged, besides where everything was; "" for there.
        way_on: how its author comes to see what broke the promise, one sentence; "" where nothing did or can be seen.
        skipped: why nothing was run and nothing can be said, one sentence; "" otherwise. No promise is broken then.
    """

    task: str
    submission: str
    expected_verdict: str
    verdict: str
    expected_codes: tuple[str, ...]
    codes: tuple[str, ...]
    seconds: float
    message: str
    ok: bool
    cached: bool = False
    skipped: str = ""
    short: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()
    runtime: str = ""
    way_on: str = ""

    @property
    def name(self) -> str:
        """What it is called in lists of cases."""
        return f"{self.task}/{self.place}"

    @property
    def place(self) -> str:
        """Which submission, and where it was judged if that was somewhere else."""
        return f"{self.submission} in {self.runtime}" if self.runtime else self.submission
