"""A token for a password: for its owner alone, no further than handing in, and not by guessing."""

from __future__ import annotations

from grader.store.people import people, tokens
from grader.store.tables.api_token import Scope
from tests.client.conftest import PASSWORD, School


def ask(school: School, login: str, password: str, **more: str) -> tuple[int, dict[str, object]]:
    answer = school.program(None).post("/api/v1/tokens", json={"login": login, "password": password, **more})
    return answer.status_code, answer.json() | {"retry_after": answer.headers.get("retry-after")}


def test_a_token_reads_and_hands_in_and_manages_nothing(school: School) -> None:
    status, told = ask(school, "ines", PASSWORD, name="laptop")
    assert (status, told["scope"], told["name"]) == (201, "submit", "laptop")
    program = school.program(str(told["token"]))
    assert program.get("/api/v1/me").json()["login"] == "ines"
    staff_only = f"/api/v1/attempts/{school.judge('anna')}/regrade"
    assert program.post(staff_only).status_code == 403
    assert school.program(school.token("ines", Scope.MANAGE)).post(staff_only).status_code == 202


def test_wrong_passwords_and_unknown_logins_are_told_alike(school: School) -> None:
    wrong, unknown = ask(school, "anna", "not this one"), ask(school, "nobody", "not this one")
    assert wrong == unknown
    assert wrong[0] == 401


def test_guessing_is_slowed_down(school: School) -> None:
    answers = [ask(school, "anna", f"guess number {number}") for number in range(12)]
    status, told = answers[-1]
    assert status == 429
    assert int(str(told["retry_after"])) > 0
    assert ask(school, "anna", PASSWORD)[0] == 429, "not even the right one, until some time has passed"
    assert ask(school, "ben", PASSWORD)[0] == 201, "others are not locked out"


def test_a_one_time_password_has_to_be_changed_first(school: School) -> None:
    anna = school.people["anna"]
    people.set_password(school.store, anna, "read out aloud once", must_change=True, actor_id=None)
    status, told = ask(school, "anna", "read out aloud once")
    assert status == 403
    assert "browser" in str(told)
    assert tokens.tokens_of(school.store, anna) == ()


def test_a_token_ends_itself_however_far_it_goes(school: School) -> None:
    for scope in (Scope.READ, Scope.MANAGE):
        program = school.program(school.token("anna", scope))
        assert program.delete("/api/v1/tokens").json() == {"revoked": True}
        assert program.get("/api/v1/me").status_code == 401
        assert program.delete("/api/v1/tokens").status_code == 401
    assert school.program(None).delete("/api/v1/tokens").status_code == 401
