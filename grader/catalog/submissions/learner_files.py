"""Read what a learner handed in: one file, a notebook or a folder, from a path that somebody typed.

Everything refused here is refused with one message that says what to do. What is wrong *inside* a script, a syntax
error for one, is not our business: that is a finding. Never reads more than the caps allow and never runs anything.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path, PurePath

from grader.errors import UsageError
from grader.model.submission import ENTRY_POINT, SourceFile, Submission
from grader.notebooks import handed_in
from grader.notebooks.handed_in import is_notebook

MAX_FILES = 64
MAX_FILE_BYTES = 1 << 20
MAX_TOTAL_BYTES = 4 << 20
_MAX_ENTRIES = 4_096
_MAX_DEPTH = 8


def read_submission(path: Path) -> Submission:
    """Read a `.py` file (it becomes `train.py`), a notebook, or a folder with `train.py` and its helper modules.

    Args:
        path: file or folder. Of a folder only `.py` files count, and a notebook where it has no `train.py`; hidden
            entries and `__pycache__` are passed over.

    Returns:
        The submission, named after the file or folder.

    Raises:
        UsageError: the path cannot be a submission; the text says why and what to do.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise UsageError(_cannot_open(path, error)) from None
    except ValueError:
        raise UsageError(f"{str(path)!r} is not a path.") from None
    if stat.S_ISDIR(mode):
        return _read_folder(path)
    _refuse_other_kinds(path, mode)
    if is_notebook(path.name):
        return _of_notebook(_read_bytes(path), path)
    return Submission(_text(path.stem), (SourceFile(ENTRY_POINT, read_text(path, path.name)),))


