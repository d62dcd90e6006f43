"""A request's upload as a submission: files, a notebook, a ZIP file or pasted text from a form, or JSON of a program.

The size of the whole was capped while it came (`security.body_limits`); here every file is held against the caps that
hold for the command line, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request

from grader.catalog.submissions.learner_files import (
    MAX_FILE_BYTES,
    MAX_FILES,
    MAX_TOTAL_BYTES,
    most_bytes,
    text_of,
)
from grader.errors import UsageError
from grader.model.submission import ENTRY_POINT, SourceFile, Submission
from grader.notebooks.handed_in import SUFFIX, is_notebook
from grader.notebooks.handed_in import scripts_in as scripts_in_notebook
from grader.report.safe_text import one_line
from grader.translation import gettext
from grader.web.security import csrf
from grader.web.upload import file_names
from grader.web.upload.archive import scripts_in
from grader.web.upload.refusals import UploadRefusedError

_ARCHIVES = (".tar", ".gz", ".tgz", ".7z", ".rar", ".bz2", ".xz")


async def read_upload(request: Request) -> Submission:
    """The submission in a form: `files` (scripts, a notebook, or one ZIP file) or `text` (pasted), and its `name`.

    Raises:
        UploadRefusedError: it is none; the text says what to do.
    """
    form = await csrf.form_of(request)
    # An empty file picker sends one part without a name.
    parts = [part for part in form.getlist("files") if isinstance(part, UploadFile) and part.filename]
    pasted, called = form.get("text"), form.get("name")
    name = called if isinstance(called, str) else ""
    if parts:
        # A notebook is read by a process of its own, which takes its time.
        return await run_in_threadpool(_of_parts, parts, name)
    if isinstance(pasted, str) and pasted.strip():
        # Browsers send lines of a text area with \r\n, whatever was pasted.
        text = pasted.replace("\r\n", "\n")
        return submission_of(name or "pasted", [(ENTRY_POINT, text.encode("utf-8", "surrogatepass"))])
    raise _nothing()


def submission_of(name: str, contents: Iterable[tuple[str, bytes]]) -> Submission:
    """A submission of these files, (path, content) each.

    A single script becomes `train.py` whatever it is called; a folder that holds everything else is left out of paths.

    Raises:
        UploadRefusedError: they are none; the text says what to do.
    """
    found: dict[str, str] = {}
    total = 0
    for sent, content in _scripts(contents):
        path = file_names.checked_path(sent)
        _of_known_kind(path)
        if len(content) > MAX_FILE_BYTES:
            raise UploadRefusedError(
                gettext(
                    "{name} is larger than a script may be, {mib} MiB. Data and weights are "
                    "not part of a submission."
                ).format(name=one_line(path), mib=MAX_FILE_BYTES >> 20)
            )
        total += len(content)
        if total > MAX_TOTAL_BYTES or len(found) >= MAX_FILES:
            raise UploadRefusedError(
                gettext(
                    "A submission has {most} files and {mib} MiB at most. Hand in train.py and "
                    "the modules it imports, nothing else."
                ).format(most=MAX_FILES, mib=MAX_TOTAL_BYTES >> 20)
            )
        if any(path.casefold() == other.casefold() for other in found):
            raise UploadRefusedError(
                gettext("{name} was sent twice. Keep one of them.").format(name=one_line(path))
            )
        try:
            found[path] = text_of(content, PurePosixPath(one_line(path)), one_line(path), may_be_empty=True)
        except UsageError as error:
            raise UploadRefusedError(str(error)) from None
    return Submission(file_names.submission_name(name), _arranged(found))


def _scripts(contents: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """The same with the scripts that a notebook holds in its place, below the notebook's folder."""
    for sent, content in contents:
        if not is_notebook(sent):
            yield sent, content
            continue
        path = PurePosixPath(file_names.checked_path(sent))
        try:
            files = scripts_in_notebook(content, one_line(path.name))
        except UsageError as error:
            raise UploadRefusedError(str(error)) from None
        for file in files:
            yield str(path.parent / file.path), file.text.encode()


def _of_parts(parts: list[UploadFile], name: str) -> Submission:
    first = (parts[0].filename or "").rpartition("/")[2].rpartition("\\")[2]
    if len(parts) == 1 and first.lower().endswith(".zip"):
        return submission_of(name or first[: -len(".zip")], scripts_in(parts[0].file))
    sent = []
    for part in parts:
        path = part.filename or ""
        if path.lower().endswith(".zip"):
            raise UploadRefusedError(gettext("Upload one ZIP file, or scripts; not both at once."))
        # Looked at before it is read: what is too large is never in memory.
        if file_names.is_ignored(file_names.checked_path(path)):
            continue
        _of_known_kind(path)
        sent.append((path, part.file.read(most_bytes(path) + 1)))
    default = first.removesuffix(".py").removesuffix(SUFFIX) if len(parts) == 1 else "submission"
    return submission_of(name or default, sent)


def _of_known_kind(path: str) -> None:
    shown, lower = one_line(path[:120]), path.lower()
    if lower.endswith(_ARCHIVES):
        raise UploadRefusedError(
            gettext("{name} is an archive that is not read here. Upload a ZIP file, or the scripts.").format(
                name=shown
            )
        )
    if not lower.endswith((".py", SUFFIX)):
        raise UploadRefusedError(
            gettext(
                "{name} does not end in .py or {suffix}. Upload train.py and the modules it imports; data and "
                "weights are not part of a submission."
            ).format(name=shown, suffix=SUFFIX)
        )


def _arranged(found: dict[str, str]) -> tuple[SourceFile, ...]:
    if not found:
        raise _nothing()
    if len(found) == 1:
        found = {ENTRY_POINT: next(iter(found.values()))}
    top = {path.split("/")[0] for path in found}
    if len(top) == 1 and ENTRY_POINT not in found:
        found = {path.split("/", 1)[1]: text for path, text in found.items()}
    for path in found:
        folders = path.split("/")[:-1]
        if any("/".join(folders[:depth]) in found for depth in range(1, len(folders) + 1)):
            raise UploadRefusedError(
                gettext("{name} lies in a folder that is called like a script. Rename it.").format(
                    name=one_line(path)
                )
            )
    if ENTRY_POINT not in found:
        shown = ", ".join(one_line(path) for path in sorted(found)[:5])
        raise UploadRefusedError(
            gettext(
                "There is no {script}, the script that is started, among the files ({names}). Rename the one to "
                "start."
            ).format(script=ENTRY_POINT, names=shown)
        )
    if not found[ENTRY_POINT].strip():
        raise UploadRefusedError(
            gettext("{script} is empty. Save your script first, then upload it.").format(script=ENTRY_POINT)
        )
    return tuple(SourceFile(path, text) for path, text in sorted(found.items()))


def _nothing() -> UploadRefusedError:
    return UploadRefusedError(gettext("Nothing was uploaded. Choose your train.py, or paste the script."))
