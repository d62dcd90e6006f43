"""`grader login` where people have accounts of their institution: nobody is asked for a password in vain."""

from __future__ import annotations

from dataclasses import replace

from grader.store.tables.api_token import Scope
from grader.web.sign_on.provider import Provider, SignOnSettings
from tests.client.conftest import PASSWORD, Cli, Served

UNI = Provider("uni", "University account", "https://login.uni.example", "grader")


def signing_on(served: Served, *, local_passwords: bool) -> None:
    service = replace(served.school.service, sign_on=SignOnSettings((UNI,), local_passwords))
    served.school.app.state.service = service


def test_where_passwords_are_off_it_asks_for_a_token_alone(served: Served, cli: Cli) -> None:
    signing_on(served, local_passwords=False)
    token = served.school.token("anna", Scope.SUBMIT)
    done = cli("login", served.url, typed=token + "\n")
    assert done.returncode == 0, done.stderr
    assert f"Sign in with University account at {served.url}/account" in done.stderr
    assert "as anna" in done.stdout
    assert cli("status").returncode == 0


def test_where_both_are_there_it_says_how_the_others_come_in(served: Served, cli: Cli) -> None:
    signing_on(served, local_passwords=True)
    done = cli("login", served.url, "--login", "anna", typed=PASSWORD + "\n")
    assert done.returncode == 0, done.stderr
    assert f"grader login {served.url} --token" in done.stderr
