"""The format of a file that authors write, as a page: its tables, what each key means, and how one is written.

Made from the schema that reads the file, so that it is never out of date.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from grader.catalog.formats.problems import as_toml, examples_of, table_in


def format_page(file: str, schema: type[BaseModel]) -> str:
    """The page of a file as Markdown."""
    about = inspect.getdoc(sys.modules[schema.__module__]) or ""
    return "\n".join((f"# {file}", "", about, "", *_table(schema, set()))).rstrip() + "\n"


def _table(table: type[BaseModel], told: set[type[BaseModel]]) -> Iterator[str]:
    """What a table says of itself, a line for each key, and then the tables in it that were not told before."""
    told.add(table)
    yield from (f"## {table.__name__}", "", inspect.getdoc(table) or "", "")
    inner = []
    for key, field in table.model_fields.items():
        below = table_in(field.annotation)
        if below is not None:
            yield f"- `{key}`: {below.__name__}, below"
            inner.append(below)
            continue
        shown = (examples_of(field.annotation, field) or [field.default])[0]
        written = f"{key} = {as_toml(shown)}" if shown not in (None, PydanticUndefined) else key
        default = (
            "" if field.default in (None, PydanticUndefined, []) else f", otherwise {as_toml(field.default)}"
        )
        yield f"- `{written}` {'is needed' if field.is_required() else f'may be left out{default}'}"
    yield ""
    for below in inner:
        if below not in told:
            yield from _table(below, told)
