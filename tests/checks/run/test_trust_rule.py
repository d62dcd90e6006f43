"""TRUST002 over runs: what holds an attempt, what staff only look at, and what is honest after all."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import pytest

from grader.checks.rule import Observation
from grader.checks.run.contradictions.weights_origin import unlearned
from grader.model.drawn_data import Feed
from grader.model.evaluation import Evaluation
from grader.model.finding import Severity
from grader.model.grade import State
from grader.model.metric import ACCURACY
from grader.model.run import Ending, WrittenFile
from grader.model.trace import Collective

FLAGGED, CLEAN = State.CONTRADICTED, State.VERIFIED
SUMS = (1.0, 2.0, 3.0)
NAMES = ("conv.weight", "fc.weight", "fc.bias")


def holds(observation: Observation) -> bool:
    assert observation.state is FLAGGED
    return bool(observation.hits[0].details["holds"])


def scored(*sums: float) -> Evaluation:
    return Evaluation(None, artifact="model.pt", sums=sums)


def test_an_honest_run(tell: Any) -> None:
    story = tell.honest()
    story.evaluation = scored(*SUMS)
    assert story.observation("TRUST002").state is CLEAN


def test_what_the_reader_suspects_holds_the_run_and_accuses_nobody(tell: Any) -> None:
    story = tell.honest()
    story.ranks[1].suspicions = ("It wrote events for rank 0.",)
    observation = story.observation("TRUST002")
    assert holds(observation)
    told = observation.hits[0].message
    assert told.startswith("Rank 1: It wrote events for rank 0. "), "what was seen comes first"
    assert "held against what the script cannot touch" in told, "and what the rule looks at"
    assert observation.hits[0].details["facts"] == ["Rank 1: It wrote events for rank 0."]
    assert observation.hits[0].severity in (None, Severity.REVIEW)


def test_a_rank_that_ends_well_and_tells_nothing(tell: Any) -> None:
    story = tell.honest()
    story.ranks[1].silent = True
    assert holds(story.observation("TRUST002"))


def test_a_trace_that_stops_before_the_end(tell: Any) -> None:
    story = tell.honest()
    story.ranks[1].ended = False
    assert holds(story.observation("TRUST002"))


def test_a_trace_that_stops_is_held_whatever_the_text_says(tell: Any) -> None:
    story = tell.honest()
    story.text = "import os\ntrain()  # executed once\nos._exit(0)\n"
    story.ranks[1].ended = False
    assert holds(story.observation("TRUST002"))


def test_ranks_that_were_killed_stop_honestly(tell: Any) -> None:
    for ending in (Ending.TIMED_OUT, Ending.OUT_OF_MEMORY, Ending.DEADLOCKED):
        story = tell.honest()
        story.ending = ending
        for r in story.ranks:
            r.ended = False
            story.killed.add(r.rank)
            story.exit_codes[r.rank] = None
        assert story.observation("TRUST002").state is CLEAN


def test_a_trace_that_went_over_its_cap(tell: Any) -> None:
    story = tell.honest()
    story.trace_cut = True
    for r in story.ranks:
        r.ended = False
    story.evaluation = scored(7.0, 8.0, 9.0)
    assert story.observation("TRUST002").state is CLEAN


def test_a_probe_that_could_not_hook_this_torch(tell: Any) -> None:
    story = tell.Story()
    for r in story.ranks:
        r.ended = False
        r.event("unsupported", reason="torch 2.6 or newer is needed")
    assert story.observation("TRUST002").state is CLEAN


def test_more_steps_than_the_cpu_time_has_room_for(tell: Any) -> None:
    story = tell.honest(epochs=20)
    story.cpu_s = 0.0005
    observation = story.observation("TRUST002")
    assert holds(observation)
    assert "claims 120 steps" in observation.hits[0].details["facts"][0]


def test_weights_that_nobody_saved(tell: Any) -> None:
    story = tell.honest()
    story.evaluation = scored(7.0, 8.0, 9.0)
    observation = story.observation("TRUST002")
    assert holds(observation)
    assert "none of the 1 checkpoints" in observation.hits[0].details["facts"][0]


def through(tell: Any, *values: float) -> Any:
    """A run whose looks at `fc.bias` found these values, one after the other, and which ended with the last of them."""
    story = tell.honest()
    for r in story.ranks:
        r.fields["params"] = []
        for n, value in enumerate(values):
            story.params(r.rank, n, (1.0, 2.0, value))
        r.fields["finals"] = []
        story.final(r.rank, (1.0, 2.0, values[-1]))
    return story


@pytest.mark.parametrize("value", [0.2, 0.9, 1.3])
def test_weights_that_training_went_through_may_be_scored_whatever_was_made_of_them(
    tell: Any, value: float
) -> None:
    """The best epoch's, an average of several, one between two looks."""
    story = through(tell, 0.0, 0.3, 0.5, 0.7, 0.9, 1.0, 1.1)
    story.evaluation = replace(scored(1.0, 2.0, value), fingerprints={"model.fc.bias": value})
    story.ranks[0].fields["saves"] = []
    story.save(0, "model.pt", sums=(1.0, 2.0, value))
    assert story.observation("TRUST002").state is CLEAN


