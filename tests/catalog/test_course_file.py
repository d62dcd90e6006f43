"""A course's author is told everything that is wrong with the file at once, with lines; a whole course loads."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from grader.catalog.courses.course_file import course_files, load_course, parse_course
from grader.catalog.courses.course_notes import course_notes
from grader.catalog.tasks.task_folders import find_tasks, load_task
from grader.errors import TaskError, UsageError

PROFILES = {"first": ("cpu", "gpu"), "second": ("cpu",), "third": ("cpu",)}
WHOLE = """\
name = "three"
title = "Three tasks"
about = "One after the other."

[[tasks]]
task = "first"
weight = 20
opens = "0d"
due = "7d"

[[tasks]]
task = "second"
weight = 30
required = false
after = ["first"]
opens = "1d 2h 30m"
due = "7d"
late = "reduced"
late_loss = 0.1
late_days = 3

[[tasks]]
task = "third"
weight = 50
profile = "cpu"
after = ["first", "second"]
"""


def problems(old: str, new: str) -> list[tuple[int, str]]:
    assert WHOLE.count(old) == 1
    return [(p.line, p.text) for p in parse_course(WHOLE.replace(old, new), PROFILES)[1]]


def test_a_whole_course(task_folder: Path) -> None:
    path = task_folder.parent / "course.toml"
    path.write_text(
        WHOLE.replace('"first"', '"two-ranks"', 1)[: WHOLE.index('[[tasks]]\ntask = "second"') + 4]
    )
    text = path.read_text().replace("weight = 20", "weight = 100")
    path.write_text(text)
    course = load_course()
    assert (course.name, course.title, course.path) == ("three", "Three tasks", path)
    (item,) = course.items
    assert (item.task, item.profile, item.weight, item.required) == ("two-ranks", "cpu", 100, True)
    assert (item.opens, item.due) == (timedelta(0), timedelta(days=7))
    assert load_course(Path("course")) == load_course(path) == course
    (task_folder.parent / "another.toml").write_text(text)
    assert [p.name for p in course_files()] == ["course.toml", "another.toml"]


def test_terms_are_read_as_written() -> None:
    parsed, found = parse_course(WHOLE, PROFILES)
    assert found == []
    assert parsed is not None
    assert [t.after for t in parsed.tasks] == [[], ["first"], ["first", "second"]]
    assert parsed.late_days is None
    second = parsed.tasks[1]
    assert (second.late, second.late_loss, second.late_days) == ("reduced", 0.1, 3)


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ('task = "third"', 'task = "thirt"', 23, "did you mean third?"),
        ('task = "third"', 'task = "first"', 23, "stands in this course already"),
        ('profile = "cpu"', 'profile = "tpu"', 25, "third has no profile 'tpu'; it has cpu"),
        ("weight = 50", "weight = 60", 5, "the weights sum to 110; make them 100"),
        ('after = ["first"]', 'after = ["fourth"]', 15, "is not in this course"),
        ('after = ["first"]', 'after = ["third"]', 15, "comes later in the order"),
        ('after = ["first"]', 'after = ["second"]', 15, "can't wait for itself"),
        ('opens = "1d 2h 30m"', 'opens = "8d"', 17, "due before it opens"),
        ('opens = "1d 2h 30m"', 'opens = "tomorrow"', 16, 'Write `opens = "7d"`'),
        ("late_loss = 0.1\n", "", 18, "by how much?"),
        (
            'late = "reduced"\n',
            "",
            18,
            "says nothing where late is 'closed'; write `late = \"reduced\"`, or remove it",
        ),
        ('late = "reduced"', 'late = "accepted"', 19, "late_loss: says nothing where late is 'accepted'"),
        (
            'late = "reduced"\nlate_loss = 0.1\n',
            "",
            18,
            'late is \'closed\'; write `late = "accepted"` or `late = "reduced"`, or remove it',
        ),
        ('opens = "0d"\ndue = "7d"', 'opens = "0d"\ngrace_minutes = 5', 9, "says nothing without `due`"),
        ('other."\n', 'other."\nlate_days = { total = 2, per_task = 5 }\n', 4, "more than the 2 in all"),
        ('other."\n', 'other."\nlate_days = { total = 0 }\n', 4, "late_days.total"),
        ("required = false", "requierd = false", 14, "Write `required`"),
        ('opens = "0d"\ndue = "7d"', 'opens = "0d"\ndue = "9d"', 15, "'first' comes first and is due later"),
    ],
)
def test_each_mistake_is_told_with_its_line(old: str, new: str, line: int, said: str) -> None:
    found = problems(old, new)
    assert [at for at, text in found if said in text] == [line], found


def test_all_mistakes_are_told_at_once() -> None:
    text = (
        WHOLE.replace("weight = 20", "weight = 21")
        .replace('"third"', '"nobody"')
        .replace("title =", "titel =")
    )
    found = parse_course(text, PROFILES)[1]
    assert [p.line for p in found] == sorted(p.line for p in found)
    assert len(found) == 4, [p.text for p in found]


def test_the_courses_of_this_checkout_run_on_cores_in_a_room_and_on_gpus() -> None:
    profiles = {name: tuple(p.name for p in load_task(name).profiles) for name in find_tasks()}
    for path in course_files():
        text = path.read_text()
        assert text.count('profile = "cpu"\n') == 1
        for profile in ("cpu", "workshop", "gpu"):
            written = text.replace('profile = "cpu"\n', f'profile = "{profile}"\n')
            assert parse_course(written, profiles)[1] == [], path


def test_no_such_course_and_no_toml(task_folder: Path) -> None:
    with pytest.raises(UsageError, match="no course file"):
        load_course(Path("nowhere"))
    (task_folder.parent / "course.toml").write_text("name = \n")
    with pytest.raises(TaskError, match=r"course\.toml:1: not TOML"):
        load_course()


def test_a_task_that_no_course_of_the_folder_sets_is_noted(task_folder: Path) -> None:
    lines = 'name = "{0}"\ntitle = "{0}"\nabout = "x"\n\n[[tasks]]\ntask = "{1}"\nweight = 100\n'
    other = shutil.copytree(task_folder, task_folder.parent / "left-out")
    (other.parent / "course.toml").write_text(lines.format("one", task_folder.name))
    course = load_course()
    (note,) = course_notes(course, ())
    assert note.startswith("left-out/ is a task that no course sets.")
    assert "course.toml" in note
    (other.parent / "second.toml").write_text(lines.format("two", "left-out"))
    assert course_notes(course, ()) == ()
