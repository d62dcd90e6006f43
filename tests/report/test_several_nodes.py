"""Reports of runs on several nodes say on which node a rank ran; reports of one node say nothing of nodes."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from grader.judging.attempt import Attempt
from grader.report.html.attempt_page import to_html
from grader.report.terminal.attempt_text import print_attempt
from tests.report import factory


def on_two_nodes(attempt: Attempt) -> Attempt:
    assert attempt.record is not None
    ranks = tuple(replace(rank, node=rank.rank) for rank in attempt.record.ranks)
    return factory.with_evidence(attempt, record=replace(attempt.record, ranks=ranks))


def printed(attempt: Attempt) -> str:
    console = Console(file=io.StringIO(), width=120, color_system=None)
    print_attempt(attempt, console, factory.PAGES)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("name", ["deadlocked", "crashed"])
def test_tables_of_ranks_name_the_node_where_there_are_several(name: str) -> None:
    attempt = getattr(factory, name)()
    for told in (printed(attempt), to_html(attempt, factory.PAGES)):
        assert "on node" not in told
    both = on_two_nodes(attempt)
    assert "rank 0 on node 0" in to_html(both, factory.PAGES)
    assert "rank 1 on node 1" in to_html(both, factory.PAGES)
    assert "0 on node 0" in printed(both)
