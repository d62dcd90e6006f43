"""A submission that is a near-copy may be a patch: it is read as the whole script, and refused where it can't be."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from grader import cli
from grader.catalog.submissions.learner_files import read_submission
from grader.catalog.submissions.promised_submissions import submissions_of
from grader.catalog.tasks.task_folders import load_task
from grader.errors import EXIT_ACCEPTED, EXIT_TASK_ERROR, EXIT_USAGE, TaskError, UsageError
from grader.model.finding import Location

BASE = "".join(f"step_{n} = {n}\n" for n in range(1, 31))
FLAWED = BASE.replace("step_3 = 3\n", "").replace("step_24 = 24\n", "step_24 = 0  # <- DATA002\n")
FLAWED = f"# expect: DATA002\n{FLAWED}"


@pytest.fixture
def submissions(task_folder: Path) -> Path:
    """The folder of submissions of `two-ranks`, with a longer accepted one and a flawed one, both whole."""
    folder = task_folder / "submissions"
    (folder / "accepted" / "plain.py").write_text(BASE)
    (folder / "accepted" / "other.py").write_text("x = 1\n")
    (folder / "rejected").mkdir()
    (folder / "rejected" / "flawed.py").write_text(FLAWED)
    return folder


@pytest.fixture
def patch(submissions: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The flawed one as the patch that the command writes."""
    assert cli.main(["tasks", "two-ranks", "--as-patch", "rejected/flawed"]) == EXIT_ACCEPTED
    capsys.readouterr()
    return submissions / "rejected" / "flawed.patch"


def problem_of(patch: Path) -> str:
    """What an author is told of the one thing that is wrong with a patch."""
    with pytest.raises(TaskError) as caught:
        load_task("two-ranks")
    _, text = str(caught.value).split("\n  ")
    assert text.startswith(f"submissions/rejected/{patch.name}:")
    return text.removeprefix(f"submissions/rejected/{patch.name}:")


def test_a_patch_is_what_its_script_was(submissions: Path, patch: Path) -> None:
    assert not (submissions / "rejected" / "flawed.py").exists()
    assert patch.read_text().startswith(
        "--- accepted/plain.py\n+++ rejected/flawed.py\n@@ -1,6 +1,6 @@\n+# expect:"
    )
    assert len(patch.read_text().splitlines()) < 20
    _, _, flawed = submissions_of(load_task("two-ranks"))
    assert (flawed.name, flawed.verdict, flawed.codes) == ("rejected/flawed", "rejected", ("DATA002",))
    assert [(m.code, m.where) for m in flawed.markers] == [("DATA002", Location("train.py", 24))]
    assert (flawed.path, flawed.base) == (patch, submissions / "accepted" / "plain.py")
    assert flawed.submission.name == "flawed"
    assert [(f.path, f.text) for f in flawed.submission.files] == [("train.py", FLAWED)]


def test_comments_above_the_diff_promise_and_are_in_no_script(patch: Path) -> None:
    patch.write_text(f"# expect: DATA001\n# points: 40-50\n\n{patch.read_text()}")
    _, _, flawed = submissions_of(load_task("two-ranks"))
    assert (flawed.codes, flawed.points) == (("DATA001", "DATA002"), (40, 50))
    assert flawed.submission.files[0].text == FLAWED


@pytest.mark.parametrize(
    ("there", "instead", "said"),
    [
        (
            "--- accepted/plain.py",
            "--- accepted/gone.py",
            "1: there is no script submissions/accepted/gone.py",
        ),
        ("--- accepted/plain.py", "--- rejected/plain.py", "1: `rejected/plain.py` is no base"),
        ("--- accepted/plain.py", "--- accepted/plain.patch", "1: `accepted/plain.patch` is no base"),
        (
            "--- accepted/plain.py",
            "--- accepted/../accepted/plain.py",
            "1: `accepted/../accepted/plain.py` is no base",
        ),
        ("+++ rejected/flawed.py", "+++ rejected/other.py", "2: `rejected/other.py` is another submission"),
        ("+# expect: DATA002", "+# expect: NOPE123", " there is no rule 'NOPE123'"),
        (" step_2 = 2", " step_2 = 3", "6: line 2 of accepted/plain.py is `step_2 = 2`, not `step_2 = 3`"),
        ("@@ -1,6", "@@ -1,7", "3: the hunk says 7 old and 6 new lines and has 6 and 6"),
    ],
)
def test_what_can_not_be_applied_is_told_with_its_line(
    there: str, instead: str, said: str, patch: Path
) -> None:
    text = patch.read_text()
    assert there in text
    patch.write_text(text.replace(there, instead, 1))
    if instead == "+# expect: NOPE123":
        with pytest.raises(TaskError, match="there is no rule 'NOPE123'"):
            load_task("two-ranks")
    else:
        assert problem_of(patch).startswith(said)


def test_a_patch_of_nothing_is_refused(patch: Path) -> None:
    patch.write_text("--- accepted/plain.py\n+++ rejected/flawed.py\n@@ -1 +1 @@\n-step_1 = 1\n+step_1 = 1\n")
    assert problem_of(patch).startswith("1: changes nothing of accepted/plain.py")
    patch.write_text("# expect: DATA002\n")
    assert problem_of(patch).startswith("1: holds no diff")


def test_no_patch_stands_on_a_patch(submissions: Path, patch: Path) -> None:
    (submissions / "accepted" / "near.py").write_text(BASE.replace("step_1 ", "first "))
    assert cli.main(["tasks", "two-ranks", "--as-patch", "accepted/near"]) == EXIT_ACCEPTED
    assert {p.name: p.base is None for p in submissions_of(load_task("two-ranks"))} == {
        "accepted/near": False,
        "accepted/other": True,
        "accepted/plain": True,
        "rejected/flawed": False,
    }
    patch.write_text(patch.read_text().replace("--- accepted/plain.py", "--- accepted/near.py"))
    assert problem_of(patch).startswith("1: there is no script submissions/accepted/near.py")


