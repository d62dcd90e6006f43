"""NUL and halves of characters, wherever somebody can put them: refused before anything is asked, on both databases."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import iter_route_contexts

from grader.store import schema
from grader.store.database import Store
from grader.store.people import people
from grader.web.documents.document import Received
from tests.store.conftest import running_server, server_programs
from tests.web.conftest import PASSWORD, School, make_school
from tests.web.routes import ways


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def somewhere(
    request: pytest.FixtureRequest, empty_database: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[School]:
    """The two courses, in a database of either kind."""
    folder = tmp_path_factory.mktemp("plain")
    if request.param == "sqlite":
        (folder / "grader.db").write_bytes(empty_database.read_bytes())
        school = make_school(folder / "grader.db", folder)
        yield school
        school.store.close()
        return
    programs = server_programs()
    if programs is None:
        pytest.skip("no PostgreSQL server found; `apt-get install postgresql` brings one")
    with running_server(programs, "/tmp", "fsync=off") as server:
        server.sql("CREATE DATABASE school")
        store = Store(server.url("school"))
        schema.upgrade(store)
        store.close()
        school = make_school(server.url("school"), folder)
        yield school
        school.store.close()


@pytest.mark.parametrize("place", ["/admin/people?q=%00", "/admin/people?q=an%00na", "/admin/people?%00=1"])
def test_a_search_for_no_text_is_refused(somewhere: School, place: str) -> None:
    answer = somewhere.client("ada").get(place)
    assert answer.status_code == 400
    assert "no text has" in answer.text


def test_no_query_of_any_route_takes_it(somewhere: School) -> None:
    ada = somewhere.client("ada")
    values = {"course_id": somewhere.course, "course_task_id": somewhere.task}
    for way in ways(somewhere.app):
        if way.method == "GET" and not way.path.endswith(("z", "/metrics", "openapi.json")):
            assert ada.get(f"{way.address(values)}?some=%00").status_code == 400, way.path


def test_no_form_of_any_route_takes_it(somewhere: School) -> None:
    """Nor in another encoding, where it comes as something else."""
    ada = somewhere.client("ada")
    values = {"course_id": somewhere.course, "course_task_id": somewhere.task}
    halves = b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n+2AA-\r\n--x--\r\n"
    for way in ways(somewhere.app):
        if way.changes and not way.is_api:
            address = way.address(values)
            assert ada.post(address, data={"some": "a\0"}).status_code == 400, way.path
            kind = {"content-type": "multipart/form-data; boundary=x; charset=utf-7"}
            assert ada.post(address, content=halves, headers=kind).status_code == 400, way.path


def test_no_path_with_it_is_there(somewhere: School) -> None:
    ada = somewhere.client("ada")
    for way in ways(somewhere.app):
        if "{" in way.path and way.method == "GET":
            values = dict.fromkeys(way.parameters, "%00")
            assert ada.get(way.address(values)).status_code == 404, way.path


def test_no_document_holds_it(somewhere: School) -> None:
    """Whatever programs send is made of documents that refuse it by themselves."""
    for context in iter_route_contexts(somewhere.app.routes):
        body = getattr(context, "body_field", None)
        if body is not None and str(context.path).startswith("/api/"):
            assert issubclass(body.field_info.annotation, Received), context.path
    token = somewhere.program(somewhere.token("anna"))
    submits = f"/api/v1/course-tasks/{somewhere.task}/submissions"
    files = [{"path": "train.py", "text": "print(1)\n"}]
    for odd in ("a\0", "\ud800"):
        tried = (
            token.post("/api/v1/tokens", **_json({"login": odd, "password": PASSWORD, "name": "x"})),
            token.post("/api/v1/tokens", **_json({"login": "anna", "password": PASSWORD, "name": odd})),
            token.post(submits, **_json({"name": odd, "files": files})),
            token.post(submits, **_json({"files": [{"path": odd, "text": "print(1)\n"}]})),
        )
        assert [one.status_code for one in tried] == [422] * 4, [one.text for one in tried]


def test_nobody_gets_a_login_with_it(somewhere: School) -> None:
    ada, anna = somewhere.client("ada"), somewhere.client()
    for page, client, data in (
        ("/admin/people", ada, {"login": "eve\0", "name": "Eve", "role": "learner"}),
        ("/sign-in", anna, {"login": "anna\0", "password": PASSWORD}),
    ):
        token = client.get("/sign-in" if client is anna else "/admin/people").text
        csrf = token.split('name="csrf" value="')[1].split('"')[0]
        assert client.post(page, data={**data, "csrf": csrf}).status_code == 400
    assert [one.login for one in people.accounts(somewhere.store, "eve")] == []


def _json(value: object) -> dict[str, Any]:
    """As a request's body, in ASCII; halves of characters could not be sent otherwise."""
    return {"content": json.dumps(value).encode(), "headers": {"content-type": "application/json"}}
