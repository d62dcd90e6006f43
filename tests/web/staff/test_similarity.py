"""Submissions that look alike: found where they share what is their own, silent about what everybody was given."""

from __future__ import annotations

import html
import re
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from grader.errors import UsageError
from grader.store.courses import enrolments
from grader.store.courses.courses import AssignedTask
from grader.store.people import people
from grader.store.people.erasure import erase
from grader.web.similarity import comparison_process
from grader.web.similarity.comparing_thread import ComparingThread
from grader.web.similarity.comparison import ComparedSubmission, ComparisonRequest
from grader.web.similarity.comparison_process import compare_in_process
from grader.web.staff.class_similarity import compare_class
from tests.web.conftest import School

SHARED = """
def tempered(scores, heat):
    weights = [value / heat for value in scores]
    highest = max(weights)
    raised = [2.718281828 ** (value - highest) for value in weights]
    whole = sum(raised)
    ranked = sorted(((value / whole, index) for index, value in enumerate(raised)), reverse=True)
    return [index for share, index in ranked if share > 0.01]


class KeepsTheBest:
    def __init__(self, patience):
        self.best, self.patience, self.waited = None, patience, 0

    def better(self, value):
        if self.best is None or value > self.best + 1e-4:
            self.best, self.waited = value, 0
            return True
        self.waited += 1
        return self.waited < self.patience
"""
OWN = "\n".join(f"setting_{n} = ({n} * 7 + {n % 3}) % 11 if {n} > 4 else -{n}" for n in range(12))


def skeleton(school: School, name: str = "ddp-toy") -> str:
    root = Path(__file__).resolve().parents[3] / "skeletons" / name
    return (root / "train.py").read_text(encoding="utf-8")


def renamed(text: str) -> str:
    return (
        text.replace("tempered", "cool")
        .replace("raised", "powers")
        .replace("value", "v")
        .replace("KeepsTheBest", "Stopper")
    )


def submissions(*texts: str) -> tuple[ComparedSubmission, ...]:
    return tuple(
        ComparedSubmission(number, (("train.py", text),)) for number, text in enumerate(texts, start=1)
    )


def test_renaming_hides_nothing_and_the_lines_are_named(school: School) -> None:
    base = skeleton(school)
    first, second = f"{base}\n{SHARED}", f"{OWN}\n\n{base}\n{renamed(SHARED)}"
    answer = compare_in_process(ComparisonRequest(submissions(first, second, f"{base}\n{OWN}"), (base,)))
    pair = answer.pairs[0]
    assert {pair.a, pair.b} == {1, 2}
    assert pair.share > 0.8
    for text, passages in ((first, pair.passages_a), (second, pair.passages_b)):
        lines = text.split("\n")
        marked = {line for one in passages for line in range(one.first, one.last + 1)}
        shared = {
            n
            for n, line in enumerate(lines, start=1)
            if line.strip() and line in f"{SHARED}{renamed(SHARED)}".split("\n")
        }
        assert len(marked & shared) > 0.7 * len(shared)
        assert len(marked - shared) < 0.4 * len(marked), "what is the skeleton's is not marked"


def test_the_skeleton_alone_is_no_resemblance(school: School) -> None:
    base = skeleton(school)
    assert not compare_in_process(
        ComparisonRequest(submissions(base, base, f"{base}\n# mine\n"), (base,))
    ).pairs


def test_what_much_of_the_class_writes_is_no_resemblance() -> None:
    own = [
        "\n".join(
            f"own_{who}_{n} = [{who}, {n}] + list(range({who * n}))[::{who + 1}] or {{'{who}': {n}}}"
            for n in range(3)
        )
        for who in range(12)
    ]
    answer = compare_in_process(ComparisonRequest(submissions(*(f"{SHARED}\n{text}" for text in own)), ()))
    assert not any(pair.num_lines > 8 for pair in answer.pairs), (
        "the idiom of a whole class is not two people's"
    )


