"""Courses from elsewhere: a folder, an archive, a Git address at its commit; what is hostile is refused."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.catalog.courses import course_archive
from grader.catalog.courses.course_archive import read_archive
from grader.catalog.courses.course_sources import course_from, without_password
from grader.catalog.tasks.task_folders import find_tasks, load_task
from grader.errors import UsageError
from grader.settings import settings

COURSE = """name = "mine"
title = "Mine"
about = "A course."
[[tasks]]
task = "ddp-toy"
weight = 100
"""


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A repository's folder: the course lies in `tasks`, the skeleton in its task."""
    made = tmp_path / "course"
    left_out = shutil.ignore_patterns("rejected", "crashed", "deadlocked")
    shutil.copytree(settings().tasks_dir / "ddp-toy", made / "tasks" / "ddp-toy", ignore=left_out)
    shutil.copytree(settings().skeletons_dir / "ddp-toy", made / "tasks" / "ddp-toy" / "skeleton")
    (made / "tasks" / "course.toml").write_text(COURSE)
    return made


def git(folder: Path, *arguments: str) -> str:
    named = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    done = subprocess.run(
        ["git", "-C", str(folder), *named, *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


def tar_of(*entries: tarfile.TarInfo) -> io.BytesIO:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for entry in entries:
            archive.addfile(entry, io.BytesIO(b"x" * entry.size))
    made.seek(0)
    return made


def entry(name: str, size: int = 1, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = size, kind, link
    return info


def test_a_course_comes_from_a_folder_and_from_archives_as_the_same(course: Path, tmp_path: Path) -> None:
    shutil.make_archive(str(tmp_path / "packed"), "gztar", course.parent, "course")
    shutil.make_archive(str(tmp_path / "packed"), "zip", course)
    versions = set()
    for source in (course, tmp_path / "packed.tar.gz", tmp_path / "packed.zip"):
        with course_from(str(source)) as found:
            assert found.course.name == "mine"
            assert find_tasks() == ("ddp-toy",)
            assert source.name in found.told
            versions.add(load_task("ddp-toy").version)
    assert len(versions) == 1
    assert "ddp-fashion" in find_tasks(), "afterwards the course is the one that it was"


def test_a_course_comes_from_git_at_a_commit_that_is_told(course: Path) -> None:
    git(course, "init", "--quiet", "--initial-branch", "main")
    git(course, "add", "--all")
    git(course, "commit", "--quiet", "--message", "one")
    first = git(course, "rev-parse", "HEAD")
    git(course, "tag", "autumn")
    (course / "tasks" / "course.toml").write_text(COURSE.replace("Mine", "Yours"))
    git(course, "commit", "--quiet", "--all", "--message", "two")
    address = f"file://{course}"
    for revision, title in (("", "Yours"), ("main", "Yours"), ("autumn", "Mine"), (first, "Mine")):
        with course_from(address, revision=revision) as found:
            assert (found.course.title, found.told.startswith(address)) == (title, True)
            commit = found.told.rpartition(" ")[2]
        assert (commit == first) == (title == "Mine")
    (course / "tasks" / "link").symlink_to("/etc/passwd")
    git(course, "add", "--all")
    git(course, "commit", "--quiet", "--message", "three")
    for revision, told in (("", "link"), ("nowhere", "could not fetch"), ("--upload-pack=x", "is no branch")):
        with pytest.raises(UsageError, match=told), course_from(address, revision=revision):
            pass
    for strange in ("http://example.org/x", "git://example.org/x", "ext::sh -c true", str(course / "none")):
        with pytest.raises(UsageError), course_from(strange):
            pass


def test_a_token_in_an_address_is_never_shown() -> None:
    assert without_password("https://me:secret@example.org/a.git") == "https://example.org/a.git"
    assert without_password("ssh://git@example.org/a.git") == "ssh://git@example.org/a.git"


def test_a_place_without_a_course_or_with_two_says_so(course: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no other\.toml"), course_from(str(course), file="other.toml"):
        pass
    shutil.copytree(course / "tasks", course / "more")
    named = r"several courses .*more/course.toml, tasks/course.toml"
    with pytest.raises(UsageError, match=named), course_from(str(course)):
        pass


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        ((entry("../out"),), "no path within it"),
        ((entry("/etc/passwd"),), "no path within it"),
        ((entry("a\\b"),), "no path within it"),
        ((entry("/".join("a" * 20)),), "too long a path"),
        ((entry("a", 0, tarfile.SYMTYPE, "/etc/passwd"),), "link or a special file"),
        ((entry("b"), entry("a", 0, tarfile.LNKTYPE, "b")), "link or a special file"),
        ((entry("a", 0, tarfile.CHRTYPE),), "link or a special file"),
        ((entry("a"), entry("./a")), "twice"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_hostile_archives_are_refused(entries: tuple[tarfile.TarInfo, ...], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        read_archive(tar_of(*entries))


def test_what_an_archive_unpacks_to_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(course_archive, "MAX_TOTAL_BYTES", 1 << 20)
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", b"\0" * (3 << 20))
    assert len(bomb.getvalue()) < 1 << 15
    for file in (bomb, tar_of(entry("a", 3 << 20))):
        with pytest.raises(UsageError, match="more than 1 MiB"):
            read_archive(file)
    monkeypatch.setattr(course_archive, "MAX_FILES", 3)
    with pytest.raises(UsageError, match="more than 3 files"):
        read_archive(tar_of(*(entry(f"f{number}") for number in range(4))))


@pytest.mark.parametrize("cut", [lambda whole: whole[:60], lambda _: b"no archive", lambda _: b""])
def test_a_damaged_archive_is_refused(cut: Callable[[bytes], bytes]) -> None:
    with pytest.raises(UsageError, match="damaged one"):
        read_archive(io.BytesIO(cut(tar_of(entry("a", 5000)).getvalue())))
