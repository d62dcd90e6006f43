"""A task's own submission that is a near-copy: a diff against an accepted script, which shows the flaw and little else.

    # expect: DATA002
    --- accepted/distributed_sampler.py
    +++ rejected/no_set_epoch.py
    @@ -130,7 +130,6 @@

Names are paths below `submissions/`. What a diff is, and whether one applies, is `unified_diff`'s to say; here it is
read from its file, applied to its base, and written anew. A base is whole: no patch stands on a patch.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from grader.catalog.submissions.earlier_versions import earlier_versions
from grader.catalog.submissions.learner_files import read_submission, read_text
from grader.catalog.submissions.unified_diff import (
    Diff,
    DiffError,
    MismatchError,
    apply,
    apply_anywhere,
    read_diff,
    split,
    write_diff,
)
from grader.errors import UsageError
from grader.model.submission import ENTRY_POINT, SourceFile, Submission

SUFFIX = ".patch"


@dataclass(frozen=True, slots=True)
class Patched:
    """A patch, applied.

    Attributes:
        submission: the whole of it, as if it had been written out.
        base: the script that it changes.
        comments: lines above the diff; they are in no script.
        commit: whose version of the base it was applied to; "" for the base as it is.
    """

    submission: Submission
    base: Path
    comments: tuple[str, ...]
    commit: str = ""


def read_patch(path: Path, folder: Path) -> Patched:
    """Read a patch and apply it to the letter; `folder` is `submissions/`, below which it and its base lie.

    Raises:
        UsageError: the file can't be read.
        DiffError: it is no diff of a whole accepted script, or does not apply to it.
    """
    return _patched(path, folder, apply)


def read_outdated_patch(path: Path, folder: Path) -> Patched:
    """The same, of a patch whose base has changed: applied to the newest version of it that git keeps and that fits.

    Raises:
        UsageError, DiffError: as `read_patch` does; no version fits.
    """
    try:
        return read_patch(path, folder)
    except MismatchError as error:
        base = folder / read_diff(read_text(path, path.name)).old_name
        for commit, text in earlier_versions(base):
            with suppress(MismatchError):
                return replace(_patched(path, folder, _applied_to(text)), commit=commit)
        said = f"{error}. No version of it that git keeps fits the patch either: write the script anew"
        raise MismatchError(error.line, said) from None


def write_patch(path: Path, folder: Path) -> Path:
    """Replace a script by its patch against the accepted script that it differs least from.

    A patch whose base has changed is applied where its lines are now, and written anew against the same base. Comments
    above a patch that was there stay.

    Returns:
        Path of the patch.

    Raises:
        UsageError: the submission must stay whole; the text says why.
        DiffError: the patch can't be read, or its base no longer has the lines that it changes.
    """
    comments: tuple[str, ...] = ()
    if path.suffix == SUFFIX:
        patched = _patched(path, folder, apply_anywhere)
        comments, submission, bases = patched.comments, patched.submission, [patched.base]
    elif path.is_dir():
        raise UsageError(f"{path} has several files; a folder stays whole.")
    elif standing := _standing_on(path, folder):
        raise UsageError(f"{path} stays whole: it is the base of {', '.join(standing)}.")
    else:
        submission = read_submission(path)
        bases = sorted(p for p in (folder / "accepted").glob("*.py") if p != path)
    new, name = _script(submission), _name(path, folder)
    diffs = [write_diff(_script(read_submission(base)), new, _name(base, folder), name) for base in bases]
    diff = min(filter(None, diffs), key=lambda d: len(split(d)), default=new)
    if len(split(diff)) >= len(split(new)):
        raise UsageError(
            f"{path} stays whole: no accepted script is so like it that its patch would be shorter."
        )
    target = path.with_suffix(SUFFIX)
    if path != target and target.exists():
        with suppress(DiffError):
            comments = read_diff(read_text(target, target.name)).comments
    target.write_text("".join(f"{line}\n" for line in comments) + diff, encoding="utf-8", newline="")
    if path != target:
        path.unlink()
    return target


def _standing_on(path: Path, folder: Path) -> list[str]:
    """Names of the patches whose base a script is."""
    line = f"--- {_name(path, folder)}"
    patches = sorted(folder.glob(f"*/*{SUFFIX}"))
    return [p.stem for p in patches if line in read_text(p, p.name).splitlines()]


def _applied_to(old: str) -> Callable[[Diff, str], str]:
    """Applies a diff to this text, whatever its base says now."""
    return lambda diff, _now: apply(diff, old)


def _patched(path: Path, folder: Path, applied: Callable[[Diff, str], str]) -> Patched:
    diff = read_diff(read_text(path, path.name))
    base = folder / diff.old_name
    parts = PurePosixPath(diff.old_name).parts
    if len(parts) != 2 or parts[0] != "accepted" or base.suffix != ".py":
        said = f"`{diff.old_name}` is no base: a patch changes a whole script, such as accepted/train.py"
        raise DiffError(diff.line, said)
    if not base.is_file():
        raise DiffError(diff.line, f"there is no script submissions/{diff.old_name} to change")
    if diff.new_name != (name := _name(path, folder)):
        raise DiffError(diff.line + 1, f"`{diff.new_name}` is another submission; this one is `+++ {name}`")
    old = _script(read_submission(base))
    new = applied(diff, old)
    if new == old:
        raise DiffError(diff.line, f"changes nothing of {diff.old_name}")
    return Patched(Submission(path.stem, (SourceFile(ENTRY_POINT, new),)), base, diff.comments)


def _name(path: Path, folder: Path) -> str:
    """A script's name in a diff, also of one that is kept as a patch."""
    return path.relative_to(folder).with_suffix(".py").as_posix()


def _script(submission: Submission) -> str:
    return submission.text(ENTRY_POINT) or ""
