"""Each fuzzer for a moment; `make fuzz` runs them for minutes, and what they find becomes a case here."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.untrusted.fuzzers import FUZZERS


@pytest.mark.parametrize("name", FUZZERS)
def test_nothing_but_what_is_declared_is_raised(name: str) -> None:
    fuzzer = FUZZERS[name]

    @settings(max_examples=50)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        drawn = data.draw(fuzzer.drawn)
        with contextlib.suppress(*fuzzer.may_raise):
            fuzzer.read(drawn)

    run()