def test_weights_that_no_training_led_to_hold_the_run_although_they_were_saved(tell: Any) -> None:
    story = through(tell, 0.0, 0.3, 0.5, 0.7, 0.9, 1.0, 1.1)
    story.evaluation = replace(scored(1.0, 2.0, 4.0), fingerprints={"fc.bias": 4.0})
    story.ranks[0].fields["saves"] = []
    story.save(0, "model.pt", sums=(1.0, 2.0, 4.0))
    observation = story.observation("TRUST002")
    assert holds(observation)
    assert "`fc.bias` lay between 0 and 1.1; here it is 4." in observation.hits[0].details["facts"][0]
    # Another process of the script may have saved; it can't have trained.
    story.ranks[0].event("process", op="fork", target="")
    assert holds(story.observation("TRUST002"))


def test_weights_that_were_trained_further_by_hand(tell: Any) -> None:
    """The script ends with them, and its steps do not tell of them."""
    story = through(tell, 0.0, 0.3, 0.5, 0.7, 0.9, 1.0, 1.1)
    for r in story.ranks:
        r.fields["finals"] = []
        story.final(r.rank, (1.0, 2.0, 4.0))
    story.evaluation = replace(scored(1.0, 2.0, 4.0), fingerprints={"fc.bias": 4.0})
    assert story.observation("TRUST002").state is CLEAN
    story.ranks[0].fields["others"] = [e for e in story.ranks[0].fields["others"] if e.kind != "end"]
    story.ranks[0].event("end", derivatives=95)
    assert holds(story.observation("TRUST002"))


def test_weights_written_by_a_library_that_the_probe_does_not_know(tell: Any) -> None:
    story = tell.honest()
    for r in story.ranks:
        r.fields.pop("saves", None)
    story.evaluation = scored(*SUMS, 17.0)  # the trained parameters and one buffer
    assert story.observation("TRUST002").state is CLEAN
    story.evaluation = scored(7.0, 8.0, 9.0)
    assert not holds(story.observation("TRUST002"))


def test_weights_that_another_process_of_the_script_saved(tell: Any) -> None:
    story = tell.Story()
    for r in story.ranks:
        r.event("process", 60, op="spawn", target="worker", by="torch")
    story.evaluation = scored(7.0, 8.0, 9.0)
    assert story.observation("TRUST002").state is CLEAN


def test_the_best_checkpoint_copied_to_its_final_name(tell: Any) -> None:
    story = tell.honest()
    story.save(0, "best.pt", sums=(0.5, 1.5, 2.5))
    story.evaluation = scored(0.5, 1.5, 2.5)
    assert story.observation("TRUST002").state is CLEAN


