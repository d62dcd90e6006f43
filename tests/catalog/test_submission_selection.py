"""Which submissions a verification looks at: by name, by what git says has changed, and by shard."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.catalog import package_files
from grader.catalog.package_files import PACKAGE, judging_files, running_files
from grader.catalog.submissions.changes import changes_since
from grader.catalog.submissions.submission_selection import VerifyShard, parse_shard, select
from grader.catalog.tasks.task_folders import load_task
from grader.errors import UsageError

FLAWED = ("rejected/one.py", "rejected/two.py")


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repo(home: Path, task_folder: Path) -> Path:
    """A repository of two tasks with submissions, one commit."""
    for name in FLAWED:
        path = task_folder / "submissions" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x = 1\n")
    helpers = task_folder / "submissions" / "accepted" / "modules"
    helpers.mkdir()
    (helpers / "train.py").write_text("import net\n")
    (helpers / "net.py").write_text("y = 1\n")
    for room in ("tasks", "skeletons"):
        shutil.copytree(home / room / "two-ranks", home / room / "other")
    (home / ".gitignore").write_text("state/\n*.pyc\n")
    (home / "requirements.lock").write_text("torch==2.9\n")
    (home / "README.md").write_text("hello\n")
    git(home, "init", "--quiet", "--initial-branch=main")
    git(home, "add", ".")
    git(home, "commit", "--quiet", "--message=first")
    return home


def left(since: str = "HEAD") -> set[str]:
    tasks = [load_task("two-ranks"), load_task("other")]
    found = select(tasks, changes=changes_since(since))
    return {f"{task.name}/{promised.name}" for task, promised in found}


EVERYTHING = {
    f"{task}/{name}"
    for task in ("two-ranks", "other")
    for name in ("accepted/plain", "accepted/modules", "rejected/one", "rejected/two")
}
OF_ONE_TASK = {name for name in EVERYTHING if name.startswith("two-ranks/")}


def test_nothing_changed(repo: Path) -> None:
    assert left() == set()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tasks/two-ranks/submissions/rejected/one.py", {"two-ranks/rejected/one"}),
        ("tasks/two-ranks/submissions/accepted/modules/net.py", {"two-ranks/accepted/modules"}),
        ("tasks/two-ranks/submissions/rejected/new.py", {"two-ranks/rejected/new"}),
        ("tasks/two-ranks/task.toml", OF_ONE_TASK),
        ("tasks/two-ranks/evaluate.py", OF_ONE_TASK),
        ("skeletons/two-ranks/train.py", OF_ONE_TASK),
        ("requirements.lock", EVERYTHING),
        ("containers/train.Dockerfile", EVERYTHING),
        ("README.md", set()),
        ("tests/test_x.py", set()),
        ("tasks/two-ranks/__pycache__/evaluate.pyc", set()),
    ],
)
@pytest.mark.parametrize("committed", [True, False])
def test_a_change_reaches_what_it_may_change(
    path: str, expected: set[str], committed: bool, repo: Path
) -> None:
    file = repo / path
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as text:
        text.write("# changed\n")
    base = git(repo, "rev-parse", "HEAD")
    if committed:
        git(repo, "add", ".")
        git(repo, "commit", "--quiet", "--allow-empty", "--message=second")
    assert left(base) == expected


def test_a_change_of_what_a_patch_stands_on_reaches_the_patch(repo: Path) -> None:
    submissions = repo / "tasks" / "two-ranks" / "submissions"
    (submissions / "rejected" / "near.patch").write_text(
        "--- accepted/plain.py\n+++ rejected/near.py\n@@ -1 +1,2 @@\n+x = 1\n print('hello')\n"
    )
    git(repo, "add", ".")
    git(repo, "commit", "--quiet", "--message=second")
    with (submissions / "accepted" / "plain.py").open("a") as text:
        text.write("# changed\n")
    assert left() == {"two-ranks/accepted/plain", "two-ranks/rejected/near"}


def test_deleted_and_moved_files_count(repo: Path) -> None:
    submissions = repo / "tasks" / "two-ranks" / "submissions"
    (submissions / "rejected" / "two.py").unlink()
    (submissions / "rejected" / "one.py").rename(submissions / "accepted" / "one.py")
    assert left() == {"two-ranks/accepted/one"}
    git(repo, "add", ".")
    git(repo, "commit", "--quiet", "--message=second")
    (repo / "tasks" / "two-ranks" / "statement.md").unlink()
    (repo / "tasks" / "two-ranks" / "statement.md").write_text("# Another\n")
    assert left() == (OF_ONE_TASK - {"two-ranks/rejected/two", "two-ranks/rejected/one"}) | {
        "two-ranks/accepted/one"
    }


def test_what_others_committed_since_the_branches_parted_is_theirs(repo: Path) -> None:
    git(repo, "switch", "--quiet", "--create", "mine")
    (repo / "tasks/two-ranks/submissions/rejected/one.py").write_text("x = 2\n")
    git(repo, "commit", "--quiet", "--all", "--message=mine")
    git(repo, "switch", "--quiet", "main")
    (repo / "requirements.lock").write_text("torch==2.10\n")
    git(repo, "commit", "--quiet", "--all", "--message=theirs")
    git(repo, "switch", "--quiet", "mine")
    assert left("main") == {"two-ranks/rejected/one"}


def test_a_change_of_the_judge_itself_reaches_everything(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repo / "grader" / "checks").mkdir(parents=True)
    (repo / "grader" / "checks" / "rule.py").write_text("x = 1\n")
    assert left() == set(), "nothing that runs or judges lies there"
    files = frozenset({repo / "grader" / "checks" / "rule.py"})
    monkeypatch.setattr("grader.catalog.submissions.changes.judging_files", lambda: files)
    assert left() == EVERYTHING


@pytest.mark.parametrize("folder", ["rules", "diagnoses"])
def test_a_change_of_what_the_course_judges_by_reaches_everything(repo: Path, folder: str) -> None:
    path = repo / "tasks" / folder / "house001_greeting.py"
    path.parent.mkdir()
    path.write_text("x = 1\n")
    assert left() == EVERYTHING
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message=more")
    assert left() == set()
    path.unlink()
    assert left() == EVERYTHING


def test_what_runs_and_what_judges_is_read_from_the_imports() -> None:
    running, judging = (
        {path.relative_to(PACKAGE).as_posix() for path in files()} for files in (running_files, judging_files)
    )
    assert {"launch/supervisor.py", "probe/install.py", "run/runtimes/docker.py", "pipeline.py"} <= running
    scorer = ("scorer/container_server", "scorer/run_scoring", "classifier")
    assert {f"evaluate/{name}.py" for name in scorer} <= running
    assert not any(path.startswith(("checks/rules/", "checks/source/", "web/", "store/")) for path in running)
    assert not running & {
        "judging/judge.py",
        "checks/policy.py",
        "evaluate/points/score.py",
        "report/json_report.py",
    }
    assert {
        "checks/rule.py",
        "checks/rules/data002_missing_set_epoch.py",
        "evaluate/points/score.py",
    } <= judging
    assert not any(path.startswith(("launch/", "web/", "store/", "report/", "worker/")) for path in judging)


@pytest.mark.parametrize(
    "decides",
    [
        *("run/class_labels.py", "run/hash_order.py", "run/registry.py"),
        *("model/run_options.py", "model/attempt_facts.py"),
        *("judging/second_look.py", "judging/attempt_folder.py", "checks/run/models/traced_steps.py"),
        *("evaluate/time/calibration.py", "evaluate/time/measured_run.py", "evaluate/time/timing.py"),
        *("evaluate/time/machine_watch.py", "evaluate/time/throughput.py"),
    ],
)
def test_what_decides_how_it_is_run_runs_too(decides: str) -> None:
    assert PACKAGE / decides in running_files()
    assert (PACKAGE / decides).is_file()


def test_whatever_the_pipeline_imports_itself_either_runs_or_only_judges() -> None:
    """A new import of the pipeline has to be placed: does it decide what is run?"""
    imported = package_files.imported_by(PACKAGE / "pipeline.py") - running_files()
    assert {path.relative_to(PACKAGE).as_posix() for path in imported} == {
        # The submission's text and the data set's version are in the key themselves.
        "catalog/data/datasets.py",
        "catalog/tasks/kept_tasks.py",
        "checks/limited_reading.py",
        "checks/diagnosis.py",
        "checks/rule.py",
        "judging/attempt.py",
        "judging/judge.py",
        # What it finds ends in an error, of which no evidence is kept.
        "judging/machine_fault.py",
        "judging/stored_evidence.py",
    }


@pytest.mark.parametrize("revision", ["nowhere", "--output=x", "", "HEAD~7"])
def test_an_unknown_revision_is_told(revision: str, repo: Path) -> None:
    with pytest.raises(UsageError, match="no such commit"):
        changes_since(revision)
    assert not list(repo.glob("x*"))


def test_outside_a_repository_it_is_told(task_folder: Path) -> None:
    with pytest.raises(UsageError, match="not in a git repository"):
        changes_since("HEAD")


def test_only_must_match_something(repo: Path) -> None:
    with pytest.raises(UsageError, match="no submission matches"):
        select([load_task("two-ranks")], only="nowhere")


@given(st.integers(0, 200), st.integers(1, 40))
def test_shards_have_every_item_once_and_are_of_one_size(num_items: int, count: int) -> None:
    items = range(num_items)
    parts = [VerifyShard(number, count).part(items) for number in range(1, count + 1)]
    assert sorted(item for part in parts for item in part) == list(items)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize(
    "text", ["0/3", "4/3", "1/0", "0/0", "-1/3", "1", "1/", "/3", "a/b", "1/3/5", "1 / 3", "²/3", ""]
)
def test_a_shard_that_cannot_be_is_told(text: str) -> None:
    with pytest.raises(UsageError, match="--shard"):
        parse_shard(text)


def test_a_shard_is_read() -> None:
    assert parse_shard("2/4") == VerifyShard(2, 4)
