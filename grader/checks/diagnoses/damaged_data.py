"""A data file was read that is not whole.

## What happened
An archive or data file was incomplete when a rank read it.

## Why
This is what a file looks like while another rank downloads or unpacks it to the same place.

## Mend it
Let one rank per machine download and unpack while the others wait: `if local_rank == 0: download()`,
`dist.barrier()`, then read on all ranks.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(
    r"File not found or corrupted"
    r"|[Nn]ot a gzipped file"
    r"|Compressed file ended before"
    r"|BadZipFile"
    r"|not a zip file"
    r"|CRC check failed"
    r"|unexpected end of data"
    r"|truncated header"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    return run.crash(
        title="A data file was read that is not whole",
        what=f"read a data file that is not whole (“{run.words}”)",
        why=("This is what a file looks like while another rank downloads or unpacks it to the same place"),
        hint=(
            "Let one rank per machine download and unpack while the others wait: `if local_rank"
            " == 0: download()`, `dist.barrier()`, then read on all ranks."
        ),
    )