def test_a_group_that_hands_in_the_same_is_no_idiom() -> None:
    own = [f"{OWN}\nalone_{who} = [{who}] * {who + 3} + list(range({who}))\n" for who in range(6)]
    answer = compare_in_process(
        ComparisonRequest(submissions(*[SHARED] * 5, *[renamed(SHARED)] * 5, *own), ())
    )
    assert {(pair.a, pair.b) for pair in answer.pairs} >= {(1, 2), (1, 6), (9, 10)}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "x",
        "not python at all ((((",
        "\x00\x01\udc80",
        "\r\n\r\nx = 1\r\n" * 50,
        "é" * 500,
        "   indented = 1\n" * 40,
    ],
)
def test_any_text_can_be_compared(text: str) -> None:
    answer = compare_in_process(ComparisonRequest(submissions(text, text + SHARED, SHARED), ()))
    assert answer.num_compared == 3
    for pair in answer.pairs:
        for passage in (*pair.passages_a, *pair.passages_b):
            assert 1 <= passage.first <= passage.last


def test_what_is_huge_is_left_out_and_said() -> None:
    answer = compare_in_process(ComparisonRequest(submissions("x = 1\n" * 100_000, SHARED, SHARED), ()))
    assert answer.too_large == (1,)
    assert [(pair.a, pair.b) for pair in answer.pairs] == [(2, 3)]


def test_more_than_the_cap_is_refused() -> None:
    with pytest.raises(UsageError, match="at most"):
        compare_in_process(
            ComparisonRequest(submissions(*["x"] * (comparison_process.MAX_SUBMISSIONS + 1)), ())
        )


