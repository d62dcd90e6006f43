"""Whether a text holds what a task asks for, item by item, before anything runs: what is missing beside what is wrong.

A rule that finds nothing says nothing of a script that never began. Here each item of the rubric is told as found,
as missing with what to write, or as a matter that only a run can tell. Where a text may have done it in a way that
nobody can follow, a run has to tell: a missing thing is never a guess.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import PurePath

from grader.catalog.submissions.learner_files import read_submission
from grader.checks.rubric_step import RubricStep, Sight
from grader.checks.source.ingredients import Ingredient, ingredient
from grader.checks.source.script import Script
from grader.errors import UsageError
from grader.model.finding import Finding, Severity, family_of
from grader.model.submission import Submission
from grader.model.syntax_tree import parse_text
from grader.model.task import RubricItem, Task


def steps_for(
    script: Script, submission: Submission, task: Task, findings: tuple[Finding, ...]
) -> tuple[RubricStep, ...]:
    """Each item of a task as far as a text goes.

    Args:
        script, submission: the text, parsed and as it was handed in.
        task: with the items that can show where it will run.
        findings: what is wrong with the text, each as grave as what it comes to in this task.
    """
    untouched = _code_of(submission) == _skeleton_code(task)
    return tuple(_step(script, findings, task, item, untouched) for item in task.rubric)


def _step(
    script: Script, findings: tuple[Finding, ...], task: Task, item: RubricItem, untouched: bool
) -> RubricStep:
    if item.metric:
        return RubricStep(item, Sight.RUN)
    if item.answer:
        return _answer(script, task, item, untouched)
    found = {code: ingredient(script, code) for code in item.requires}
    told = {code: one for code, one in found.items() if one is not None}
    missing = tuple((code, one.says) for code, one in told.items() if not one.seen)
    if missing:
        return RubricStep(item, Sight.NOT_FOUND, missing)
    wrong = tuple(_wrong(findings, item))
    if wrong:
        return RubricStep(item, Sight.NOT_RIGHT, wrong)
    doubted = any(finding.codes.intersection(item.requires) for finding in findings)
    sight = Sight.RUN if doubted else _seen_or_run(item, told)
    return RubricStep(item, sight, tuple((code, one.says) for code, one in told.items()))


def _seen_or_run(item: RubricItem, told: dict[str, Ingredient]) -> Sight:
    """An item is seen where something of each family of rules that it asks is: the exchange alone is no metric."""
    asked, seen = {family_of(code) for code in item.requires}, {family_of(code) for code in told}
    return Sight.SEEN if asked == seen else Sight.RUN


def _wrong(findings: tuple[Finding, ...], item: RubricItem) -> Iterator[tuple[str, str]]:
    for finding in findings:
        counts = finding.severity in (Severity.ERROR, Severity.WARNING)
        if counts and finding.codes.intersection(item.requires):
            yield finding.code, f"{finding.message} {finding.hint}".strip()


def _answer(script: Script, task: Task, item: RubricItem, untouched: bool) -> RubricStep:
    """Answers are read from files that the script leaves: a name that is nowhere in the text is not written."""
    if untouched:
        text = "This is the skeleton, and nothing in it has been changed: what is asked for here is yet to be written."
        return RubricStep(item, Sight.NOT_FOUND, (("", text),))
    written = [constant for tree in script.trees for constant in tree.constants]
    lacking = [a.name for a in task.artifacts if not any(PurePath(a.name).stem in text for text in written)]
    if not lacking or script.may_hide_setup:
        return RubricStep(item, Sight.RUN)
    names = " and ".join(f"`{name}`" for name in lacking)
    sight = Sight.NOT_FOUND if len(lacking) == len(task.artifacts) else Sight.RUN
    return RubricStep(item, sight, (("", f"No line names {names}, which the statement asks for."),))


def _skeleton_code(task: Task) -> object:
    try:
        return _code_of(read_submission(task.skeleton))
    except UsageError:
        return None  # a task without one has nothing to be left unchanged


def _code_of(submission: Submission) -> list[tuple[str, str]]:
    """Its files as Python reads them: comments, empty lines and documentation make no other script."""
    found = []
    for file in submission.files:
        try:
            tree = parse_text(file.text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return [(file.path, file.text)]
        body = (n for n in tree.body if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)))
        found.append((file.path, "\n".join(ast.unparse(node) for node in body)))
    # A single script is started as the entry point, whatever it is called.
    return [("", code) for _, code in found] if len(found) == 1 else found
