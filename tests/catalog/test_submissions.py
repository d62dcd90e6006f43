"""What a learner may hand in, and what every other file is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grader.catalog.submissions.learner_files import MAX_FILE_BYTES, MAX_FILES, read_submission
from grader.errors import UsageError


def refusal(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        read_submission(path)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_a_file_becomes_train_py_and_keeps_its_name(tmp_path: Path) -> None:
    (tmp_path / "my_ddp.py").write_text("print('hallo, Wörld')\n", encoding="utf-8")
    submission = read_submission(tmp_path / "my_ddp.py")
    assert submission.name == "my_ddp"
    assert [(f.path, f.text) for f in submission.files] == [("train.py", "print('hallo, Wörld')\n")]


def test_a_folder_brings_its_modules_and_leaves_the_rest(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    for name in ("train.py", "net.py", "parts/__init__.py", "parts/data.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x = 1\n" if "__init__" not in name else "")
    for name in ("__pycache__/net.cpython-311.pyc", ".git/hook.py", "notes.md", "model.pt", ".hidden.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"\0\xff")
    submission = read_submission(folder)
    assert submission.name == "mine"
    assert [f.path for f in submission.files] == ["net.py", "parts/__init__.py", "parts/data.py", "train.py"]


def test_the_current_folder_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "attempt7"
    folder.mkdir()
    (folder / "train.py").write_text("x = 1\n")
    monkeypatch.chdir(folder)
    assert read_submission(Path()).name == "attempt7"


def test_a_syntax_error_is_not_refused_here(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def (:\n")
    assert read_submission(tmp_path / "a.py").files[0].text == "def (:\n"


def test_a_byte_order_mark_is_not_part_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"\xef\xbb\xbfx = 1\r\n")
    assert read_submission(tmp_path / "a.py").files[0].text == "x = 1\r\n"


def test_missing(tmp_path: Path) -> None:
    assert f"no file {tmp_path / 'train.py'}" in refusal(tmp_path / "train.py")


@pytest.mark.parametrize("content", [b"", b" \n\t\n"])
def test_empty(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "train.py").write_bytes(content)
    message = refusal(tmp_path / "train.py")
    assert "is empty" in message
    assert "Save your script first" in message


def test_fifty_megabytes_are_refused_by_their_size_alone(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    with path.open("wb") as file:
        file.truncate(50_000_000)
    message = refusal(path)
    assert "47.7 MiB; a script may have 1 MiB" in message
    assert "data and weights are not part of it" in message


def test_exactly_the_cap_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(b"#" * MAX_FILE_BYTES)
    assert len(read_submission(path).files[0].text) == MAX_FILE_BYTES
    path.write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    assert "MiB" in refusal(path)


def test_binary(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes(b"\x7fELF\x02\x01\0\0" + bytes(range(256)))
    message = refusal(tmp_path / "train.py")
    assert "binary file (NUL at byte 6)" in message


def test_another_encoding_is_pointed_at(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes("# coding: latin-1\nx = 1\ny = 'é'\n".encode("latin-1"))
    message = refusal(tmp_path / "train.py")
    assert "byte 0xE9 in line 3" in message
    assert "Save it as UTF-8" in message


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("lab.ipynb", "Hand in the file that Jupyter saves"),
        ("a.zip", "unpack it"),
        ("a.txt", "does not end in .py"),
    ],
)
def test_other_kinds_of_file_are_told_what_to_do(tmp_path: Path, name: str, advice: str) -> None:
    (tmp_path / name).write_text("{}")
    assert advice in refusal(tmp_path / name)


def test_a_folder_without_train_py_names_what_it_found(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("x = 1\n")
    message = refusal(tmp_path)
    assert "has no train.py" in message
    assert "It holds main.py" in message


def test_a_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "train.py")
    assert "named pipe" in refusal(tmp_path / "train.py")
    assert "train.py" in refusal(tmp_path)


def test_links_inside_a_folder_are_refused(tmp_path: Path) -> None:
    folder, outside = tmp_path / "mine", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "secret.py").write_text("x = 1\n")
    (folder / "train.py").write_text("x = 1\n")
    (folder / "linked").symlink_to(outside)
    assert f"{folder / 'linked'} is a symbolic link" in refusal(folder)
    (folder / "linked").unlink()
    (folder / "net.py").symlink_to(outside / "secret.py")
    assert f"{folder / 'net.py'} is a symbolic link" in refusal(folder)


def test_too_many_files_and_too_much_text(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("x = 1\n")
    for n in range(MAX_FILES):
        (tmp_path / f"m{n}.py").write_text("x = 1\n")
    assert f"more than {MAX_FILES} .py files" in refusal(tmp_path)
    for n in range(MAX_FILES):
        (tmp_path / f"m{n}.py").unlink()
    for n in range(4):
        (tmp_path / f"m{n}.py").write_bytes(b"#" * MAX_FILE_BYTES)
    assert "more than 4 MiB altogether" in refusal(tmp_path)


def test_what_is_not_taken_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('hello')\n")
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "small.yaml").write_text("width: 3\n")
    (tmp_path / "weights.pt").write_bytes(b"\0")
    (tmp_path / ".git").write_text("hidden")
    found = read_submission(tmp_path)
    assert [file.path for file in found.files] == ["train.py"]
    assert found.left_out == ("weights.pt", "configs/small.yaml")
    assert "not there when it runs: weights.pt, configs/small.yaml" in found.left_out_note
    assert found.digest == read_submission(tmp_path / "train.py").digest
    for n in range(10):
        (tmp_path / f"z{n}.md").write_text("")
    found = read_submission(tmp_path)
    assert len(found.left_out) == 12
    assert found.left_out_note.endswith("z6.md and 4 more.")
