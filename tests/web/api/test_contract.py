"""The API keeps to what its OpenAPI description says, whatever is sent to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from grader.store.tables.api_token import Scope
from tests.web.conftest import School, make_school
from tests.web.grades import graded


@pytest.fixture(scope="module")
def campus(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[School]:
    folder = tmp_path_factory.mktemp("contract")
    database = folder / "grader.db"
    database.write_bytes(empty_database.read_bytes())
    school = make_school(database, folder)
    # Numbers that examples often take lead to something.
    for _ in range(3):
        school.judge("anna", grade=graded(), files={"report.html": b"<p>", "report-staff.html": b"<p>"})
    yield school
    school.store.close()


CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize("login", ["anna", "ines"])
def test_answers_are_as_described(campus: School, login: str, mode: GenerationMode) -> None:
    described = schemathesis.openapi.from_asgi("/api/v1/openapi.json", campus.app)
    shown = {"Authorization": f"Bearer {campus.token(login, Scope.MANAGE)}"}
    tried = 0
    for found in described.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(max_examples=12, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
        def holds(case: Any) -> None:
            nonlocal tried
            tried += 1
            case.call_and_validate(headers=shown, checks=CHECKS)

        try:
            holds()
        except Unsatisfiable:
            # Nothing to get wrong: an operation without parameters has no negative examples.
            assert mode is GenerationMode.NEGATIVE, operation.label
    assert tried > 50


def test_every_operation_says_how_it_refuses(campus: School) -> None:
    document = campus.client().get("/api/v1/openapi.json").json()
    operations = [one for path in document["paths"].values() for one in path.values()]
    assert len(operations) >= 12
    for one in operations:
        assert {"401", "403", "404", "422", "429", "503"} <= set(one["responses"]), one["operationId"]
        assert one["summary"]
