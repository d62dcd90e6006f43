"""What goes wrong between the fork and the script's first line is our failure, and never looks like the learner's."""

from __future__ import annotations

import pytest

from grader.run.fork_server_client import ForkServerLostError
from tests.launch.conftest import Launch


def test_a_rank_that_cannot_be_set_up_is_told_as_ours_and_the_parent_goes_on(launch: Launch) -> None:
    with pytest.raises(ForkServerLostError, match=r"rank 0 could not be set up(.|\n)*FileNotFoundError"):
        launch("print('never')", submission_dir="/nonexistent/submission")
    assert launch("print('next')").out() == "next\n"


def test_a_spec_that_makes_no_sense_is_refused_and_the_parent_goes_on(launch: Launch) -> None:
    with pytest.raises(ForkServerLostError, match="not a launch spec"):
        launch("print('never')", argv=None)
    assert launch("print('next')").out() == "next\n"