def test_comparing_draws_nothing_opens_no_browser_and_reads_no_folder() -> None:
    """It happens in a process that never loads what draws."""
    import subprocess

    code = (
        "import sys, webbrowser\n"
        "def refuse(*a, **k): raise SystemExit('opened a browser')\n"
        "webbrowser.open = refuse\n"
        "import grader.web.similarity.__main__\n"
        "from grader.web.similarity.fingerprints import compare\n"
        "from grader.web.similarity.comparison import ComparedSubmission, ComparisonRequest\n"
        f"works = tuple(ComparedSubmission(n, (('train.py', {SHARED!r}),)) for n in (1, 2))\n"
        "seen = []\n"
        "sys.addaudithook(lambda event, args: seen.append(args[0]) if event == 'open' else None)\n"
        "assert compare(ComparisonRequest(works, ())).pairs\n"
        "opened = [one for one in seen if isinstance(one, str) and not one.endswith(('.py', '.pyc'))]\n"
        "assert not opened, opened\n"
        "assert not hasattr(sys.modules['matplotlib.pyplot'], 'figure')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_page_names_pairs_and_accuses_nobody(school: School) -> None:
    base = skeleton(school)
    a = school.hand_in("anna", f"{base}\n{SHARED}")
    b = school.hand_in("ben", f"{base}\n{renamed(SHARED)}")
    ines, at = school.client("ines"), f"/courses/{school.course}/similarity"
    assert "Not compared yet" in ines.get(at).text
    assert ines.post(at, data={"task": str(school.task)}).status_code == 303
    answer = ines.get(f"{at}?task={school.task}")
    text = html.unescape(answer.text)
    assert "Anna" in text
    assert "Ben" in text
    found = re.search(rf"{at}/{school.task}/(\d+)/(\d+)", answer.text)
    assert found is not None
    assert {int(found[1]), int(found[2])} == {a, b}
    side = ines.get(found[0])
    assert side.status_code == 200
    assert "def cool" in re.sub(r"<[^>]+>", "", side.text)
    for page in (text, ines.get(at).text, side.text):
        assert not re.search(r"plagiar|cheat|guilt|suspect|offen[cd]|fraud|stole", page, re.IGNORECASE)


def test_nobody_else_sees_it_and_no_other_course_is_compared(school: School) -> None:
    a, theirs = school.hand_in("anna", SHARED), school.hand_in("olga", SHARED, task=school.other_task)
    at = f"/courses/{school.course}/similarity"
    for login in ("anna", "otto"):
        client = school.client(login)
        assert client.get(at).status_code == 404
        assert client.post(at, data={"task": str(school.task)}).status_code == 404
        assert client.get(f"{at}/{school.task}/{a}/{theirs}").status_code == 404
    ines = school.client("ines")
    assert ines.post(at, data={"task": str(school.other_task)}).status_code == 404
    assert ines.get(f"{at}/{school.task}/{a}/{theirs}").status_code == 404


def test_only_the_last_submission_of_each_learner_counts(school: School) -> None:
    school.hand_in("anna", SHARED)
    school.hand_in("anna", OWN)
    school.hand_in("ben", renamed(SHARED))
    school.hand_in("ines", SHARED)
    gone = people.add_person(school.store, "gone", "Gone")
    enrolments.enrol(school.store, school.course, gone)
    school.people["gone"] = gone
    school.hand_in("gone", SHARED)
    enrolments.leave(school.store, school.course, gone, actor_id=None)
    ines, at = school.client("ines"), f"/courses/{school.course}/similarity"
    ines.post(at, data={"task": str(school.task)})
    assert "No two of them share a passage of their own" in ines.get(at).text


def background(school: School) -> ComparingThread:
    compare = partial(compare_class, school.store, school.files)
    return ComparingThread(school.store, compare, least_s=0.0)


def test_what_is_handed_in_is_compared_by_itself_and_the_page_reads_it(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread, over = background(school), threading.Event()
    school.hand_in("anna", SHARED)
    assert thread.turn(over) == 0, "one alone is like nobody"
    school.hand_in("ben", renamed(SHARED))
    assert thread.turn(over) == 1
    assert thread.turn(over) == 0, "nothing is new"
    monkeypatch.setattr(comparison_process, "_run_comparison", None)
    ines, at = school.client("ines"), f"/courses/{school.course}/similarity"
    text = ines.get(at).text
    found = re.search(rf"{at}/{school.task}/(\d+)/(\d+)", text)
    assert found is not None
    assert ines.get(found[0]).status_code == 200, "side by side is kept, too"
    school.hand_in("anna", OWN)
    assert "1 attempt came afterwards" in ines.get(at).text


def test_earlier_courses_are_compared_and_named_to_who_teaches_them_alone(school: School) -> None:
    school.hand_in("anna", f"{SHARED}\n# mine\n")
    school.hand_in("ben", OWN)
    school.hand_in("olga", renamed(SHARED), task=school.other_task)
    background(school).turn(threading.Event())
    at = f"/courses/{school.course}/similarity"
    text = school.client("ines").get(at).text
    assert "Olga" not in text
    assert "1 more pair with somebody of a course that you do not teach" in text
    pages = {login: school.client(login).get(at).text for login in ("ada",)}
    assert "Olga" in pages["ada"]
    assert "Another course" in pages["ada"]
    found = re.search(rf"{at}/{school.task}/\d+/\d+", pages["ada"])
    assert found is not None
    assert school.client("ada").get(found[0]).status_code == 200
    assert school.client("ines").get(found[0]).status_code == 404


def test_who_is_erased_is_in_no_pair(school: School) -> None:
    school.hand_in("anna", SHARED)
    school.hand_in("ben", renamed(SHARED))
    background(school).turn(threading.Event())
    erase(school.store, school.files, school.people["ben"], actor_id=None)
    at = f"/courses/{school.course}/similarity"
    assert "No two of them share a passage of their own" in school.client("ines").get(at).text


def test_a_class_that_cannot_be_compared_is_not_tried_over_and_over(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    school.hand_in("anna", SHARED)
    school.hand_in("ben", OWN)
    tried: list[int] = []

    def fails(task: AssignedTask) -> None:
        tried.append(task.id)
        raise UsageError("too much at once")

    thread = ComparingThread(school.store, fails, least_s=0.0)
    for _ in range(3):
        assert thread.turn(threading.Event()) == 0
    assert tried == [school.task]