def read_script(path: Path) -> Submission:
    """Read one `.py` file to be looked at and not launched: it keeps its name, and may be empty. Or one notebook.

    Raises:
        UsageError: it is no file that can be read as a script; the text says why.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise UsageError(_cannot_open(path, error)) from None
    except ValueError:
        raise UsageError(f"{str(path)!r} is not a path.") from None
    _refuse_other_kinds(path, mode)
    return script_of(_read_bytes(path), path)


def script_of(content: bytes, path: Path) -> Submission:
    """The same for content that was read elsewhere, from standard input for one, under a name of its own.

    Raises:
        UsageError: the content is no text, or more than a script may have.
    """
    if is_notebook(path.name):
        return _of_notebook(content, path)
    if len(content) > MAX_FILE_BYTES:
        raise UsageError(f"{path} is larger than a script may be, {MAX_FILE_BYTES >> 20} MiB.")
    text = text_of(content, path, path.name, may_be_empty=True)
    return Submission(_text(path.stem), (SourceFile(_text(path.name), text),))


def _refuse_other_kinds(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise UsageError(
            f"{path} is {_kind(mode)}, not a file. Give the path of your train.py or of its folder."
        )
    suffix = path.suffix.lower()
    if suffix == ".patch":
        raise UsageError(
            f"{path} is a patch. Of a task's own submissions `grader tasks TASK --show {path.stem}` prints the script."
        )
    if suffix in {".zip", ".tar", ".gz", ".tgz", ".7z"}:
        raise UsageError(
            f"{path} is an archive, which only the page for handing in takes. "
            f"Here, unpack it and give the folder that holds {ENTRY_POINT}."
        )
    if suffix not in {".py", handed_in.SUFFIX}:
        raise UsageError(
            f"{path} does not end in .py or {handed_in.SUFFIX}. Give a Python script, a notebook, or a folder "
            f"that holds {ENTRY_POINT} and its helper modules."
        )


def _read_folder(folder: Path) -> Submission:
    files: list[SourceFile] = []
    if not (folder / ENTRY_POINT).exists():
        notebooks = sorted(p for p in folder.glob(f"*{handed_in.SUFFIX}") if not p.name.startswith("."))
        if len(notebooks) == 1:
            files += _of_notebook(_read_bytes(notebooks[0]), notebooks[0]).files
        else:
            raise UsageError(
                f"The folder {folder} has no {ENTRY_POINT}, the script that is started.{_there(folder, notebooks)}"
            )
    paths, others = _files_below(folder)
    total = sum(len(file.text.encode()) for file in files)
    for path in paths:
        relative = path.relative_to(folder).as_posix()
        if _text(relative) != relative:
            raise UsageError(f"The name of {_text(str(path))} is not UTF-8. Rename the file.")
        if any(file.path == relative for file in files):
            raise UsageError(
                f"Both the notebook in {folder} and a file there are {relative}. Delete one of them."
            )
        text = read_text(path, relative, may_be_empty=relative != ENTRY_POINT)
        total += len(text.encode())
        if total > MAX_TOTAL_BYTES:
            raise UsageError(
                f"The .py files in {folder} are more than {MAX_TOTAL_BYTES >> 20} MiB altogether. "
                f"Hand in a folder with {ENTRY_POINT} and the modules it imports, nothing else."
            )
        files.append(SourceFile(relative, text))
    # A folder given as "." has no name of its own.
    name = _text(folder.resolve().name) or "submission"
    left_out = tuple(_text(path.relative_to(folder).as_posix()) for path in others)
    return Submission(name, tuple(sorted(files, key=lambda f: f.path)), left_out)


def _there(folder: Path, notebooks: list[Path]) -> str:
    if notebooks:
        return f" It holds {len(notebooks)} notebooks: give the path of the one to hand in."
    scripts = sorted(p.name for p in folder.glob("*.py"))[:5]
    return f" It holds {', '.join(scripts)}: rename the script to start." if scripts else ""


def most_bytes(name: str) -> int:
    """How large a file of this name may be."""
    return handed_in.MAX_NOTEBOOK_BYTES if is_notebook(name) else MAX_FILE_BYTES


def _of_notebook(content: bytes, path: Path) -> Submission:
    """The scripts in a notebook; one alone is the one to start, whatever it is called."""
    files = handed_in.scripts_in(content, _text(path.name))
    sizes = [len(file.text.encode()) for file in files]
    if max(sizes) > MAX_FILE_BYTES or sum(sizes) > MAX_TOTAL_BYTES:
        raise UsageError(
            f"The scripts in {path} are too large; each may have {MAX_FILE_BYTES >> 20} MiB, and all of them "
            f"{MAX_TOTAL_BYTES >> 20} MiB."
        )
    if len(files) == 1:
        files = (SourceFile(ENTRY_POINT, files[0].text),)
    if len(files) > MAX_FILES or not any(file.path == ENTRY_POINT for file in files):
        found = ", ".join(file.path for file in files[:5])
        raise UsageError(
            f"{path} writes {found}, and not {ENTRY_POINT}, the script that is started. Call the script so."
        )
    return Submission(_text(path.stem), files)


def _files_below(folder: Path) -> tuple[list[Path], list[Path]]:
    """The modules, and whatever else lies there."""
    found: list[Path] = []
    others: list[Path] = []
    folders, num_entries = [(folder, 0)], 0
    while folders:
        here, depth = folders.pop()
        try:
            entries = sorted(os.scandir(here), key=lambda e: e.name)
        except OSError as error:
            raise UsageError(_cannot_open(here, error)) from None
        for entry in entries:
            num_entries += 1
            if num_entries > _MAX_ENTRIES or depth > _MAX_DEPTH:
                raise UsageError(
                    f"{folder} holds too many files or folders to be a submission. Give a folder with "
                    f"{ENTRY_POINT} and its helper modules only."
                )
            if entry.name.startswith(".") or entry.name == "__pycache__":
                continue
            path = Path(entry.path)
            if entry.is_symlink() and (entry.is_dir() or entry.name.endswith(".py")):
                raise UsageError(f"{path} is a symbolic link. Put the file itself into the folder.")
            if entry.is_dir(follow_symlinks=False):
                folders.append((path, depth + 1))
            elif entry.name.endswith(".py"):
                mode = entry.stat(follow_symlinks=False).st_mode
                if not stat.S_ISREG(mode):
                    raise UsageError(f"{path} is {_kind(mode)}, not a file. Remove it from the folder.")
                found.append(path)
            elif not is_notebook(entry.name):
                others.append(path)
        if len(found) > MAX_FILES:
            raise UsageError(
                f"{folder} holds more than {MAX_FILES} .py files. Hand in {ENTRY_POINT} and the modules it "
                "imports; a virtual environment or other projects do not belong in the folder."
            )
    return found, others


def read_text(path: Path, name: str, *, may_be_empty: bool = False) -> str:
    """The text of a file that stands for a script, called `name` in messages.

    Raises:
        UsageError: it can't be read, is larger than a script may be, or is no text.
    """
    return text_of(_read_bytes(path), path, name, may_be_empty=may_be_empty)


def text_of(content: bytes, path: PurePath, name: str, *, may_be_empty: bool) -> str:
    """The text of a script's bytes, without the mark that some editors put before it.

    Raises:
        UsageError: there is nothing in it, or it is no UTF-8 text.
    """
    if not content.strip() and not may_be_empty:
        raise UsageError(f"{path} is empty. Save your script first, then hand it in.")
    if b"\0" in content:
        raise UsageError(
            f"{path} is a binary file (NUL at byte {content.index(0):,}), not a Python script. "
            "If it is a script, save it as UTF-8 text."
        )
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"{name} is not UTF-8: byte 0x{content[error.start]:02X} in line {line} (byte {error.start:,} of the "
            "file). Save it as UTF-8 in your editor; another encoding named in a `coding:` comment is not read."
        ) from None
    return text.removeprefix("\ufeff")


def _read_bytes(path: Path) -> bytes:
    """The file's content, at most the cap; size and kind are taken from the open descriptor, not from the path."""
    try:
        # Without NONBLOCK a pipe put in the file's place would hold us for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(_cannot_open(path, error)) from None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UsageError(f"{path} is {_kind(status.st_mode)}, not a file.")
        most = most_bytes(path.name)
        content = b"" if status.st_size > most else file.read(most + 1)
    if status.st_size > most or len(content) > most:
        kind, advice = "script", "Hand in the script alone: data and weights are not part of it."
        if is_notebook(path.name):
            kind, advice = "notebook", handed_in.CLEAR
        raise UsageError(
            f"{path} is {status.st_size / (1 << 20):,.1f} MiB; a {kind} may have {most >> 20} MiB. {advice}"
        )
    return content


def _text(name: str) -> str:
    """A file's name as text, with marks for bytes that are none."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _cannot_open(path: Path, error: OSError) -> str:
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        return f"There is no file {path}. Check the path; it is taken relative to {Path.cwd()}."
    if error.errno in {errno.EACCES, errno.EPERM}:
        return f"{path} may not be read by this user. Change its permissions: `chmod u+r {path}`."
    return f"{path} cannot be read: {error.strerror}."


def _kind(mode: int) -> str:
    for test, words in (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
        (stat.S_ISLNK, "a symbolic link"),
    ):
        if test(mode):
            return words
    return "something unusual"
