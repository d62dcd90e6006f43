"""The scripts in a ZIP file, read entry by entry and never unpacked: memory stays flat whatever it claims to hold.

They may lie in a notebook. The directory at the archive's end is measured before it is read. One entry that is a link,
encrypted, overlaps another or points out of the archive condemns the whole: honest tools make none.
"""

from __future__ import annotations

import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO

from grader.catalog.submissions.learner_files import MAX_FILES, MAX_TOTAL_BYTES, most_bytes
from grader.model.submission import ENTRY_POINT
from grader.notebooks.handed_in import is_notebook
from grader.report.safe_text import one_line
from grader.translation import gettext
from grader.web.upload import file_names
from grader.web.upload.refusals import UploadRefusedError

_END, _LOCATOR = b"PK\x05\x06", b"PK\x06\x07"
_END_BYTES, _LOCATOR_BYTES, _LOCAL_BYTES = 22, 20, 30
_MAX_ENTRIES, _MAX_DIRECTORY = 4096, 1 << 20
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_UNIX = 3
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
)


def scripts_in(file: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    """Each `.py` file of an archive as (path, content), in its order; its notebook where there is no `train.py`.

    Raises:
        UploadRefusedError: the archive is damaged, hostile, or holds more than a submission may.
    """
    _measure(file)
    try:
        with zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
            if len(infos) > _MAX_ENTRIES:
                raise _too_many()
            wanted = [info for info in infos if _wanted(info)]
            _no_overlap(file, infos, archive.start_dir)
            yield from _contents(archive, wanted)
    except _DAMAGED as error:
        raise _not_plain(
            gettext("The ZIP file is damaged ({problem}).").format(problem=one_line(str(error))[:120])
        ) from None


def _measure(file: IO[bytes]) -> None:
    """Read the record at the archive's end: the directory that Python would load must be a small one."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END_BYTES - 0xFFFF - _LOCATOR_BYTES))
    tail = file.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_BYTES:
        raise _not_plain(gettext("This is no ZIP file, or only a part of one."))
    entries, directory_bytes = struct.unpack_from("<HL", tail, at + 10)
    if tail[max(0, at - _LOCATOR_BYTES) : at].startswith(_LOCATOR):
        raise _not_plain(gettext("The ZIP file is of the kind for huge archives."))
    if entries > _MAX_ENTRIES or directory_bytes > _MAX_DIRECTORY:
        raise _too_many()
    file.seek(0)


def _wanted(info: zipfile.ZipInfo) -> bool:
    """Whether an entry is a script to be read; hostile entries are refused, wanted or not."""
    shown = one_line(info.orig_filename[:120])
    if "\0" in info.orig_filename:
        raise _not_plain(gettext("{name} is no name of a file.").format(name=shown))
    path = file_names.checked_path(info.orig_filename.rstrip("/") or info.orig_filename)
    if info.flag_bits & _ENCRYPTED:
        raise UploadRefusedError(
            gettext("{name} is encrypted. Pack the archive again without a password.").format(name=shown)
        )
    mode = info.external_attr >> 16
    if info.create_system == _UNIX and stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise UploadRefusedError(
            gettext("{name} is a link or a special file. Put the file itself into the archive.").format(
                name=shown
            )
        )
    if info.is_dir() or file_names.is_ignored(path):
        return False
    if not path.endswith(".py") and not is_notebook(path):
        return False
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise _not_plain(gettext("{name} is packed by an unusual method.").format(name=shown))
    if info.file_size > most_bytes(path):
        raise _too_large(shown, most_bytes(path))
    return True


def _no_overlap(file: IO[bytes], infos: list[zipfile.ZipInfo], directory_at: int) -> None:
    """Refuse archives whose entries share bytes: that is how a small file unpacks to a huge one."""
    ordered = sorted(infos, key=lambda info: info.header_offset)
    ends = [*(info.header_offset for info in ordered[1:]), directory_at]
    for info, end in zip(ordered, ends, strict=True):
        file.seek(info.header_offset)
        header = file.read(_LOCAL_BYTES)
        if len(header) < _LOCAL_BYTES or not header.startswith(b"PK\x03\x04"):
            raise _not_plain(gettext("The ZIP file is damaged."))
        name_bytes, extra_bytes = struct.unpack_from("<HH", header, 26)
        if info.header_offset + _LOCAL_BYTES + name_bytes + extra_bytes + info.compress_size > end:
            raise _not_plain(gettext("Entries of the ZIP file overlap."))


def _contents(archive: zipfile.ZipFile, found: list[zipfile.ZipInfo]) -> Iterator[tuple[str, bytes]]:
    scripts = [info for info in found if not is_notebook(info.filename)]
    notebooks = [info for info in found if is_notebook(info.filename)]
    if any(info.filename.rpartition("/")[2] == ENTRY_POINT for info in scripts):
        # Beside the script itself a notebook is where somebody tried things.
        notebooks = []
    if len(notebooks) > 1:
        raise UploadRefusedError(
            gettext(
                "The ZIP file holds {number} notebooks and no {script}. Upload the one to hand in."
            ).format(number=len(notebooks), script=ENTRY_POINT)
        )
    wanted = scripts + notebooks
    if not wanted:
        raise UploadRefusedError(
            gettext(
                "The ZIP file holds no .py file and no notebook. Pack train.py and the modules it imports."
            )
        )
    if len(wanted) > MAX_FILES:
        raise _too_many()
    total = 0
    for info in wanted:
        with archive.open(info) as entry:
            content = entry.read(most_bytes(info.filename) + 1)
        if len(content) > most_bytes(info.filename):
            raise _too_large(one_line(info.filename[:120]), most_bytes(info.filename))
        total += 0 if is_notebook(info.filename) else len(content)
        if total > MAX_TOTAL_BYTES:
            raise UploadRefusedError(
                gettext(
                    "The .py files in the archive are more than {mib} MiB altogether. Hand in "
                    "train.py and the modules it imports, nothing else."
                ).format(mib=MAX_TOTAL_BYTES >> 20)
            )
        yield file_names.checked_path(info.filename), content


def _not_plain(problem: str) -> UploadRefusedError:
    """Refuses an archive that honest tools do not make; `problem`: a sentence."""
    advice = gettext("Pack it again as a plain ZIP file of your scripts.")
    return UploadRefusedError(f"{problem} {advice}")


def _too_many() -> UploadRefusedError:
    return UploadRefusedError(
        gettext(
            "The archive holds too many files; a submission has {most} at most. Pack train.py and the modules it "
            "imports; a virtual environment or other projects do not belong in it."
        ).format(most=MAX_FILES)
    )


def _too_large(shown: str, most: int) -> UploadRefusedError:
    return UploadRefusedError(
        gettext(
            "{name} is larger than it may be, {mib} MiB. Data and weights are not part of a submission."
        ).format(name=shown, mib=most >> 20)
    )
