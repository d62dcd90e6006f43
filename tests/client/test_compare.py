"""`grader compare`: what changed since the attempt before, in a terminal and for programs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from grader.model.finding import Finding
from grader.model.grade import Verdict
from grader.report.audience import Audience
from grader.report.json_report import to_json
from grader.store.grading.grades import new_grade
from grader.store.tables.api_token import Scope
from tests.client.conftest import Cli, Served
from tests.report import factory


@pytest.fixture
def anna(served: Served) -> dict[str, str]:
    """A key of hers that only reads."""
    return {"GRADER_URL": served.url, "GRADER_TOKEN": served.school.token("anna", Scope.READ)}


def judge(served: Served, text: str, verdict: Verdict, *findings: Finding, login: str = "anna") -> int:
    grade = replace(factory.accepted().grade, verdict=verdict, findings=findings, checks=())
    document = to_json(grade, audience=Audience.STAFF)
    return served.school.judge(login, text, new_grade(grade, document))


def test_the_latest_attempt_is_compared_with_the_one_before(
    served: Served, cli: Cli, anna: dict[str, str]
) -> None:
    first = judge(served, "import os\nshuffle = True\n", Verdict.REJECTED, factory.DATA001, factory.TRUST002)
    hostile = "# \x1b[2J\u202e"
    second = judge(served, f"import os\nsampler = 1\n{hostile}\n", Verdict.ACCEPTED, factory.IO002)
    served.school.hand_in("anna")
    done = cli("compare", **anna)
    assert done.returncode == 0, done.stderr
    for words in (
        f"attempt {first}  Not accepted yet: ",
        f"attempt {second}  Accepted: ",
        "Gone\n  DATA001  Every rank",
        "New\n  IO002  Every rank",
        "train.py:36",
        "\n-shuffle = True\n+sampler = 1\n",
    ):
        assert words in done.stdout, f"{words!r} in {done.stdout}"
    assert "TRUST" not in done.stdout
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout
    backwards = cli("compare", str(first), str(second), **anna)
    assert "Gone\n  IO002" in backwards.stdout
    told = json.loads(cli("compare", str(second), "--json", **anna).stdout)
    assert (told["schema"], told["attempt_id"], told["since"]) == (1, second, first)
    assert [one["code"] for one in told["went"]] == ["DATA001"]


def test_where_there_is_nothing_to_compare_it_says_so(served: Served, cli: Cli, anna: dict[str, str]) -> None:
    waiting = served.school.hand_in("anna")
    none = cli("compare", **anna)
    assert (none.returncode, "none of your latest attempts is judged" in none.stderr) == (2, True)
    early = cli("compare", str(waiting), **anna)
    assert (early.returncode, "is not judged" in early.stderr) == (2, True)
    served.school.client("anna").post(f"/attempts/{waiting}/cancel")
    only = judge(served, "print(1)\n", Verdict.REJECTED)
    alone = cli("compare", **anna)
    assert alone.returncode == 0, alone.stderr
    assert f"Attempt {only} has none before it" in alone.stdout
    bens = judge(served, "print(2)\n", Verdict.REJECTED, login="ben")
    theirs = cli("compare", str(only), str(bens), **anna)
    assert (theirs.returncode, "no other judged attempt" in theirs.stderr) == (2, True)
    assert cli("compare", str(bens), **anna).returncode == 2
