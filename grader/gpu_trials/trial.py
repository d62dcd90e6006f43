"""What is tried: scripts as learners might write them, and the ending that a run of each must have.

Pure: runs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.model.run import Ending

_SCRIPTS = Path(__file__).with_name("scripts")


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """What came of a trial's run.

    Attributes:
        ending: how it ended; reason: the record's words for it.
        gpus: UUIDs that it was given.
        outputs: what each rank printed; errors: what each complained of.
    """

    ending: Ending
    reason: str
    gpus: tuple[str, ...]
    outputs: tuple[str, ...]
    errors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """One job.

    Attributes:
        what: name for people; script: file in `scripts`, which imports nothing of ours and runs as a submission does.
        ending: how its run must end.
        most_gpus: so many of the host's GPUs it takes, one rank each; 0: none, and one rank.
        fewest_gpus: it is left out where the host has fewer.
        wall_s: its time limit, seconds.
        fault: what is wrong although it ended so, "" where nothing is.
    """

    what: str
    script: str
    ending: Ending = Ending.COMPLETED
    most_gpus: int = 1
    fewest_gpus: int = 1
    wall_s: float = 60.0
    fault: Callable[[TrialOutcome], str] = lambda _outcome: ""

    @property
    def text(self) -> str:
        """The script."""
        return (_SCRIPTS / self.script).read_text(encoding="utf-8")


def facts(outputs: Sequence[str]) -> list[dict[str, Any]]:
    """The line of JSON that each rank of `reduce.py` printed; ranks that printed none are left out."""
    found = []
    for output in outputs:
        for line in output.splitlines():
            with suppress(ValueError):
                if isinstance(told := json.loads(line), dict):
                    found.append(told)
    return found


def _as_leased(outcome: TrialOutcome) -> str:
    told = facts(outcome.outputs)
    if [one.get("uuid") for one in told] != list(outcome.gpus):
        return f"leased {', '.join(outcome.gpus) or 'none'}; ranks had {[one.get('uuid') for one in told]}"
    if wrong := [one["num_devices"] for one in told if one.get("num_devices") != len(outcome.gpus)]:
        return f"leased {len(outcome.gpus)}, and a rank sees {wrong[0]}"
    return "" if all(one.get("exact") for one in told) else "a sum over the GPUs came out wrong"


TRIALS = (
    Trial("a job without GPUs", "hidden.py", most_gpus=0, fewest_gpus=0),
    Trial("all GPUs together", "reduce.py", most_gpus=64, fault=_as_leased),
    Trial("one GPU of several", "reduce.py", fewest_gpus=2, fault=_as_leased),
    Trial("more memory than there is", "out_of_memory.py", Ending.OUT_OF_MEMORY),
    Trial("a deadlock", "deadlock.py", Ending.DEADLOCKED, most_gpus=2, fewest_gpus=2),
    # The last one: what it held must be back afterwards.
    Trial("a job without end", "no_end.py", Ending.TIMED_OUT, wall_s=20.0),
)
