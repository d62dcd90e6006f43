"""The process that compares: a question on standard input, the answer on standard output, nothing else is touched."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from types import ModuleType

# copydetect imports what draws its own report; we never draw one, and building a font cache takes seconds.
sys.modules.setdefault("matplotlib.pyplot", ModuleType("matplotlib.pyplot"))

from grader.json_reader import read_json  # noqa: E402
from grader.web.similarity.comparison import ComparisonRequest  # noqa: E402
from grader.web.similarity.fingerprints import compare  # noqa: E402 - only after the line above

if __name__ == "__main__":
    result = compare(read_json(ComparisonRequest, sys.stdin.read()))
    sys.stdout.write(json.dumps(asdict(result)))
