"""Literal mending: who does exactly what the report says, and nothing more, should have a right script at once.

    python -m tests.mending FOLDER [--task TASK] [--edits FOLDER] [--only PATTERN] [--out FOLDER]

FOLDER holds flawed scripts: files, folders with `train.py`, or patches of a task's own submissions. Their task is
`--task`, the one below which FOLDER lies, or what its `manifest.jsonl` says (a line `{"case": …, "task": …}` each).
Each script is run and judged; then all that stands in its way or costs points is done as the report says, and it is run
and judged again:

* a finding's `fix` is made as it stands, a finding that has none is left to the edits;
* edits are recorded by hand, `EDITS/<case>.diff`: a unified diff per file of what the hints say literally, made
  against the script after its fixes. Who records one reads nothing but the report and the rules' pages.

What came of it, one line per script:

| word | the second judgement |
|---|---|
| fixes | accepted, with nothing left that costs points, by fixes alone |
| words | the same, by a recorded edit |
| flawed | not that; what is left is told |
| no words | something was found, but it has no fix and no edit is recorded |
| nothing | the first judgement found nothing to mend |

What is silent is not yet right: whether the mistake is gone, a person reads. Exit code 1 unless every script is mended.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from pathlib import Path

from grader.pipeline import Pipeline
from tests.mending.harness import mend, read_cases

EDITS = Path(__file__).parent / "edits"
MENDED = {"fixes", "words"}


def main() -> int:
    """Mend, print what came of it, and say by the exit code whether all is right."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mending", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--task", help="that the scripts are handed in for")
    parser.add_argument("--edits", type=Path, default=EDITS, help="folder of recorded edits")
    parser.add_argument("--only", default="", help="a pattern that names of scripts must match")
    parser.add_argument("--out", type=Path, help="folder for the evidence of all runs")
    args = parser.parse_args()
    outcomes: Counter[str] = Counter()
    with Pipeline("process") as pipeline:
        for case in read_cases(args.folder, args.task):
            if not re.search(args.only, case.name):
                continue
            one = mend(case, pipeline, args.edits, args.out)
            outcomes[one.outcome] += 1
            print(
                f"{one.outcome:9} {one.name:32} {' '.join(one.first)} → {' '.join(one.left) or '-'}",
                flush=True,
            )
    print(", ".join(f"{word} {number}" for word, number in outcomes.most_common()))
    return 0 if outcomes.keys() <= MENDED else 1


if __name__ == "__main__":
    sys.exit(main())
