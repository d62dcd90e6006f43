"""Lines of keys in TOML, against what `tomllib` says the keys are."""

from __future__ import annotations

import tomllib
from typing import Any

from grader.catalog.formats.toml_lines import line_of, lines_of

NASTY = '''\
title = "a [not] a = table"  # [nor.this]
text = """
[fake]
key = 1
"""
list = [
  "one", # ]
  { x = 1 },
]
a.b = 1
"quoted key" = 2
[table]
inline = { p = 1, q = [1, 2] }
literal = \'\'\'
[[fake]]
\'\'\'
[[items]]
name = "first"
[items.sub]
deep = 1
[[items]]
name = "second"
[[items.list]]
v = 1
[[items.list]]
v = 2
[ spaced . "out" ]
key = 1
'''


def keys(value: Any, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    if isinstance(value, dict):
        return [k for name, v in value.items() for k in [(*at, name), *keys(v, (*at, name))]]
    if isinstance(value, list):
        return [k for n, v in enumerate(value) for k in keys(v, (*at, n))]
    return []


def test_every_key_is_found_on_a_line_that_spells_it() -> None:
    lines, text = lines_of(NASTY), NASTY.splitlines()
    for key in keys(tomllib.loads(NASTY)):
        assert str(key[-1]) in text[line_of(lines, key) - 1] or "inline" in key or "list" in key, key
    assert not any("fake" in key for key in lines)
    assert text[line_of(lines, ("items", 1, "list", 1, "v")) - 1] == "v = 2"
    assert text[line_of(lines, ("items", 0, "sub", "deep")) - 1] == "deep = 1"
    assert text[line_of(lines, ("spaced", "out", "key")) - 1] == "key = 1"


def test_an_unknown_key_falls_back_to_its_table() -> None:
    lines = lines_of(NASTY)
    assert line_of(lines, ("items", 1, "missing")) == lines["items", 1]
    assert line_of(lines, ("nowhere",)) == 1
