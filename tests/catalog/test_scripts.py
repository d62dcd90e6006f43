"""What `grader lint` takes for a script: files, folders, patterns, standard input; a bad one stops no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.catalog.submissions.scripts import NamedScript, read_scripts
from grader.checks.source.script import parse
from grader.errors import UsageError


def read(*names: str | Path, stdin: bytes = b"", stdin_name: str | None = None) -> tuple[NamedScript, ...]:
    return read_scripts([str(n) for n in names], stdin=lambda: stdin, stdin_name=stdin_name)


def write(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"print({name!r})\n")


def names(scripts: tuple[NamedScript, ...]) -> list[str]:
    return [s.name for s in scripts]


def test_a_file_keeps_its_own_name(tmp_path: Path) -> None:
    write(tmp_path, "my_ddp.py")
    (script,) = read(tmp_path / "my_ddp.py")
    assert [f.path for f in script.submission.files] == ["my_ddp.py"]
    assert script.file_of("my_ddp.py") == str(tmp_path / "my_ddp.py")
    assert not script.problem


def test_a_script_called_like_a_package_it_imports_is_not_taken_for_that_package(tmp_path: Path) -> None:
    (tmp_path / "accelerate.py").write_text("from accelerate import Accelerator\n")
    (script,) = read(tmp_path / "accelerate.py")
    assert [f.path for f in script.submission.files] == ["accelerate.py"]
    assert parse(script.submission).names.foreign == ()


def test_a_folder_with_train_py_is_one_submission(tmp_path: Path) -> None:
    write(tmp_path, "mine/train.py", "mine/net.py", "mine/parts/data.py")
    (script,) = read(tmp_path / "mine")
    assert [f.path for f in script.submission.files] == ["net.py", "parts/data.py", "train.py"]
    assert script.file_of("parts/data.py") == str(tmp_path / "mine" / "parts" / "data.py")


def test_below_any_other_folder_every_file_is_a_script_and_submissions_stay_whole(tmp_path: Path) -> None:
    write(tmp_path, "a/one.py", "a/b/two.py", "a/c/train.py", "a/c/net.py", "a/notes.md")
    write(tmp_path, "a/.hidden/x.py", "a/__pycache__/x.py", "a/env/lib/x.py", "a/.secret.py")
    (tmp_path / "a/env/pyvenv.cfg").write_text("")
    found = read(tmp_path / "a")
    assert sorted(names(found)) == [str(tmp_path / "a" / n) for n in ("b/two.py", "c", "one.py")]
    assert [f.path for s in found if s.is_folder for f in s.submission.files] == ["net.py", "train.py"]


def test_patterns_find_scripts_in_any_folder_and_each_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "x/a.py", "x/y/b.py", "x/y/sub/train.py", "x/y/sub/net.py", "x/notes.txt")
    monkeypatch.chdir(tmp_path)
    assert names(read("x/**/*.py")) == ["x/a.py", "x/y/b.py", "x/y/sub/net.py", "x/y/sub/train.py"]
    assert names(read("x/**")) == ["x/a.py", "x/y/b.py", "x/y/sub"]
    assert names(read("x/*.py", "x/a.py", "x/../x/a.py")) == ["x/a.py"]
    assert names(read("x/y/sub", "x/y/sub/net.py")) == ["x/y/sub", "x/y/sub/net.py"], "asked for by name"


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    write(tmp_path, "a[1].py", "a1.py")
    assert names(read(tmp_path / "a[1].py")) == [str(tmp_path / "a[1].py")]


def test_standard_input_has_the_name_it_is_given() -> None:
    (script,) = read("-", stdin=b"x = 1\n", stdin_name="src/train_it.py")
    assert (script.name, script.submission.files[0].path) == ("src/train_it.py", "train_it.py")
    assert script.submission.files[0].text == "x = 1\n"
    (script,) = read("-", stdin="x = 'ä'".encode("latin-1"))
    assert "not UTF-8" in script.problem
    (script,) = read("-", stdin=b"#" * (2 << 20))
    assert "1 MiB" in script.problem


@pytest.mark.parametrize(("given", "name"), [(("-", "-"), None), (("a.py",), "b.py")])
def test_standard_input_is_read_once_and_named_only_when_read(
    given: tuple[str, ...], name: str | None
) -> None:
    with pytest.raises(UsageError):
        read(*given, stdin_name=name)


def test_what_cannot_be_read_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    write(tmp_path, "good.py", "empty/notes.md")
    (tmp_path / "binary.py").write_bytes(b"\0\1\2")
    (tmp_path / "latin.py").write_bytes("x = 'Zoë'\n".encode("latin-1"))
    (tmp_path / "large.py").write_bytes(b"#" * (2 << 20))
    (tmp_path / "blank.py").write_bytes(b"")
    (tmp_path / "data.txt").write_text("x")
    found = {
        s.name.removeprefix(f"{tmp_path}/"): s.problem
        for s in read(
            *(tmp_path / n for n in ("binary.py", "latin.py", "large.py", "blank.py", "data.txt", "gone.py")),
            tmp_path / "empty",
            f"{tmp_path}/nothing/**/*.py",
            tmp_path / "good.py",
        )
    }
    for name, word in {
        "binary.py": "binary", "latin.py": "UTF-8", "large.py": "MiB", "data.txt": ".py", "gone.py": "no file",
        "empty": "no .py file", "nothing/**/*.py": "matches",
    }.items():  # fmt: skip
        assert word in found[name], name
    assert found["good.py"] == ""
    assert found["blank.py"] == "", "an editor's new file is no mistake"