def test_a_base_that_has_changed_is_the_authors_to_see_and_one_command_to_mend(
    submissions: Path, patch: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = submissions / "accepted" / "plain.py"
    base.write_text(BASE.replace("step_10", "new = 0\nstep_10"))
    assert cli.main(["tasks", "two-ranks"]) == EXIT_TASK_ERROR
    said = capsys.readouterr().err
    assert (
        "rejected/flawed.patch:12: line 21 of accepted/plain.py is `step_20 = 20`, not `step_21 = 21`" in said
    )
    command = "grader tasks two-ranks --as-patch rejected/flawed"
    assert f"`{command}`" in said
    assert cli.main(command.split()[1:]) == EXIT_ACCEPTED
    (flawed,) = [p for p in submissions_of(load_task("two-ranks")) if p.name == "rejected/flawed"]
    assert flawed.submission.files[0].text == FLAWED.replace("step_10", "new = 0\nstep_10")
    base.write_text(BASE.replace("step_24 = 24", "step_24 = 8"))
    before = patch.read_text()
    assert cli.main(command.split()[1:]) == EXIT_TASK_ERROR
    assert "flawed.patch:" in (said := capsys.readouterr().err)
    assert "no longer has the lines of this hunk" in said
    assert patch.read_text() == before


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=folder, check=True)


def test_a_patch_that_no_longer_fits_is_shown_as_it_was_and_written_anew(
    submissions: Path, patch: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    patch.write_text(f"# points: 40-50\n{patch.read_text()}")
    base = submissions / "accepted" / "plain.py"
    git(submissions, "init", "--quiet")
    git(submissions, "add", ".")
    git(submissions, "commit", "--quiet", "--message", "Whole")
    base.write_text(BASE.replace("step_24 = 24", "step_24 = 8"))
    git(submissions, "commit", "--quiet", "--all", "--message", "Another base")
    assert cli.main(["tasks", "two-ranks", "--as-patch", "rejected/flawed"]) == EXIT_TASK_ERROR
    show, anew = (line.split() for line in capsys.readouterr().err.splitlines() if line.startswith("    "))
    *show, _, target = show
    # The shell makes the file before the command begins.
    Path(target).write_text("")
    assert cli.main(show[1:]) == EXIT_ACCEPTED
    told = capsys.readouterr()
    assert told.out == FLAWED
    assert "plain.py has changed since this patch was made" in told.err
    Path(target).write_text(told.out.replace("step_24 = 0", "step_24 = 9"))
    assert cli.main(anew[1:]) == EXIT_ACCEPTED
    assert "it replaces flawed.py, which is removed" in capsys.readouterr().err
    (flawed,) = [p for p in submissions_of(load_task("two-ranks")) if p.name == "rejected/flawed"]
    assert "step_24 = 9  # <- DATA002" in flawed.submission.files[0].text
    assert flawed.points == (40, 50)


def test_where_no_version_fits_a_patch_that_is_said(
    submissions: Path, patch: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (submissions / "accepted" / "plain.py").write_text(BASE.replace("step_24 = 24", "step_24 = 8"))
    assert cli.main(["tasks", "two-ranks", "--show", "rejected/flawed"]) == EXIT_TASK_ERROR
    assert "No version of it that git keeps fits the patch either" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("accepted/plain", "it is the base of flawed"),
        ("accepted/other", "no accepted script is so like it"),
        ("accepted/modules", "a folder stays whole"),
        ("rejected/flaw", "Did you mean rejected/flawed?"),
        ("nothing", "there is no one submission 'nothing'"),
    ],
)
def test_what_stays_whole(
    wanted: str, said: str, submissions: Path, patch: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (submissions / "accepted" / "modules").mkdir()
    (submissions / "accepted" / "modules" / "train.py").write_text(BASE)
    before = sorted(submissions.rglob("*"))
    assert cli.main(["tasks", "two-ranks", "--as-patch", wanted]) == EXIT_USAGE
    assert said in capsys.readouterr().err
    assert sorted(submissions.rglob("*")) == before


@pytest.mark.parametrize(
    "wanted",
    ["rejected/flawed", "flawed", "rejected/flawed.patch", "tasks/two-ranks/submissions/rejected/flawed.py"],
)
def test_the_whole_script_is_shown(wanted: str, patch: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tasks", "two-ranks", "--show", wanted]) == EXIT_ACCEPTED
    assert capsys.readouterr().out == FLAWED
    assert cli.main(["tasks", "two-ranks", "--show", wanted, "--json"]) == EXIT_ACCEPTED
    told = json.loads(capsys.readouterr().out)
    assert (told["name"], told["codes"]) == ("rejected/flawed", ["DATA002"])
    assert told["files"] == [{"path": "train.py", "text": FLAWED}]
    assert Path(told["base"]).name == "plain.py"


def test_all_files_of_a_folder_are_shown(submissions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = submissions / "accepted" / "modules"
    folder.mkdir()
    (folder / "train.py").write_text("import net\n")
    (folder / "net.py").write_text("y = 1\n")
    assert cli.main(["tasks", "two-ranks", "--show", "modules"]) == EXIT_ACCEPTED
    assert capsys.readouterr().out == "==> net.py <==\ny = 1\n==> train.py <==\nimport net\n"


def test_a_patch_is_no_submission_of_a_learners(patch: Path) -> None:
    with pytest.raises(UsageError, match="grader tasks TASK --show flawed"):
        read_submission(patch)