def test_a_file_that_is_older_than_training(tell: Any) -> None:
    story = tell.honest()
    for r in story.ranks:
        r.fields["steps"] = [
            s.__class__(**{f: getattr(s, f) for f in s.__slots__} | {"t": s.t + 30})
            for s in r.fields["steps"]
        ]
    story.outputs = (WrittenFile("model.pt", 1000, 2.0),)
    story.evaluation = scored(*SUMS)
    assert not holds(story.observation("TRUST002"))


def test_averaged_gradients_over_a_silent_wire(tell: Any) -> None:
    story = tell.honest(epochs=20)
    expected = 120 * 4000 * 2
    story.loopback_bytes = expected
    assert story.observation("TRUST002").state is CLEAN
    # Only the steps that are looked at are averaged; in single bytes a quarter goes over the wire.
    story.loopback_bytes = expected // 6
    assert holds(story.observation("TRUST002"))
    story.loopback_bytes = expected // 4
    assert story.observation("TRUST002").state is CLEAN
    story.loopback_bytes = 2_000
    assert holds(story.observation("TRUST002"))
    # What the text says of hooks changes nothing; one that was registered may compress by any factor.
    story.text = "train()  # no comm_hook here\n"
    assert holds(story.observation("TRUST002"))
    for r in story.ranks:
        r.event("comm_hook", wrap=0, hook="train.compress")
    assert story.observation("TRUST002").state is CLEAN


@pytest.mark.parametrize(
    "written",
    [
        lambda raw: base64.b85encode(raw).decode(),
        lambda raw: raw.hex(),
        lambda raw: ",\n".join(map(str, raw)),
    ],
    ids=["base85", "hexadecimal", "numbers"],
)
def test_a_text_that_carries_weights(tell: Any, written: Callable[[bytes], str]) -> None:
    story = tell.honest()
    story.text = f"import torch\n\nWEIGHTS = '''{written(Random(1).randbytes(40_000))}'''\ntrain()\n"
    assert story.observation("TRUST002").state is CLEAN, "nothing was scored that it could have to do with"
    story.evaluation = scored(*SUMS)
    observation = story.observation("TRUST002")
    assert holds(observation)
    assert "From train.py:3 on, the text carries" in observation.hits[0].details["facts"][0]


def test_a_long_text_with_tables(tell: Any) -> None:
    story = tell.honest()
    words = "\n".join(f"    'class number {n} of a thousand'," for n in range(1000))
    numbers = "\n".join(f"    ({n % 251}, {n * 7 % 241}, {n * 13 % 239})," for n in range(256))
    story.text = f"CLASSES = [\n{words}\n]\nPALETTE = [\n{numbers}\n]\ntrain()\n" + Path(__file__).read_text()
    story.evaluation = scored(*SUMS)
    assert story.observation("TRUST002").state is CLEAN


def test_equal_work_that_one_rank_alone_computed(tell: Any) -> None:
    story = tell.honest(epochs=20)
    for r, forwards in zip(story.ranks, (120, 120), strict=True):
        r.event("end", forwards=forwards)
    story.rank_cpu_s = {0: 12.0, 1: 2.0}
    observation = story.observation("TRUST002")
    assert holds(observation)
    assert "12.0 s of CPU time for rank 0 and 2.0 s for rank 1" in observation.hits[0].details["facts"][0]
    # Ranks of honest scripts differ: one draws a picture at the end, or validates for all and says so.
    for used in ({0: 5.5, 1: 1.0}, {0: 12.0, 1: 4.0}):
        story.rank_cpu_s = used
        assert story.observation("TRUST002").state is CLEAN
    story.rank_cpu_s = {0: 12.0, 1: 2.0}
    story.text, text = "import torch\nmodel = torch.compile(make())\ntrain()\n", story.text
    assert story.observation("TRUST002").state is CLEAN
    story.text = text
    story.ranks[0].fields["others"].clear()
    story.ranks[0].event("end", forwards=720)
    assert story.observation("TRUST002").state is CLEAN


