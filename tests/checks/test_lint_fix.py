"""`grader lint --fix` and `--diff`: files are whole afterwards and keep what is theirs; the exit code is the rest's."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from grader import cli

FIXTURES = Path(__file__).parent / "fixtures"
PLAIN = (FIXTURES / "DATA001" / "flagged_plain_shuffle.py").read_text(encoding="utf-8")
TWO = (FIXTURES / "DATA009" / "flagged_keywords.py").read_text(encoding="utf-8")
UNDECIDED = (FIXTURES / "DIST008" / "flagged_rank_zero_decides.py").read_text(encoding="utf-8")


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train_mine.py"
    path.write_text(PLAIN, encoding="utf-8")
    return path


def test_the_file_is_mended_and_the_exit_code_is_that_of_the_rest(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["lint", script.name]) == 1
    assert "`--fix` mends 1 of these" in capsys.readouterr().out
    assert cli.main(["lint", "--fix", script.name]) == 0
    shown = capsys.readouterr().out
    assert f"{script.name}:8: DATA001 mended. Gives each rank its share" in shown
    assert "no findings" in shown
    after = script.read_text(encoding="utf-8")
    assert "sampler=DistributedSampler(train_set)" in after
    assert "    loader.sampler.set_epoch(epoch)\n" in after
    assert cli.main(["lint", "--fix", script.name]) == 0
    assert "mended" not in capsys.readouterr().out
    assert script.read_text(encoding="utf-8") == after


def test_what_takes_a_decision_remains_and_decides(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script.write_text(UNDECIDED, encoding="utf-8")
    assert cli.main(["lint", "--fix", script.name]) == 1
    assert "DIST008" in capsys.readouterr().out
    assert script.read_text(encoding="utf-8") == UNDECIDED


def test_a_diff_is_shown_and_nothing_is_written(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from grader.catalog.submissions.unified_diff import apply, read_diff

    before = script.stat()
    assert cli.main(["lint", "--diff", script.name]) == 0
    shown = capsys.readouterr()
    assert "would be mended" in shown.err
    assert script.stat().st_mtime_ns == before.st_mtime_ns
    diff = shown.out
    cli.main(["lint", "--fix", script.name])
    assert apply(read_diff(diff), PLAIN) == script.read_text(encoding="utf-8")


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_the_mark_before_the_text_and_permissions_stay(script: Path, mark: bytes) -> None:
    script.write_bytes(mark + PLAIN.rstrip("\n").replace("\n", "\r\n").encode())
    script.chmod(0o750)
    assert cli.main(["lint", "--fix", script.name]) == 0
    after = script.read_bytes()
    assert after.startswith(mark + b"import torch\r\n")
    assert after.count(b"\n") == after.count(b"\r\n") == PLAIN.count("\n") + 1
    assert not after.endswith(b"\n")
    assert script.stat().st_mode & 0o777 == 0o750
    assert [path.name for path in script.parent.iterdir()] == [script.name]


def test_a_file_that_may_not_be_written_is_named_and_stays(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script.chmod(0o444)
    assert cli.main(["lint", "--fix", script.name]) == 2
    told = capsys.readouterr().err
    assert script.name in told
    assert "chmod u+w" in told
    assert "Traceback" not in told
    assert script.read_text(encoding="utf-8") == PLAIN
    assert cli.main(["lint", "--diff", script.name]) == 0


def test_a_link_stays_a_link(script: Path) -> None:
    link = script.parent / "linked.py"
    link.symlink_to(script.name)
    assert cli.main(["lint", "--fix", link.name]) == 0
    assert link.is_symlink()
    assert "set_epoch" in script.read_text(encoding="utf-8")


def test_a_folder_is_mended_file_by_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "train.py").write_text("import saving\n" + PLAIN + "saving.save(model)\n", encoding="utf-8")
    saving = "import torch\n\n\ndef save(m):\n    torch.save(m.module.state_dict(), 'm.pt')\n"
    (folder / "saving.py").write_text(saving, encoding="utf-8")
    cli.main(["lint", "--fix", str(folder)])
    assert "set_epoch" in (folder / "train.py").read_text(encoding="utf-8")
    assert f"{folder / 'train.py'}:9: DATA001 mended" in capsys.readouterr().out


def test_programs_get_what_was_mended_with_its_diff(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lint", "--diff", "--json", script.name]) == 0
    (told,) = json.loads(capsys.readouterr().out)["files"]
    assert told["findings"] == []
    assert told["mended"] == [
        {
            "code": "DATA001",
            "file": script.name,
            "line": 8,
            "summary": "Gives each rank its share of the samples, shuffled anew in each epoch.",
        }
    ]
    assert told["diff"].startswith(f"--- {script.name}\n+++ {script.name}\n@@ ")
    assert cli.main(["lint", "--json", script.name]) == 1
    (told,) = json.loads(capsys.readouterr().out)["files"]
    assert "mended" not in told
    (finding,) = told["findings"]
    assert {"summary", "edits"} == set(finding["fix"])
    assert cli.main(["lint", "--fix", "--format", "sarif", script.name]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["results"] == []


def test_standard_input_comes_out_mended(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(TWO.encode())))
    assert cli.main(["lint", "--fix", "-", "--stdin-filename", script.name]) == 0
    shown = capsys.readouterr()
    assert shown.out == TWO.replace(", shuffle=True", "")
    assert "DATA009 mended" in shown.err
    assert script.read_text(encoding="utf-8") == PLAIN, "a name is no file to be written"


def test_fixes_that_need_the_same_import_are_all_made(script: Path) -> None:
    other = (
        "more = DataLoader(more_set, 64, shuffle=True)\nfor x, y in more:\n    model(x).sum().backward()\n"
    )
    script.write_text(PLAIN.replace("dist.destroy", other + "dist.destroy"), encoding="utf-8")
    assert cli.main(["lint", "--fix", script.name]) == 0
    after = script.read_text(encoding="utf-8")
    assert after.count("import DistributedSampler\n") == 1
    assert "sampler=DistributedSampler(train_set)" in after
    assert "more = DataLoader(more_set, 64, sampler=DistributedSampler(more_set))" in after


def test_what_is_silenced_or_not_chosen_is_left_alone(script: Path) -> None:
    silenced = PLAIN.replace("# <- DATA001", "# noqa: DATA001")
    script.write_text(silenced, encoding="utf-8")
    assert cli.main(["lint", "--fix", script.name]) == 0
    assert script.read_text(encoding="utf-8") == silenced
    script.write_text(PLAIN, encoding="utf-8")
    assert cli.main(["lint", "--fix", "--ignore", "DATA", script.name]) == 0
    assert script.read_text(encoding="utf-8") == PLAIN


def test_a_script_that_is_no_python_is_left_as_it_is(script: Path) -> None:
    script.write_text("def main(:\n", encoding="utf-8")
    assert cli.main(["lint", "--fix", script.name]) == 1
    assert script.read_text(encoding="utf-8") == "def main(:\n"


def test_a_file_that_changed_meanwhile_is_not_overwritten(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from grader.checks import mended_script

    def mend_late(*args: object) -> object:
        script.write_text("# something else\n", encoding="utf-8")
        return mend(*args)  # type: ignore[arg-type]

    mend = mended_script.mend
    monkeypatch.setattr(mended_script, "mend", mend_late)
    # As in a command, which has one thread: what a suite has besides is none of its business.
    monkeypatch.setattr("threading.active_count", lambda: 1)
    assert cli.main(["lint", "--fix", script.name]) == 2
    assert "changed since it was read" in capsys.readouterr().err
    assert script.read_text(encoding="utf-8") == "# something else\n"
