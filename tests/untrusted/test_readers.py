"""Readers that are prepared say when they can read; a text that ends one later doesn't take that back."""

from __future__ import annotations

import time

import pytest

from grader import readers
from grader.readers import pool
from tests.untrusted.slow_start import import_slowly


def test_readers_have_begun_once_one_has_imported_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_pool", pool._Pool())
    assert readers.began(), "none was prepared, so nobody waits for one"
    readers.prepare(import_slowly, 1)
    try:
        assert not readers.began()
        deadline = time.monotonic() + 60
        while not readers.began():
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        pool._pool.forget()
    readers.prepare(import_slowly, 1)
    try:
        assert readers.began(), "one that is replaced closes no service"
    finally:
        pool._pool.forget()
