"""All submissions as one archive: what is in it, who gets it, and that it is packed while it is sent."""

from __future__ import annotations

import csv
import io
import time
import tracemalloc
import zipfile
from collections.abc import Iterator

from grader.model.grade import Verdict
from grader.store.courses import courses, enrolments
from grader.store.events import audit_of
from grader.store.grading import reviews
from grader.store.people import people
from grader.web.archives.class_archive import ArchiveChoice, class_archive
from grader.web.archives.streamed_zip import ArchivedFile, streamed_zip
from tests.store.campus import verdict_of
from tests.web.conftest import School, Served


def archive(school: School, query: str = "", login: str = "ines") -> zipfile.ZipFile:
    answer = school.client(login).get(f"/courses/{school.course}/exports/submissions.zip{query}")
    assert answer.status_code == 200, answer.text
    found = zipfile.ZipFile(io.BytesIO(answer.content))
    assert found.testzip() is None
    return found


def manifest(found: zipfile.ZipFile) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(found.read("manifest.csv").decode("utf-8-sig"))))


def scripts(found: zipfile.ZipFile) -> dict[str, str]:
    return {name: found.read(name).decode() for name in found.namelist() if name != "manifest.csv"}


def test_current_is_what_counts_or_else_the_last_and_all_is_everything(school: School) -> None:
    school.judge("anna", "print('best')\n", grade=verdict_of(Verdict.ACCEPTED, 90.0))
    school.judge("anna", "print('worse')\n", grade=verdict_of(Verdict.REJECTED, 10.0))
    school.hand_in("ben", "print('waits')\n", task=school.tasks["ddp-fashion"])
    school.hand_in("ines", "print('staff tries')\n")
    best, waits = "anna/ddp-toy-cpu/attempt-01/train.py", "ben/ddp-fashion-cpu/attempt-01/train.py"
    assert scripts(archive(school)) == {best: "print('best')\n", waits: "print('waits')\n"}
    everything = archive(school, "?which=all")
    assert set(scripts(everything)) == {best, "anna/ddp-toy-cpu/attempt-02/train.py", waits}
    first, second, third = manifest(everything)
    assert (first["login"], first["verdict"], first["points"], first["counts"]) == (
        "anna",
        "accepted",
        "90",
        "yes",
    )
    assert (second["number"], second["verdict"], second["counts"]) == ("2", "rejected", "")
    assert (third["folder"], third["state"], third["points"]) == (
        "ben/ddp-fashion-cpu/attempt-01",
        "queued",
        "",
    )
    assert set(scripts(archive(school, f"?task={school.task}"))) == {best}


def test_the_manifest_says_what_counts_after_an_override(school: School) -> None:
    number = school.judge("anna", grade=verdict_of(Verdict.REJECTED, 40.0))
    reviews.override(school.store, number, Verdict.ACCEPTED, 75.0, "seen", actor_id=school.people["ines"])
    (line,) = manifest(archive(school))
    assert (line["verdict"], line["points"]) == ("accepted", "75")


def test_under_pseudonyms_nobody_is_named_and_everybody_is_the_same_again(school: School) -> None:
    school.judge("anna")
    school.judge("ben")
    once, again = (archive(school, "?names=pseudonym&which=all") for _ in range(2))
    assert once.namelist() == again.namelist()
    assert len({name.split("/")[0] for name in scripts(once)}) == 2
    for text in (once.read("manifest.csv").decode(), *once.namelist()):
        assert "anna" not in text.casefold()
        assert "ben" not in text.casefold()


def test_hostile_logins_lead_nowhere_and_no_cell_starts_a_formula(school: School) -> None:
    for login in ("../../etc", "a/b", "a?b", "=cmd"):
        school.people[login] = people.add_person(school.store, login, "=1+1")
        enrolments.enrol(school.store, school.course, school.people[login])
        school.judge(login)
    found = archive(school)
    assert len(set(scripts(found))) == 4
    assert not any(".." in name.split("/") or name.startswith("/") for name in found.namelist())
    assert not any(cell.startswith("=") for line in manifest(found) for cell in line.values())


def test_only_staff_gets_it_of_this_course_alone_and_the_audit_has_it(school: School) -> None:
    school.hand_in("anna")
    school.hand_in("olga", task=school.other_task)
    place = f"/courses/{school.course}/exports/submissions.zip"
    for login in ("anna", "otto"):
        assert school.client(login).get(place).status_code == 404
    ines = school.client("ines")
    assert ines.get(f"{place}?task={school.other_task}").status_code == 404
    assert {name.split("/")[0] for name in scripts(archive(school))} == {"anna"}
    (event,) = audit_of(school.store, f"course:{school.course}", kind="submissions_exported")
    assert event.actor_id == school.people["ines"]
    assert event.data["which"] == "current"


def test_a_class_of_any_size_takes_the_memory_of_one_submission() -> None:
    text = "x = 1  # some of a script\n" * 4000

    def files() -> Iterator[ArchivedFile]:
        for number in range(600):
            yield ArchivedFile(f"learner{number:04}/train.py", f"{number}{text}".encode())

    whole = 0
    tracemalloc.start()
    for part in streamed_zip(files()):
        whole += len(part)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert whole > 100_000
    assert peak < 4 << 20, "600 entries of 100 kB are 60 MB; only their directory may stay"


def test_whoever_goes_away_ends_it(served: Served) -> None:
    """Nothing more is read once the client has gone, and the database is free all the while."""
    school = served.school
    noise = "\n".join(f"value_{n} = {hash((n, 'noise'))!r}" for n in range(4_000))
    for number in range(100):
        school.hand_in("anna", f"print({number})\n{noise[number:]}")
    tasks = courses.tasks_of(school.store, school.course)
    total = sum(1 for _ in class_archive(school.store, school.course, ArchiveChoice(tasks, every=True)))
    assert total == 101
    read: list[str] = []
    from sqlalchemy import event

    event.listen(school.store.engine, "before_cursor_execute", lambda *args: read.append(args[2]))
    cookies = dict(school.client("ines").cookies.items())
    with (
        served.client(cookies=cookies) as client,
        client.stream("GET", f"/courses/{school.course}/exports/submissions.zip?which=all") as answer,
    ):
        assert answer.status_code == 200
        next(answer.iter_raw())
    seen, quiet_since = len(read), time.monotonic()
    while time.monotonic() - quiet_since < 1.0:
        time.sleep(0.05)
        if len(read) != seen:
            seen, quiet_since = len(read), time.monotonic()
    sources = [one for one in read if "sources" in one]
    assert len(sources) < 100, "the rest was not read"
    assert school.client("ines").get(f"/courses/{school.course}/exports").status_code == 200
