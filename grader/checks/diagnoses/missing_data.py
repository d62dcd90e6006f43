"""The data was not where the script looked for it.

## What happened
A data set was not found, or could not be downloaded.

## Why
The data lies in the folder that `DATA_DIR` names, for every rank the same one, and there is no network to fetch
anything from.

## Mend it
`datasets.FashionMNIST(os.environ["DATA_DIR"], train=True, transform=transform)`, without a path of your own.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(
    r"Dataset not found|Dataset not found or corrupted|[Ee]rror downloading|<urlopen error|Name or service not known"
    r"|[Tt]emporary failure in name resolution|Failed to resolve|Max retries exceeded with url|HTTP Error \d"
)
_KEY = re.compile(r"^'(DATA\w*|\w*DATA(_?SET)?S?(_?(DIR|PATH|ROOT|FOLDER|HOME))|OUTPUT\w*)'$")
_FILE = re.compile(
    r"No such file or directory: '(?P<path>[^']*(data|ubyte|MNIST|train|CIFAR|\.csv|\.npz?)[^']*)'",
    re.IGNORECASE,
)
_CHECKPOINT = re.compile(r"\.(pt|pth|ckpt|safetensors|tar|bin)$")


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of data sets, downloads and variables that name a folder."""
    what = ""
    if run.saying(_WORDS) is not None:
        what = f"found no data (“{run.words}”)"
    elif run.saying(_KEY, "KeyError") is not None:
        what = f"asked for the folder in the environment variable {run.words}, which is not set"
    elif (found := run.saying(_FILE, "FileNotFoundError")) and not _CHECKPOINT.search(found["path"]):
        what = f"opened a data file that is not there (“{run.words}”)"
    if not what:
        return None
    return run.crash(
        title="The data was not where the script looked",
        what=what,
        why=(
            "The data lies in the folder that the variable `DATA_DIR` names (results belong below `OUTPUT_DIR`), and "
            "there is no network to download it from"
        ),
        hint='Take the folder from the environment: `root = os.environ["DATA_DIR"]`, `FashionMNIST(root, train=True)`.',
    )
