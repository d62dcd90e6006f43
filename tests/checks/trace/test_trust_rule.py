"""TRUST002 over runs: what holds an attempt, what staff only look at, and what is honest after all."""

from __future__ import annotations

from typing import Any

from grader.checks.rule import Look
from grader.model.evaluation import Evaluation
from grader.model.finding import Severity
from grader.model.grade import State
from grader.model.run import Ending, WrittenFile

FLAGGED, CLEAN = State.CONTRADICTED, State.VERIFIED
SUMS = (1.0, 2.0, 3.0)


def holds(look: Look) -> bool:
    assert look.state is FLAGGED
    return bool(look.hits[0].details["holds"])


def scored(*sums: float) -> Evaluation:
    return Evaluation(None, artifact="model.pt", sums=sums)


def test_an_honest_run(tell: Any) -> None:
    story = tell.honest()
    story.evaluation = scored(*SUMS)
    assert story.look("TRUST002").state is CLEAN


def test_what_the_reader_suspects_holds_the_run_and_accuses_nobody(tell: Any) -> None:
    story = tell.honest()
    story.ranks[1].suspicions = ("It wrote events for rank 0.",)
    look = story.look("TRUST002")
    assert holds(look)
    assert look.hits[0].message == "This run is held for review."
    assert look.hits[0].details["facts"] == ["Rank 1: It wrote events for rank 0."]
    assert look.hits[0].severity in (None, Severity.REVIEW)


def test_a_rank_that_ends_well_and_tells_nothing(tell: Any) -> None:
    story = tell.honest()
    story.ranks[1].silent = True
    assert holds(story.look("TRUST002"))


def test_a_trace_that_stops_before_the_end(tell: Any) -> None:
    story = tell.honest()
    story.ranks[1].ended = False
    assert holds(story.look("TRUST002"))


def test_a_script_that_leaves_at_once_by_itself(tell: Any) -> None:
    story = tell.honest()
    story.text = "import os\ntrain()\nos._exit(0)\n"
    story.ranks[1].ended = False
    assert not holds(story.look("TRUST002"))


def test_ranks_that_were_killed_stop_honestly(tell: Any) -> None:
    for ending in (Ending.TIMED_OUT, Ending.OUT_OF_MEMORY, Ending.DEADLOCKED):
        story = tell.honest()
        story.ending = ending
        for r in story.ranks:
            r.ended = False
            story.killed.add(r.rank)
            story.exit_codes[r.rank] = None
        assert story.look("TRUST002").state is CLEAN


def test_a_trace_that_went_over_its_cap(tell: Any) -> None:
    story = tell.honest()
    story.trace_cut = True
    for r in story.ranks:
        r.ended = False
    story.evaluation = scored(7.0, 8.0, 9.0)
    assert story.look("TRUST002").state is CLEAN


def test_a_probe_that_could_not_hook_this_torch(tell: Any) -> None:
    story = tell.Story()
    for r in story.ranks:
        r.ended = False
        r.event("unsupported", reason="torch 2.6 or newer is needed")
    assert story.look("TRUST002").state is CLEAN


def test_more_steps_than_the_cpu_time_has_room_for(tell: Any) -> None:
    story = tell.honest(epochs=20)
    story.cpu_s = 0.0005
    look = story.look("TRUST002")
    assert holds(look)
    assert "claims 120 steps" in look.hits[0].details["facts"][0]


def test_weights_that_nobody_saved(tell: Any) -> None:
    story = tell.honest()
    story.evaluation = scored(7.0, 8.0, 9.0)
    look = story.look("TRUST002")
    assert holds(look)
    assert "none of the 1 checkpoints" in look.hits[0].details["facts"][0]


def test_weights_written_by_a_library_that_the_probe_does_not_know(tell: Any) -> None:
    story = tell.honest()
    for r in story.ranks:
        r.fields.pop("saves", None)
    story.evaluation = scored(*SUMS, 17.0)  # the trained parameters and one buffer
    assert story.look("TRUST002").state is CLEAN
    story.evaluation = scored(7.0, 8.0, 9.0)
    assert not holds(story.look("TRUST002"))


def test_weights_that_another_process_of_the_script_saved(tell: Any) -> None:
    story = tell.Story()
    for r in story.ranks:
        r.event("process", 60, op="spawn", target="worker", by="torch")
    story.evaluation = scored(7.0, 8.0, 9.0)
    assert story.look("TRUST002").state is CLEAN


def test_the_best_checkpoint_copied_to_its_final_name(tell: Any) -> None:
    story = tell.honest()
    story.save(0, "best.pt", sums=(0.5, 1.5, 2.5))
    story.evaluation = scored(0.5, 1.5, 2.5)
    assert story.look("TRUST002").state is CLEAN


def test_a_file_that_is_older_than_training(tell: Any) -> None:
    story = tell.honest()
    for r in story.ranks:
        r.fields["steps"] = [
            s.__class__(**{f: getattr(s, f) for f in s.__slots__} | {"t": s.t + 30})
            for s in r.fields["steps"]
        ]
    story.outputs = (WrittenFile("model.pt", 1000, 2.0),)
    story.evaluation = scored(*SUMS)
    assert not holds(story.look("TRUST002"))


def test_averaged_gradients_over_a_silent_wire(tell: Any) -> None:
    story = tell.honest(epochs=20)
    expected = 120 * 4000 * 2
    story.loopback_bytes = expected
    assert story.look("TRUST002").state is CLEAN
    story.loopback_bytes = 2_000
    assert holds(story.look("TRUST002"))
    story.text = "model.register_comm_hook(None, compress)\n"
    assert story.look("TRUST002").state is CLEAN


def test_reaching_into_processes_is_for_staff_and_holds_nothing(tell: Any) -> None:
    story = tell.honest()
    assert story.look("TRUST001").state is CLEAN
    story.ranks[1].event("reach", 7, what="process", target="/proc/self/fd")
    look = story.look("TRUST001")
    assert not holds(look)
    assert look.hits[0].ranks == (1,)
    assert [place.line for place in look.hits[0].where] == [7]
    assert look.hits[0].details["reaches"] == ["rank 1: process /proc/self/fd"]
    assert look.hits[0].severity in (None, Severity.REVIEW)
