"""The process that compares: a question on standard input, the answer on standard output, nothing else is touched."""

from __future__ import annotations

import sys
from types import ModuleType

# copydetect imports what draws its own report; we never draw one, and building a font cache takes seconds.
sys.modules.setdefault("matplotlib.pyplot", ModuleType("matplotlib.pyplot"))

from grader.web.similar.compare import compare  # noqa: E402 - only after the line above
from grader.web.similar.work import answer_out, question_in  # noqa: E402

if __name__ == "__main__":
    sys.stdout.write(answer_out(compare(question_in(sys.stdin.read()))))