def test_averages_by_hand_over_a_silent_wire(tell: Any) -> None:
    """No wrapper tells how much has to be sent; the optimizer's parameters do."""
    story = tell.honest(epochs=20)
    for r in story.ranks:
        r.fields["wraps"] = []
    story.loopback_bytes = 2_000
    assert story.observation("TRUST002").state is CLEAN
    for r in story.ranks:
        r.event("held", param_bytes=4000)
    assert holds(story.observation("TRUST002"))


def test_reaching_into_processes_is_for_staff_and_holds_nothing(tell: Any) -> None:
    story = tell.honest()
    assert story.observation("TRUST001").state is CLEAN
    story.ranks[1].event("reach", 7, what="process", target="/proc/self/fd")
    observation = story.observation("TRUST001")
    assert not holds(observation)
    assert observation.hits[0].ranks == (1,)
    assert [place.line for place in observation.hits[0].where] == [7]
    assert observation.hits[0].details["reaches"] == ["rank 1: process /proc/self/fd"]
    assert observation.hits[0].severity in (None, Severity.REVIEW)


def test_events_that_no_probe_wrote_hold_the_run(tell: Any) -> None:
    story = tell.honest()
    story.foreign_lines = 3
    observation = story.observation("TRUST002")
    assert holds(observation)
    assert (
        "3 of the events in rank 0's trace were not written by its probe."
        in observation.hits[0].details["facts"]
    )


def test_events_that_are_gone_hold_the_run_unless_they_are_few(tell: Any) -> None:
    story = tell.honest()
    story.gone_lines = 2
    assert not holds(story.observation("TRUST002"))
    story.gone_lines = 40
    assert holds(story.observation("TRUST002"))


@pytest.mark.parametrize(
    ("what", "target"),
    [("writer", "train.py"), ("import", "grader.probe.trace.writer"), ("process", "/proc/self/fd/4000")],
)
def test_reaching_for_the_probe_itself_holds_the_run(tell: Any, what: str, target: str) -> None:
    story = tell.honest()
    story.ranks[0].event("reach", 7, what=what, target=target)
    observation = story.observation("TRUST001")
    assert holds(observation)
    assert observation.hits[0].details["facts"] == [f"rank 0: {what} {target}"]


def test_a_package_of_the_learners_own_called_grader_is_no_reaching(tell: Any) -> None:
    story = tell.honest()
    story.files = {"grader/__init__.py": "", "grader/probe.py": ""}
    story.ranks[0].event("reach", 7, what="import", target="grader.probe")
    assert not holds(story.observation("TRUST001"))


@pytest.mark.parametrize(
    "text",
    [
        'import os\nfor n in os.listdir("/proc/self/fd"):\n    os.close(int(n))\n',
        "import os, stat\nfor n in range(3, 5000):\n    if stat.S_ISFIFO(os.fstat(n).st_mode):\n        os.dup(n)\n",
        'import torch\ntorch.save.__globals__["writer"].send(b"{}")\n',
        'import torch\nw = getattr(torch.save, "__globals__")["writer"]\nw.write("step", n=1)\n',
        'import gc, os\nw = [o for o in gc.get_objects() if hasattr(o, "origin")]\nos.write(w[0]._fd, b"{}")\n',
        'import sys\nprobe = sys.modules["grader.probe.trace.writer"]\n',
        "from grader.probe import writer\n",
    ],
)
def test_what_was_dug_up_and_put_to_use_holds_the_run(tell: Any, text: str) -> None:
    story = tell.honest()
    story.text = text
    assert holds(story.observation("TRUST001"))


@pytest.mark.parametrize(
    "text",
    [
        'import os\nprint(len(os.listdir("/proc/self/fd")))\nos.write(os.open("a", 1), b"done")\n',
        'import os\nfor n in os.listdir("/proc/self/fd"):\n    print(os.readlink(f"/proc/self/fd/{n}"))\n',
        'import gc, torch\nfor o in gc.get_objects():\n    print(o.size() if torch.is_tensor(o) else "")\n',
        "import os\nfor n in range(3, 256):\n    os.close(n)\n",
        "import torch\nprint(sorted(torch.save.__globals__))\n",
        'import os\nlog = open("/proc/self/fd/1", "w")\nlog.write("hello")\n',
        'import os\nprint(open(f"/proc/{os.getpid()}/status").read())\n',
        'print("grader.probe watches")\n',
        "import grader\nfrom grader import helpers\n",
    ],
)
def test_looking_around_holds_nothing(tell: Any, text: str) -> None:
    story = tell.honest()
    story.text = text
    observation = story.observation("TRUST001")
    assert observation.state is CLEAN or not holds(observation)


