"""Ask a process of its own to compare a class, within limits, one at a time; the last answers are kept.

In the server itself it would hold up everybody's pages for seconds, and stay in memory afterwards.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
from collections import OrderedDict
from dataclasses import asdict

from grader.errors import InfraError, UsageError
from grader.json_reader import read_json
from grader.translation import gettext
from grader.web.similarity.comparison import ComparisonRequest, SimilarityResult

LIMIT_S = 120.0
MAX_SUBMISSIONS = 500
MAX_EARLIER = 500
"""Submissions of other courses that a class is compared with."""
_KEPT = 8

_turn = threading.Lock()
_answers: OrderedDict[str, SimilarityResult] = OrderedDict()


def compare_in_process(request: ComparisonRequest) -> SimilarityResult:
    """The answer, from memory where the very same was asked lately.

    Raises:
        UsageError: too much at once, or it took longer than `LIMIT_S`.
        InfraError: the comparing process failed.
    """
    if sum(not one.earlier for one in request.submissions) > MAX_SUBMISSIONS:
        told = gettext("at most {most} submissions are compared at once")
        raise UsageError(told.format(most=MAX_SUBMISSIONS))
    request_json = json.dumps(asdict(request))
    key = hashlib.sha256(request_json.encode("utf-8", "surrogatepass")).hexdigest()
    with _turn:
        if key in _answers:
            _answers.move_to_end(key)
            return _answers[key]
        _answers[key] = _run_comparison(request_json)
        while len(_answers) > _KEPT:
            _answers.popitem(last=False)
        return _answers[key]


def _run_comparison(request_json: str) -> SimilarityResult:
    try:
        done = subprocess.run(
            [sys.executable, "-m", "grader.web.similarity"],
            input=request_json,
            capture_output=True,
            encoding="utf-8",
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        told = gettext("comparing took longer than {seconds} seconds and was stopped")
        raise UsageError(told.format(seconds=f"{LIMIT_S:.0f}")) from None
    except OSError as error:
        told = gettext("the comparing process did not start: {reason}")
        raise InfraError(told.format(reason=error.strerror)) from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise InfraError(gettext("comparing failed: {reason}").format(reason=last))
    return read_json(SimilarityResult, done.stdout)
