"""Where a course comes from that does not lie here yet: a folder, an archive, or a Git address at a commit.

What comes from elsewhere is laid out in a temporary folder, which is gone when the course was read. Nothing of it is
run; whoever takes a course trusts its author as they trust this program, as its scorers and rules are programs.
"""

from __future__ import annotations

import hashlib
import io
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from grader.catalog.courses.course_archive import MAX_TOTAL_BYTES, read_archive, write_files
from grader.catalog.courses.course_file import DEFAULT, load_course
from grader.errors import InfraError, UsageError
from grader.model.course import Course
from grader.settings import in_course

_GIT_S = 180.0
_GIT_BYTES = 4 * MAX_TOTAL_BYTES
"""Of any one file that git writes; what is checked out of it has the limit of archives."""
_SCP = re.compile(r"[\w.-]+@[\w.-]+:[^:]+")
_REVISION = re.compile(r"[\w][\w./+-]{0,199}")
_DEPTH = 4
_PROTOCOLS = ("https", "ssh", "file")


@dataclass(frozen=True, slots=True)
class FoundCourse:
    """A course as it was found, while its files are there.

    Attributes:
        told: where it came from, for people: an address with the commit, an archive with its digest, a folder.
    """

    course: Course
    told: str


@contextmanager
def course_from(source: str, *, revision: str = "", file: str = DEFAULT) -> Iterator[FoundCourse]:
    """The course in a folder, in an archive, or at a Git address; meanwhile its folder of tasks is meant.

    Args:
        source: path of a folder or of a `.tar.gz`, `.tar` or `.zip` file; `https://…`, `ssh://…`, `user@host:…` or
            `file://…`.
        revision: branch, tag or commit of a Git address; "": what it has by default.
        file: name of the course file.

    Raises:
        UsageError: there is no such place, no course in it, or what it holds may not be taken.
        TaskError: the course's author has to mend its file. InfraError: the address does not answer.
    """
    if _is_git(source):
        with tempfile.TemporaryDirectory(prefix="grader-course-") as made:
            commit, packed = _fetch(source, revision, Path(made) / "git")
            folder = Path(made) / "course"
            write_files(read_archive(io.BytesIO(packed)), folder)
            with _course_in(folder, file, f"{without_password(source)} at {commit}") as found:
                yield found
        return
    if revision:
        raise UsageError(f"{source} is no Git address, so it has no revision {revision}")
    path = Path(source)
    if path.is_dir():
        with _course_in(path.resolve(), file, str(path.resolve())) as found:
            yield found
        return
    try:
        with path.open("rb") as archive, course_in_archive(archive, path.name, file=file) as found:
            yield found
    except OSError as error:
        raise UsageError(f"{source} is no folder, no archive and no Git address: {error.strerror}") from None


@contextmanager
def course_in_archive(archive: IO[bytes], name: str, *, file: str = DEFAULT) -> Iterator[FoundCourse]:
    """The course in an archive that is open; see `course_from`. `name`: of its file."""
    sha = hashlib.sha256()
    while part := archive.read(1 << 20):
        sha.update(part)
    archive.seek(0)
    with tempfile.TemporaryDirectory(prefix="grader-course-") as made:
        write_files(read_archive(archive), Path(made))
        with _course_in(Path(made), file, f"{name}, SHA-256 {sha.hexdigest()}") as found:
            yield found


def without_password(address: str) -> str:
    """A Git address as it may be shown: no user, no token."""
    parts = urlsplit(address)
    if "@" not in parts.netloc or parts.scheme == "ssh":
        return address
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


@contextmanager
def _course_in(folder: Path, file: str, told: str) -> Iterator[FoundCourse]:
    # The one that lies highest: a course may bring others as examples.
    found = sorted(
        (path for depth in range(_DEPTH) for path in folder.glob("*/" * depth + file) if path.is_file()),
        key=lambda path: (len(path.parts), path),
    )
    if not found:
        raise UsageError(f"There is no {file} in {told}.")
    highest = [path for path in found if len(path.parts) == len(found[0].parts)]
    if len(highest) > 1:
        named = ", ".join(path.relative_to(folder).as_posix() for path in highest)
        raise UsageError(
            f"There are several courses in {told}: {named}. Give the folder or the archive of one."
        )
    with in_course(found[0].parent):
        yield FoundCourse(load_course(found[0]), told)


def _is_git(source: str) -> bool:
    scheme = urlsplit(source).scheme
    if scheme in ("http", "git"):
        raise UsageError(f"{source}: anybody on the way could change what comes; use https:// or ssh://")
    return scheme in _PROTOCOLS or _SCP.fullmatch(source) is not None


def _fetch(address: str, revision: str, folder: Path) -> tuple[str, bytes]:
    """The commit that a revision names, and its files as a tar archive."""
    if revision and not _REVISION.fullmatch(revision):
        raise UsageError(f"{revision!r} is no branch, tag or commit")
    _git("init", "--quiet", "--bare", str(folder))
    at = ("-C", str(folder))
    _git(*at, "fetch", "--quiet", "--depth=1", "--no-tags", "--", address, revision or "HEAD")
    commit = _git(*at, "rev-parse", "--verify", "FETCH_HEAD^{commit}").decode().strip()
    listed = _git(*at, "ls-tree", "-r", "-l", commit).decode(errors="replace").splitlines()
    sizes = [int(size) for line in listed if (size := line.split(None, 4)[3]).isdigit()]
    if sum(sizes) > MAX_TOTAL_BYTES:
        raise UsageError(f"{without_password(address)} holds more than {MAX_TOTAL_BYTES >> 20} MiB")
    return commit, _git(*at, "archive", "--format=tar", commit)


def _git(*arguments: str) -> bytes:
    # No hook, no other protocol, no question at a terminal; what it writes has a bound that its children have, too.
    allowed = [word for one in _PROTOCOLS for word in ("-c", f"protocol.{one}.allow=always")]
    told = ("core.hooksPath=/dev/null", "core.sshCommand=ssh -o BatchMode=yes", "protocol.allow=never")
    command = [
        *("env", "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=/bin/false"),
        *("git", *(word for one in told for word in ("-c", one)), *allowed, *arguments),
    ]
    bounded = ["/bin/sh", "-c", f'ulimit -f {_GIT_BYTES >> 9} && exec "$@"', "sh", *command]
    try:
        done = subprocess.run(
            bounded, stdin=subprocess.DEVNULL, capture_output=True, timeout=_GIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise InfraError(f"git has not answered within {_GIT_S:.0f} s; try again") from None
    if done.returncode == 0:
        return done.stdout
    said = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
    if done.returncode == 127:
        raise InfraError("git is not installed here; give an archive instead")
    # An address that is wrong and one that does not answer look alike.
    raise UsageError(f"git could not fetch that: {_shown(said[-1]) if said else 'it said nothing'}")


def _shown(text: str) -> str:
    """What git said, without tokens that stand in addresses."""
    return re.sub(r"(?<=://)[^/@\s]+@", "", text)