def owning(tell: Any, own: Any, stepped: Any) -> Any:
    """A run that told what each rank's backward passes gave (by rank and step), and what it stepped on (by step)."""
    story = tell.honest(epochs=3)
    for r in story.ranks:
        r.fields["steps"] = [
            replace(s, own=own(r.rank, s.n), own_last=own(r.rank, s.n), grads=stepped(r.rank, s.n))
            for s in r.fields["steps"]
        ]
    story.evaluation = scored(*SUMS)
    return story


def noise(rank: int, step: int) -> tuple[float, ...]:
    random = Random(1000 * rank + step)
    return tuple(random.gauss(0, 1) for _ in range(3))


def mean(step: int) -> tuple[float, ...]:
    return tuple((a + b) / 2 for a, b in zip(noise(0, step), noise(1, step), strict=True))


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(lambda rank, n: mean(n), id="averaged"),
        pytest.param(lambda rank, n: tuple(2 * x for x in mean(n)), id="summed"),
        pytest.param(noise, id="not averaged, as where weights are instead"),
        pytest.param(lambda rank, n: tuple(x / (1 + abs(sum(mean(n)))) for x in mean(n)), id="clipped"),
        pytest.param(lambda rank, n: tuple(float((x > 0) - (x < 0)) for x in mean(n)), id="signs"),
    ],
)
def test_gradients_that_came_of_what_backward_passes_gave(tell: Any, made: Any) -> None:
    assert owning(tell, noise, made).observation("TRUST002").state is CLEAN


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(lambda rank, n: (0.01, 0.01, 0.01), id="the same at each step"),
        pytest.param(lambda rank, n: noise(7, n), id="drawn by lot"),
    ],
)
def test_gradients_that_no_backward_pass_gave_hold_the_run(tell: Any, made: Any) -> None:
    observation = owning(tell, noise, made).observation("TRUST002")
    assert holds(observation)
    assert "nothing to do with those that their backward passes gave" in observation.hits[0].message


@pytest.mark.parametrize("kept", [NAMES, NAMES[:2]], ids=["all", "those of some layers"])
def test_gradients_that_nobody_clears_are_another_error(tell: Any, kept: tuple[str, ...]) -> None:
    def piled_up(_: int, n: int) -> tuple[float, ...]:
        so_far = [sum(column) for column in zip(*(mean(k) for k in range(n + 1)), strict=True)]
        return tuple(a if name in kept else b for name, a, b in zip(NAMES, so_far, mean(n), strict=True))

    story = owning(tell, noise, piled_up)
    for r in story.ranks:
        r.fields["steps"] = [replace(s, empty=0, kept=kept) for s in r.fields["steps"]]
    assert story.observation("TRUST002").state is CLEAN


def test_what_is_cleared_each_time_is_held_against_what_was_given_all_the_same(tell: Any) -> None:
    story = owning(tell, noise, lambda rank, n: noise(7, n))
    for r in story.ranks:
        r.fields["steps"] = [replace(s, empty=0, kept=NAMES[:1]) for s in r.fields["steps"]]
    assert holds(story.observation("TRUST002"))


def test_steps_on_cleared_gradients_are_another_error(tell: Any) -> None:
    story = owning(tell, noise, lambda rank, n: (0.0, 0.0, 0.0))
    assert story.observation("TRUST002").state is CLEAN


