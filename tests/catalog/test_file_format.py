"""The pages of task.toml and course.toml tell every key, and what they write can be read."""

from __future__ import annotations

import re
import tomllib

import pytest
from pydantic import BaseModel

from grader.catalog.courses.course_schema import CourseTable
from grader.catalog.formats.file_format import format_page
from grader.catalog.formats.problems import table_in
from grader.catalog.tasks.task_schema import TaskFile


def keys(table: type[BaseModel], seen: set[type[BaseModel]]) -> set[str]:
    seen.add(table)
    below = [
        t for field in table.model_fields.values() if (t := table_in(field.annotation)) and t not in seen
    ]
    return set(table.model_fields).union(*(keys(inner, seen) for inner in below))


@pytest.mark.parametrize(("file", "schema"), [("task.toml", TaskFile), ("course.toml", CourseTable)])
def test_a_page_tells_every_key_as_it_is_written(file: str, schema: type[BaseModel]) -> None:
    page = format_page(file, schema)
    lines = re.findall(r"^- `([^`]+)`", page, flags=re.MULTILINE)
    assert {line.partition(" = ")[0] for line in lines} == keys(schema, set())
    for line in lines:
        if " = " in line:
            tomllib.loads(line)
    assert "PydanticUndefined" not in page
