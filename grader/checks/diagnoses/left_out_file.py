"""A file of the folder was read that is not Python, and so was not taken along.

## What happened
`open` or a library got the path of a file that lay in the folder that was handed in, and is not there in the run.

## Why
Of a folder only Python files are taken: what a run depends on is to be read in the text that is judged.

## Mend it
Write what the file holds into a Python file, and import that:

```python
# settings.py
SETTINGS = {"lr": 0.1, "batch_size": 64}
```
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 15
_WORDS = re.compile(
    r"No such file or directory|does not exist|not found|doesn't exist|Unable to open|can't be found"
)
_DATA = re.compile(
    r"\.(pt|pth|ckpt|safetensors|bin|npz?|csv|tsv|parquet|gz|zip|tar|png|jpe?g)$", re.IGNORECASE
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of a path that ends as one of the files that were not taken does."""
    if run.saying(_WORDS) is None or run.cause is None:
        return None
    left_out = run.evidence.script.submission.left_out
    missing = next((path for path in left_out if _names(path, run.cause.message)), None)
    # What the script writes under that name is another file.
    if missing is None or run.evidence.written(missing.rpartition("/")[2]):
        return None
    return run.crash(
        title="A file was not taken along",
        what=f"opened a file that is not there (“{run.words}”)",
        why=(
            f"`{missing}` lies in the folder that was handed in, but only Python files are taken of a folder, so no "
            "run has it"
        ),
        hint=(
            'Data come from the folder `os.environ["DATA_DIR"]` alone, and weights are those that the run trains: do '
            f"without `{missing}`."
            if _DATA.search(missing)
            else f"Write what `{missing}` says into a Python file of that folder, such as `settings.py` with "
            '`SETTINGS = {"lr": 0.1}`, and take it from there: `from settings import SETTINGS`.'
        ),
        details={"left_out": missing},
    )


def _names(path: str, message: str) -> bool:
    """Whether a message speaks of that path, or of one that ends with it."""
    return re.search(rf"(?<![\w.-]){re.escape(path)}(?![\w/-]|\.\w)", message) is not None