def test_ranks_that_compute_the_same_gradient_of_different_samples_hold_the_run(tell: Any) -> None:
    observation = owning(tell, lambda rank, n: noise(5, n), lambda rank, n: noise(5, n)).observation(
        "TRUST002"
    )
    assert holds(observation)
    assert "did not come from what they drew" in observation.hits[0].message
    assert observation.hits[0].details["subjects"] == ["how the gradients that ranks step on come about"]


@pytest.mark.parametrize(
    ("backward", "losses", "held"),
    [
        pytest.param(True, (0.5, 0.7), False, id="averaged on the way back, of samples of their own"),
        pytest.param(True, (0.5, 0.5), True, id="the same samples, whatever was exchanged meanwhile"),
        pytest.param(False, (0.5, 0.7), True, id="nothing was exchanged before the gradients were there"),
    ],
)
def test_a_mean_that_the_backward_pass_itself_gives(
    tell: Any, backward: bool, losses: tuple[float, float], held: bool
) -> None:
    """As an `autograd.Function` around the weights does: the parameter never sees what one rank computed."""
    story = owning(tell, lambda rank, n: mean(n), lambda rank, n: mean(n))
    for r in story.ranks:
        r.fields["steps"] = [replace(s, loss=losses[r.rank] + s.n) for s in r.fields["steps"]]
        for s in r.fields["steps"]:
            call = Collective(
                "all_reduce", tell.site(12), s.n + 1, 16, "SUM", r.tick(), 0.001, backward=backward
            )
            r.add("collectives", call)
    observation = story.observation("TRUST002")
    assert holds(observation) if held else observation.state is CLEAN


def test_a_data_set_that_hands_out_half_of_its_samples_twice_holds_the_run(tell: Any) -> None:
    """Within a step all samples may differ; over the steps that were looked at they do not."""
    story = tell.honest(world_size=2, n=96, epochs=1)
    story.evaluation, story.num_train = scored(*SUMS), 96
    for r in story.ranks:
        for batch in r.fields["batches"]:
            if batch.loader == 0 and batch.indices is not None:
                hashes = tuple(f"{i // 2:016x}" for i in batch.indices)
                r.add("feeds", Feed(batch.step, hashes, batch.size, batch.t, spot=True))
    observation = story.observation("TRUST002")
    assert holds(observation)
    assert "only 48 of the samples" in observation.hits[0].message


def learning(tell: Any, *means: list[float]) -> Any:
    """An honest run whose losses held these cross entropies at the steps looked at, and whose weights know the task."""
    story = tell.honest(epochs=4)
    for r in story.ranks:
        for n, told in enumerate(means):
            r.event("cross_entropies", n=n, means=told)
    scored = Evaluation(None, hidden={"accuracy": 0.9, "loss": 0.05}, validation={"accuracy": 0.9})
    return replace(story.evidence(), evaluation=scored)


def test_only_ten_classes_have_a_loss_that_training_begins_with(tell: Any) -> None:
    known = learning(tell, *[[0.1]] * 8)
    assert "training began with weights that had been trained before" in unlearned(known)
    assert unlearned(replace(known, has_images=False)) == "", (
        "the squared errors of a forecast may be as small"
    )
    assert unlearned(replace(known, metrics=(replace(ACCURACY, share=False),))) == ""


@pytest.mark.parametrize(
    ("means", "accuracy", "odd"),
    [
        pytest.param([[2.4], [2.5], [2.4], [2.4], [2.3], [2.4], [2.3], [2.4]], 0.9, True, id="known before"),
        pytest.param(
            [[2.4], [2.5], [2.4], [2.4], [2.3], [2.4], [2.3], [2.4]], 0.5, False, id="and not enough"
        ),
        pytest.param([[4.5], [3.9], [3.5], [3.2], [3.0], [2.6], [2.5], [2.4]], 0.9, False, id="learned"),
    ],
)
def test_a_text_that_is_known_before_the_first_step_was_learned_elsewhere(
    tell: Any, means: list[list[float]], accuracy: float, odd: bool
) -> None:
    evidence = replace(learning(tell, *means), has_images=False, levels={"accuracy": 0.8})
    evidence = replace(evidence, evaluation=Evaluation(None, hidden={"accuracy": accuracy}, validation={}))
    assert bool(unlearned(evidence)) is odd


