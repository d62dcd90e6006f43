"""Asks a task's `examine()` about what a run left, in a child of the scorer that is only there for it.

Its author's part is proved beforehand, without anything of a learner's: it has to get by with a run that left no files
and told nothing. What makes it fail after that came with the run, so that a person looks at the attempt, and nobody is
told that the task needs mending.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

from grader.evaluate.files.results import Row, read_results
from grader.evaluate.scorer.author_faults import TaskFaultError, author_call
from grader.evaluate.scorer.run_scoring import READING, SCORING, ScoringCache, ScoringRequest
from grader.model.evaluation import Answer
from grader.model.run_account import RunAccount

_NO_ANSWERS = "`examine()` did not return answers such as {'table': (0.5, 'a sentence')} but"
_GUARD = (
    "It was asked about a run that left no files and told nothing; let it look at what is there alone, as in "
    '`if "table.csv" in left:`'
)


def prove_examination(
    request: ScoringRequest, cache: ScoringCache, _mark: Callable[[bytes], object]
) -> dict[str, Any]:
    """Ask about a run that left nothing; what is wrong with the task's `examine()`, as `task_error`, or nothing."""
    try:
        _examined(cache.module(request), {}, RunAccount.silent())
    except TaskFaultError as error:
        return {"task_error": f"{error}. {_GUARD}"}
    return {}


def examine_run(
    request: ScoringRequest, cache: ScoringCache, mark: Callable[[bytes], object]
) -> dict[str, Any]:
    """What is known of a run by its files besides weights: `answers`, `unread` and `unexamined` of its evaluation."""
    module = cache.module(request)
    mark(READING)
    results, unread = read_results(Path(request.outputs), request.artifacts)
    mark(SCORING)
    answers: dict[str, Answer] = {}
    unexamined = ""
    try:
        answers = _examined(module, results, RunAccount.from_json(request.run))
    except TaskFaultError as error:
        unexamined = str(error)
    told = {name: asdict(answer) for name, answer in answers.items()}
    return {"answers": told, "unread": unread, "unexamined": unexamined}


def _examined(
    module: ModuleType, results: dict[str, list[Row] | dict[str, Any]], run: RunAccount
) -> dict[str, Answer]:
    found = author_call(lambda: module.examine(results, run), "`examine()`")
    if not isinstance(found, dict):
        raise TaskFaultError(f"{_NO_ANSWERS} {found!r:.80}")
    return {str(name): answer_of(answer) for name, answer in found.items()}


def answer_of(given: Any) -> Answer:
    """An answer as `examine()` writes it: (share, sentence), (share, sentence, file), or these and `Answer.brought`.

    Raises:
        TaskFaultError: it is none.
    """
    brought: Any = {}
    if isinstance(given, tuple) and len(given) == 4:
        *given, brought = given
        given = tuple(given)
    share, said, file = given if isinstance(given, tuple) and len(given) == 3 else (*_pair(given), "")
    numeric = isinstance(share, int | float) and not isinstance(share, bool)
    if not isinstance(said, str) or not (share is None or (numeric and 0 <= share <= 1)):
        raise TaskFaultError(f"{_NO_ANSWERS} {given!r:.80}")
    try:
        numbers = {str(name): tuple(map(float, values)) for name, values in brought.items()}
    except (AttributeError, TypeError, ValueError):
        raise TaskFaultError(f"{_NO_ANSWERS} {given!r:.80}") from None
    return Answer(None if share is None else float(share), said, str(file), numbers)


def _pair(given: Any) -> tuple[Any, Any]:
    return (given[0], given[1]) if isinstance(given, tuple) and len(given) == 2 else (None, None)
