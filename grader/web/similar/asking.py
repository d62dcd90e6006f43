"""Ask a process of its own to compare a class, within limits, one at a time; the last answers are kept.

In the server itself it would hold up everybody's pages for seconds, and stay in memory afterwards.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
from collections import OrderedDict

from grader.errors import InfraError, UsageError
from grader.web.similar.work import Answer, Question, answer_in, question_out

LIMIT_S = 120.0
MAX_WORKS = 500
_KEPT = 8

_turn = threading.Lock()
_answers: OrderedDict[str, Answer] = OrderedDict()


def ask(question: Question) -> Answer:
    """The answer, from memory where the very same was asked lately.

    Raises:
        UsageError: too much at once, or it took longer than `LIMIT_S`.
        InfraError: the comparing process failed.
    """
    if len(question.works) > MAX_WORKS:
        raise UsageError(f"at most {MAX_WORKS} submissions are compared at once")
    asked = question_out(question)
    key = hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()
    with _turn:
        if key in _answers:
            _answers.move_to_end(key)
            return _answers[key]
        _answers[key] = _compared(asked)
        while len(_answers) > _KEPT:
            _answers.popitem(last=False)
        return _answers[key]


def _compared(asked: str) -> Answer:
    try:
        done = subprocess.run(
            [sys.executable, "-m", "grader.web.similar"],
            input=asked,
            capture_output=True,
            encoding="utf-8",
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"comparing took longer than {LIMIT_S:.0f} seconds and was stopped") from None
    except OSError as error:
        raise InfraError(f"the comparing process did not start: {error.strerror}") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise InfraError(f"comparing failed: {last}")
    return answer_in(done.stdout)