@pytest.mark.parametrize(
    ("means", "odd"),
    [
        pytest.param(
            [[2.3], [2.2], [2.3], [2.25], [2.3], [2.2], [2.3], [2.2]], True, id="nothing was learned"
        ),
        pytest.param([[2.3], [2.0], [1.5], [1.0], [0.7], [0.4], [0.2], [0.1]], False, id="it fell"),
        pytest.param(
            [[2.3, 2.3], [1.5, 2.9], [3.1, 1.0]] + [[0.5, 3.5], [4.0, 0.4]] * 3, False, id="of mixed samples"
        ),
        pytest.param(
            [[0.3, 2.3], [0.3, 1.9], [0.3, 1.0]] + [[0.3, 0.2]] * 6, False, id="another one is small"
        ),
        pytest.param([], False, id="there are none: soft targets, squares"),
        pytest.param([[], [0.2], [0.2], [0.2], [0.2], [0.2], [0.2]], False, id="not from the first step on"),
        pytest.param([[2.3], [2.3], [2.3]], False, id="too few looks"),
    ],
)
def test_weights_are_held_against_the_cross_entropies_alone(
    tell: Any, means: list[list[float]], odd: bool
) -> None:
    """The loss of all of these stays at 1.0 throughout: a penalty or a teacher's doubts may keep it there."""
    assert bool(unlearned(learning(tell, *means))) is odd


@pytest.mark.parametrize(("late", "held"), [(1, False), (3, True)])
def test_averages_that_are_stepped_on_one_step_late_were_given(tell: Any, late: int, held: bool) -> None:
    story = tell.honest(epochs=4)
    random = Random(0)
    last = max(s.n for r in story.ranks for s in r.fields["steps"])
    given = [[tuple(random.gauss(0, 1) for _ in range(3)) for _ in story.ranks] for _ in range(last + 1)]
    for rank, r in enumerate(story.ranks):
        r.fields["steps"] = [
            replace(
                s,
                own=given[s.n][rank],
                own_last=given[s.n][rank],
                grads=tuple(fmean(column) for column in zip(*given[max(0, s.n - late)], strict=True)),
            )
            for s in r.fields["steps"]
        ]
    facts = [fact for hit in story.observation("TRUST002").hits for fact in hit.details["holding_facts"]]
    assert any("had nothing to do with" in fact for fact in facts) is held


def moving(
    tell: Any, aside: float, *, every: int = 1, left: Callable[[int], float] = lambda _: 1.0
) -> list[str]:
    """What holds a run of which every so many looks tell that weights moved by `aside` steps beside it."""
    story = tell.honest(epochs=4)
    for rank, r in enumerate(story.ranks):
        r.fields["steps"] = [replace(step, grads=None, grad_names=()) for step in r.fields["steps"]]
        for n in range(r.steps):
            story.params(rank, n, SUMS)
            if n % every == 0:
                r.event("moved", n=n, step=0.5, aside=0.5 * aside, left=[left(rank)])
    return [fact for hit in story.observation("TRUST002").hits for fact in hit.details["holding_facts"]]


def test_weights_that_something_else_moves_beside_each_step(tell: Any) -> None:
    facts = moving(tell, 1.5)
    assert len(facts) == 1
    assert "training went on with other weights than the optimizer had left" in facts[0]
    assert "1.5 times as far" in facts[0]


def test_weights_that_are_put_back_in_part_after_each_step(tell: Any) -> None:
    assert moving(tell, 0.5) == [], "half of a step is what a mask may take away"


def test_weights_that_move_beside_every_other_step(tell: Any) -> None:
    assert moving(tell, 1.5, every=2) == [], "slow weights come back after several steps"


def test_weights_that_ranks_bring_together_after_each_step(tell: Any) -> None:
    assert moving(tell, 1.5, left=float) == []
