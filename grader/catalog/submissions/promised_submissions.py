"""The task's own submissions: what each promises to earn, read from its folder's name and its comments.

The first lines may hold `# expect: DATA002 IO001` (codes of all findings) and `# points: 45` or `# points: 40-50`;
`# <- DATA002` stands on the line that a finding must point at. Of a patch the whole script counts, and the comments
above its diff.
Says what is promised; whether the promise is kept is `verify`'s to find out.
"""

from __future__ import annotations

import re
from pathlib import Path

from grader.catalog.rule_codes import known_codes
from grader.catalog.submissions.learner_files import read_submission
from grader.catalog.submissions.patches import SUFFIX, read_patch
from grader.catalog.submissions.unified_diff import DiffError, MismatchError
from grader.errors import TaskError, UsageError
from grader.model.finding import Location
from grader.model.grade import Verdict
from grader.model.promise import Marker, PromisedSubmission
from grader.model.submission import ENTRY_POINT, Submission
from grader.model.task import Task

_EXPECT = re.compile(r"#\s*expect:\s*(.*)")
_POINTS = re.compile(r"#\s*points:\s*(.*)")
_RANGE = re.compile(r"(\d+(?:\.\d+)?)(?:\s*-\s*(\d+(?:\.\d+)?))?")
_MARKER = re.compile(r"#\s*<-\s*([A-Z]+\d{3}(?:[ ,]+[A-Z]+\d{3})*)")
_CODE = re.compile(r"(?<![A-Z])[A-Z]++\d{3}")


def submissions_of(task: Task) -> tuple[PromisedSubmission, ...]:
    """All submissions of a task with what they promise, sorted by name.

    Raises:
        TaskError: a folder that is no verdict, an unreadable submission, or a header that cannot be understood; all
            of them in one message.
    """
    found, problems = promises_in(task.folder / "submissions")
    if problems:
        raise TaskError(
            f"The submissions of task {task.name} need mending:\n" + "\n".join(f"  {p}" for p in problems)
        )
    return found


def promises_in(folder: Path) -> tuple[tuple[PromisedSubmission, ...], list[str]]:
    """Promises below a `submissions` folder, and one line per problem met."""
    found: list[PromisedSubmission] = []
    problems: list[str] = []
    verdicts, known = [str(v) for v in Verdict if v is not Verdict.JUDGE_ERROR], known_codes()
    for verdict in sorted(folder.iterdir()) if folder.is_dir() else ():
        if verdict.name.startswith(".") or verdict.name == "__pycache__":
            continue
        if verdict.name not in verdicts or not verdict.is_dir():
            problems.append(
                f"submissions/{verdict.name}: not a verdict; use a folder named {', '.join(verdicts)}."
            )
            continue
        for path in sorted(verdict.iterdir()):
            if path.name.startswith(".") or path.name == "__pycache__":
                continue
            promise, wrong = _read_promise(path, verdict.name, known)
            found += [promise] if promise is not None else []
            problems += [f"submissions/{verdict.name}/{path.name}{text}" for text in wrong]
    names = [p.name for p in found]
    problems += [
        f"submissions/{n}: stands for two submissions; rename one."
        for n in sorted(set(names))
        if names.count(n) > 1
    ]
    return tuple(sorted(found, key=lambda p: p.name)), problems


def _read_promise(
    path: Path, verdict: str, known: frozenset[str]
) -> tuple[PromisedSubmission | None, list[str]]:
    """What a submission promises, None where it cannot be read, and what is wrong with it; `known`: codes of rules."""
    name = f"{verdict}/{path.stem}"
    base: Path | None = None
    comments: tuple[str, ...] = ()
    try:
        if path.suffix == SUFFIX:
            patched = read_patch(path, path.parent.parent)
            submission, base, comments = patched.submission, patched.base, patched.comments
        else:
            submission = read_submission(path)
    except MismatchError as error:
        written_anew = f"`grader tasks {path.parent.parent.parent.name} --as-patch {name}`"
        way_on = f"{written_anew} writes the patch anew, or says how to get the whole script back"
        return None, [f":{error.line}: {error}. The script that it changes is another now: {way_on}."]
    except DiffError as error:
        return None, [f":{error.line}: {error}."]
    except UsageError as error:
        return None, [f": {error}"]
    header = [*comments, *_header(submission)]
    codes, unknown = _expected(header, known)
    points, unread = _points(header)
    wrong = [f": {text}" for text in unread]
    markers = tuple(_markers(submission))
    unknown += [m.code for m in markers if m.code not in known]
    wrong += [f": there is no rule {code!r}; `grader rules` lists them." for code in sorted(set(unknown))]
    stray = sorted({m.code for m in markers} - set(codes) - set(unknown))
    if stray:
        wrong.append(
            f": marks a line with {', '.join(stray)}; "
            f"write `# expect: {' '.join(sorted({*codes, *stray}))}` into its first lines."
        )
    return PromisedSubmission(path, name, verdict, codes, markers, submission, points, base), wrong


def _expected(header: list[str], known: frozenset[str]) -> tuple[tuple[str, ...], list[str]]:
    """Codes of the `# expect:` lines among the comments before the first statement, and words that are no codes."""
    codes: set[str] = set()
    unknown: list[str] = []
    for line in header:
        match = _EXPECT.match(line)
        for word in re.split(r"[\s,]+", match[1].strip()) if match else ():
            if word in known:
                codes.add(word)
            elif word:
                unknown.append(word)
    return tuple(sorted(codes)), unknown


def _points(header: list[str]) -> tuple[tuple[float, float] | None, list[str]]:
    """Points of the `# points:` line, `45` or `40-50`, and what is wrong with such lines."""
    texts = [match[1].strip() for line in header if (match := _POINTS.match(line))]
    if not texts:
        return None, []
    match = _RANGE.fullmatch(texts[0])
    if len(texts) > 1 or match is None:
        return None, [
            f"`# points: {', '.join(texts)}` is no promise; write one number or range, `# points: 40-50`."
        ]
    low, high = float(match[1]), float(match[2] or match[1])
    if not low <= high <= 100:
        return None, [
            f"`# points: {texts[0]}` can't be kept; points lie between 0 and 100, the smaller one first."
        ]
    return (low, high), []


def _header(submission: Submission) -> list[str]:
    """The comment lines before the first statement."""
    lines: list[str] = []
    for line in (submission.text(ENTRY_POINT) or "").splitlines():
        if line.strip() and not line.startswith("#"):
            break
        lines.append(line)
    return lines


def _markers(submission: Submission) -> list[Marker]:
    return [
        Marker(code, Location(file.path, number))
        for file in submission.files
        for number, line in enumerate(file.text.split("\n"), start=1)
        for match in _MARKER.finditer(line)
        for code in _CODE.findall(match[1])
    ]
