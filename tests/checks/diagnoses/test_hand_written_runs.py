"""Endings that need a GPU, a small /dev/shm or a time limit of minutes: told by records that hold torch's own words.

The message texts are those that PyTorch, NCCL and gloo print; who failed when, and who waited where, is built by hand.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from grader.checks.diagnosis import diagnose, load_explanations
from grader.checks.evidence import Evidence
from grader.checks.source.script import parse
from grader.errors import InfraError
from grader.judging.machine_fault import refuse_machine_fault
from grader.launch.endings.failure import LastWords
from grader.model.diagnosis import Diagnosis
from grader.model.finding import EvidenceKind, Finding, Location, Severity
from grader.model.grade import State
from grader.model.run import Ending, Failure, Frame, Waiting
from tests.checks.run.conftest import Story, frame, honest, strided

# id → exception type, message, a word that the explanation or the hint must hold.
WORDS = {
    "shared_memory": (
        "RuntimeError",
        (
            "DataLoader worker (pid 4242) is killed by signal: Bus error. It is possible that dataloader's workers are "
            "out of shared memory. Please try to raise your shared memory limit."
        ),
        "/dev/shm",
    ),
    "two_devices": (
        "RuntimeError",
        (
            "Expected all tensors to be on the same device, but found at least two devices, cuda:1 and cpu! (when "
            "checking argument for argument mat1 in method wrapper_CUDA_addmm)"
        ),
        "device",
    ),
    "invalid_device": (
        "AcceleratorError",
        "CUDA error: invalid device ordinal\nCUDA kernel errors",
        "LOCAL_RANK",
    ),
    "duplicate_device": (
        "DistBackendError",
        (
            "NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.cpp:77, invalid usage\nncclInvalidUsage: This "
            "usually reflects invalid usage of NCCL library.\nLast error:\nMultiple Ranks are using the same "
            "GPU/Partition. Set NCCL_MULTI_RANK_GPU_ENABLE=1 to enable this configuration."
        ),
        "set_device",
    ),
    "device_assert": (
        "AcceleratorError",
        (
            "CUDA error: device-side assert triggered\nSearch for `cudaErrorAssert' in https://docs.nvidia.com/cuda/\n"
            "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might "
            "be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1"
        ),
        "CUDA_LAUNCH_BLOCKING=1",
    ),
    "illegal_access": (
        "AcceleratorError",
        "CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be asynchronously reported",
        "CUDA_LAUNCH_BLOCKING=1",
    ),
    "cpu_tensor_with_nccl": (
        "RuntimeError",
        "No backend type associated with device type cpu",
        "device=device",
    ),
    "cuda_in_fork": (
        "RuntimeError",
        (
            "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the "
            "'spawn' start method"
        ),
        "spawn",
    ),
    "out_of_memory": (
        "OutOfMemoryError",
        (
            "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB of which 1.2 GiB "
            "is free."
        ),
        "GPU",
    ),
    "nccl_without_gpu": (
        "ValueError",
        "ProcessGroupNCCL is only supported with GPUs, no GPUs found!",
        "gloo",
    ),
    "no_gpu": ("AssertionError", "Torch not compiled with CUDA enabled", "is_available"),
    "collective_timeout": (
        "DistBackendError",
        (
            "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=42, OpType=ALLREDUCE, NumelIn=1, "
            "NumelOut=1, Timeout(ms)=600000) ran for 600012 milliseconds before timing out."
        ),
        "timeout=",
    ),
    "weights_only_load": (
        "UnpicklingError",
        "Weights only load failed. This file can still be loaded, to do so you have two options",
        "state_dict",
    ),
    "marked_ready_twice": (
        "RuntimeError",
        "Expected to mark a variable ready only once. This error is caused by one of the following reasons",
        "use_reentrant=False",
    ),
    "no_gradient": (
        "RuntimeError",
        "element 0 of tensors does not require grad and does not have a grad_fn",
        "no_grad",
    ),
}


def fail(
    story: Story, rank: int, kind: str, message: str, line: int = 20, exit_code: int = 1, t: float = 5.0
) -> None:
    """A rank that raised at a line of the submission."""
    story.ending = Ending.CRASHED
    story.exit_codes[rank] = exit_code
    story.failures[rank] = Failure(kind, message, (frame(700, "torch/x.py", own=False), frame(line)))
    story.ranks[rank].t = t


def with_left_out(evidence: Evidence, *paths: str) -> Evidence:
    """The same run of a folder that held other files than Python's, too."""
    return replace(evidence, script=parse(replace(evidence.script.submission, left_out=paths)))


def told(evidence: Evidence) -> Diagnosis:
    found, broken = diagnose(evidence)
    assert broken == ()
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("DDP", "`from torch.nn.parallel import DistributedDataParallel as DDP`"),
        ("dist", "`import torch.distributed as dist`"),
        ("my_own", "Import or define it above this line"),
    ],
)
def test_the_import_of_a_well_known_name_is_told(name: str, said: str) -> None:
    story = Story()
    fail(story, 0, "NameError", f"name '{name}' is not defined")
    assert said in told(story.evidence()).hint


@pytest.mark.parametrize("name", WORDS)
def test_the_words_of_an_ending_that_cannot_happen_here(name: str) -> None:
    kind, message, word = WORDS[name]
    story = Story()
    for rank in (0, 1):
        fail(story, rank, kind, message)
    found = told(story.evidence())
    assert found.id == name
    assert found.explanation.startswith("Ranks 0 and 1 ")
    assert "`train.py:20`" in found.explanation
    assert word in found.explanation + found.hint
    assert [(p.path, p.line) for p in found.where] == [("train.py", 20)]


def test_the_shared_memory_of_all_ranks_workers_is_counted() -> None:
    story = Story()
    for rank in (0, 1):
        story.loader(rank, "train", num_workers=4)
    fail(story, 1, "RuntimeError", WORDS["shared_memory"][1])
    story.wait(0, "DDP gradient all-reduce", 25)
    story.ending = Ending.CRASHED
    found = told(story.evidence())
    assert (found.id, found.ranks) == ("shared_memory", (1,))
    assert "(8 workers on 2 ranks)" in found.explanation
    assert (
        "rank 0 then waited in the gradient all-reduce at `train.py:25` until it was stopped"
        in found.explanation
    )


@pytest.mark.parametrize(
    "lost",
    [
        "[/x/pair.cc:561] Connection closed by peer [127.0.0.1]:12161. This is typically caused by a remote worker",
        "[/x/pair.cc:545] Read error [127.0.0.1]:30928: Connection reset by peer.",
        "[Rank 0]: NCCL error: remote process exited or there was a network error, NCCL version 2.21.5",
        "writev [127.0.0.1]:23: Broken pipe",
        "NCCL error: unhandled system error\nLast error:\nsocketProgress: Connection closed by remote peer node<40123>",
        "failed to recv, got 0 bytes\nException: Failed to recv, got 0 bytes. Connection was likely closed.",
    ],
)
def test_a_lost_connection_is_never_the_cause_even_when_it_was_noticed_first(lost: str) -> None:
    story = Story()
    fail(story, 0, "RuntimeError", lost, line=30, t=1.0)
    fail(story, 1, "KeyError", "'label'", line=57, t=2.0)
    found = told(story.evidence())
    assert (found.id, found.ranks) == ("exception", (1,))
    assert found.explanation.startswith("Rank 1 raised KeyError (“'label'”) at `train.py:57`; rank 0 ")
    assert "lost the connection at `train.py:30`" in found.explanation
    assert [p.line for p in found.where] == [57, 30]


def test_of_two_errors_the_earlier_one_is_the_cause() -> None:
    story = Story(world_size=3)
    fail(story, 2, "ValueError", "late", line=40, t=3.0)
    fail(story, 1, "IndexError", "early", line=50, t=2.0)
    story.wait(0, "barrier", 60)
    story.ending = Ending.CRASHED
    found = told(story.evidence())
    assert found.ranks == (1,)
    assert "rank 0 then waited in `barrier` at `train.py:60` until it was stopped" in found.explanation
    assert "rank 2 later raised ValueError at `train.py:40`" in found.explanation


def test_what_fails_inside_a_collective_after_another_rank_died_follows_from_it_whatever_it_says() -> None:
    story = Story()
    fail(story, 0, "RuntimeError", "some backend's words of next year", line=30, t=3.0)
    below = Frame("torch/distributed/distributed_c10d.py", 3000, "all_reduce", False)
    story.failures[0] = replace(story.failures[0], frames=(below, *story.failures[0].frames[1:]))
    story.exit_codes[1] = -11
    story.ranks[1].t = 2.9
    found = told(story.evidence())
    assert (found.id, found.ranks) == ("rank_died", (1,))
    assert "SIGSEGV" in found.explanation


RETURNED = """import torch.distributed as dist

def main():
    dist.init_process_group("gloo")
    dist.destroy_process_group()
    return 1

if __name__ == "__main__":
    raise SystemExit(main())
"""


@pytest.mark.parametrize("destroyed", [True, False])
def test_an_exit_code_after_the_work_was_done_takes_nothing_back(destroyed: bool) -> None:
    story = honest()
    story.text = RETURNED
    story.ending, story.exit_codes[1] = Ending.CRASHED, 1
    for rank in story.ranks:
        rank.fields["others"] = [e for e in rank.fields["others"] if e.kind != "end"]
        rank.fields["groups"] = [g for g in rank.fields["groups"] if destroyed or g.op != "destroy"]
    story.ranks[1].event("exception", type="SystemExit", message="1", frames=[["train.py", 9, "<module>"]])
    evidence = story.evidence()
    assert evidence.finished == destroyed
    found = told(evidence)
    assert found.id == "rank_died"
    assert [p.line for p in found.where] == [9]
    assert ("decision" in found.hint) != destroyed
    if destroyed:
        assert "call `main()` by itself" in found.hint
        assert story.observation("DIST002").state is State.VERIFIED
        assert story.observation("DATA005").reason.endswith("took 12 optimizer steps.")


def test_ranks_that_a_launcher_ended_after_the_first_failure_are_no_cause() -> None:
    story = Story()
    story.ending = Ending.CRASHED
    story.exit_codes = {0: -15, 1: -9}
    story.ranks[0].t, story.ranks[1].t = 1.0, 2.0
    found = told(story.evidence())
    assert (found.id, found.ranks) == ("rank_died", (1,))
    assert "SIGKILL" in found.explanation


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("loader(num_workers=2)\n", "x" * 5000),
        ("", "two\nlines"),
        ("", "`rm -rf` \x1b[31m \u202e reversed"),
        ("", ""),
    ],
)
def test_a_scripts_own_words_stay_short_plain_and_on_one_line(text: str, message: str) -> None:
    story = Story()
    story.text = text
    for rank in (0, 1):
        fail(story, rank, "ValueError", message)
    found = told(story.evidence())
    assert len(found.explanation) < 600
    assert "\n" not in found.explanation
    assert "\x1b" not in found.explanation
    assert "\u202e" not in found.explanation
    assert found.explanation.count("`") % 2 == 0


def test_what_a_script_prints_does_not_make_a_good_run_look_bad() -> None:
    story = honest()
    story.failures[0] = Failure("OutOfMemoryError", "CUDA out of memory", (frame(3),))
    story.logs = (("", "Address already in use"), ("", ""))
    assert diagnose(story.evidence()) == (None, ())


def test_memory_that_grows_with_the_steps_is_named() -> None:
    story = honest()
    for r in story.ranks:
        steps = r.fields["steps"]
        r.fields["steps"] = [replace(s, rss_bytes=(300 + 40 * s.n) << 20) for s in steps]
    story.ending = Ending.OUT_OF_MEMORY
    story.killed = {0, 1}
    found = told(
        replace(
            story.evidence(),
            record=replace(
                story.evidence().record,
                ending_reason="All ranks together used 2,018 MiB; the limit is 1,500 MiB.",
            ),
        )
    )
    assert found.id == "out_of_memory"
    assert "2,018 MiB of 1,500 MiB" in found.explanation
    assert "rank 0 grew from 300 MiB in step 0" in found.explanation


def test_a_killed_rank_without_a_number_is_still_out_of_memory() -> None:
    story = honest()
    story.ending = Ending.OUT_OF_MEMORY
    story.exit_codes = {1: -9}
    found = told(story.evidence())
    assert (found.id, found.ranks) == ("out_of_memory", (1,))
    assert "Rank 1 was killed" in found.explanation


def test_the_last_epoch_of_a_stopped_rank_is_counted() -> None:
    story = Story()
    story.text = (
        "import torch.distributed as dist\n" * 20
        + "for epoch in range(9):\n    train()\n    if dist.get_rank() == 0:\n        break\n"
        + "dist.barrier()\n"
    )
    story.group()
    story.wrap()
    for epoch in range(2):
        story.epoch(strided(96, 2, epoch), sampler_epoch=epoch)
    story.epoch({1: strided(96, 2)[1][:8]}, sampler_epoch=2, exhausted=None)
    story.waiting = {
        0: Waiting((frame(25),), "barrier", frame(25)),
        1: Waiting((frame(22),), "DDP gradient all-reduce", frame(22)),
    }
    story.killed, story.exit_codes, story.ending = {0, 1}, {0: None, 1: None}, Ending.DEADLOCKED
    found = told(story.evidence())
    assert (found.id, found.ranks) == ("early_stop", (0,))
    assert "after 2 epochs at `train.py:24`" in found.explanation
    assert "one epoch further on, rank 1 waited in the gradient all-reduce" in found.explanation


def test_a_rank_that_prepares_data_while_the_others_wait_is_named_at_the_time_limit() -> None:
    story = Story(world_size=3)
    story.text = "\n" * 60
    for rank in (1, 2):
        story.wait(rank, "barrier", 30)
    busy = Frame("train.py", 12, "tokenise", True)
    story.waiting[0] = Waiting((busy,), "", busy)
    story.killed.add(0)
    story.ending = Ending.TIMED_OUT
    seen = story.evidence()
    found = told(replace(seen, record=replace(seen.record, wall_s=60.0)))
    assert (found.id, found.ranks) == ("rank_works_alone", (0,))
    assert "rank 0 was busy at `train.py:12`" in found.explanation
    assert "ranks 1 and 2 waited in `barrier` at `train.py:30`" in found.explanation


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ('f"file://{tempfile.mkdtemp()}/store"', True),
        ('"file:///tmp/store" + os.environ["RANK"]', True),
        ('"file:///tmp/store"', False),
    ],
)
def test_ranks_that_wait_in_files_of_their_own(path: str, own: bool) -> None:
    story = Story()
    story.text = f"""import os, tempfile
import torch.distributed as dist
dist.init_process_group("gloo", init_method={path}, rank=0, world_size=2)
"""
    for rank in (0, 1):
        story.wait(rank, "rendezvous (init_process_group)", 3)
    story.ending = Ending.DEADLOCKED
    found = told(story.evidence())
    assert found.id == "incomplete_rendezvous"
    assert ("must all name the same one" in found.explanation) is own
    assert ("file of its own" in found.title) is own
    assert found.where[0].line == 3


def test_a_run_that_still_trains_at_its_limit_is_slow_and_not_stuck() -> None:
    story = honest(epochs=2)
    story.ending = Ending.TIMED_OUT
    seen = story.evidence()
    last = max(s.t for r in seen.trace.ranks for s in r.steps)
    found = told(replace(seen, record=replace(seen.record, wall_s=last + 0.1, deadline_s=last)))
    assert found.id == "time_limit"
    assert "12 optimizer steps each" in found.explanation
    late = told(replace(seen, record=replace(seen.record, wall_s=last + 55, deadline_s=60.0)))
    assert late.id == "time_limit"
    assert "the last optimizer step was 55 s before" in late.explanation


def test_one_process_that_never_meets_its_test_is_told_so_without_a_word_of_ranks() -> None:
    story = honest(world_size=1, epochs=2)
    story.ending = Ending.TIMED_OUT
    text = story.text
    for goal in (False, True):
        story.text = (
            text + "while True:\n    if abs(losses[-2] - losses[-1]) < 1e-3:\n        break\n"
            if goal
            else text
        )
        seen = story.evidence()
        last = max(s.t for r in seen.trace.ranks for s in r.steps)
        found = told(replace(seen, record=replace(seen.record, wall_s=last + 0.1, deadline_s=last)))
        assert found.id == "time_limit"
        assert "rank" not in found.explanation + found.hint
        assert ("did not hold in 24 optimizer steps" in found.explanation) is goal


def test_an_attempt_to_spawn_without_a_guard_is_read_from_the_childs_words() -> None:
    story = Story()
    for r in story.ranks:
        r.event("process", 9, op="spawn", target="_wrap", by="torch")
        fail(story, r.rank, "ProcessExitedException", "process 0 terminated with exit code 1", line=9)
    words = (
        "RuntimeError: \n        An attempt has been made to start a new process before the\n        current process "
        "has finished its bootstrapping phase.\n"
    )
    story.logs = (("", words), ("", words))
    found = told(story.evidence())
    assert found.id == "missing_main_guard"
    assert '`if __name__ == "__main__":`' in found.hint


def test_an_evaluation_that_only_rank_0_began_explains_what_gloo_could_not_match() -> None:
    story = Story()
    story.group()
    story.wrap(num_batchnorm=1)
    story.ranks[0].event("evaluation", 44, op="begin", through_wrapper=True)
    fail(story, 0, "RuntimeError", "Connection reset by peer", line=30)
    fail(story, 1, "gloo::EnforceNotMet", "op.preamble.length <= op.nbytes. 8 vs 4.", exit_code=-6)
    found = told(story.evidence())
    assert (found.id, found.ranks) == ("rank0_evaluation", (0,))
    assert "`train.py:44`" in found.explanation


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("config.toml", "Write what `config.toml` says into a Python file"),
        ("configs/small.yaml", "Write what `configs/small.yaml` says"),
        ("start.pt", "do without `start.pt`"),
        ("data/train-extra.csv", "do without `data/train-extra.csv`"),
    ],
)
@pytest.mark.parametrize("folder", ["", "/somewhere/submission/"])
def test_a_file_that_was_not_taken_along(path: str, said: str, folder: str) -> None:
    story = Story()
    for rank in (0, 1):
        fail(story, rank, "FileNotFoundError", f"[Errno 2] No such file or directory: '{folder}{path}'")
    found = told(with_left_out(story.evidence(), "notes.md", path))
    assert found.id == "left_out_file"
    assert f"`{path}` lies in the folder that was handed in" in found.explanation
    assert "barrier" not in found.hint
    assert said in found.hint


@pytest.mark.parametrize("missing", ["my-config.toml", "config.toml.bak", "config"])
def test_another_file_is_none_of_those_that_were_not_taken_along(missing: str) -> None:
    story = Story()
    fail(story, 0, "FileNotFoundError", f"[Errno 2] No such file or directory: '{missing}'")
    assert told(with_left_out(story.evidence(), "config.toml")).id == "missing_file"


def test_a_file_that_the_script_writes_itself_is_none_that_was_left_out() -> None:
    story = Story()
    story.write(0, "best.json")
    fail(story, 1, "FileNotFoundError", "[Errno 2] No such file or directory: '/outputs/best.json'")
    assert told(with_left_out(story.evidence(), "best.json")).id == "missing_file"


@pytest.mark.parametrize("one", load_explanations(), ids=lambda e: e.id)
def test_every_explanation_has_its_page(one: object) -> None:
    page = one.page  # type: ignore[attr-defined]
    title, blank, *_ = page.splitlines()
    assert title.endswith(".")
    assert len(title) < 90
    assert blank == ""
    assert re.findall(r"^## (.*)$", page, flags=re.MULTILINE) == ["What happened", "Why", "Mend it"]


def test_line_and_advice_come_from_the_rule_that_saw_the_cause() -> None:
    story = Story()
    for rank in (0, 1):
        fail(story, rank, "RuntimeError", "Received data size doesn't match expected size")
    evidence = story.evidence()
    alone = told(evidence)
    cause = Finding(
        "DIST009", Severity.ERROR, EvidenceKind.OUTSIDE, "seen", "write this", (Location("train.py", 7),)
    )
    led, _ = diagnose(evidence, [replace(cause, code="DATA001", hint="of another fault"), cause])
    assert led is not None
    assert (led.hint, led.where[0].line) == ("write this", 7)
    assert set(alone.where) <= set(led.where)
    for other in (replace(cause, refuted="the run showed the opposite"), replace(cause, code="IO001")):
        assert diagnose(evidence, [other]) == (alone, ())


def test_the_words_of_older_nccl_about_a_shared_gpu_are_known_too() -> None:
    story = Story()
    for rank in (0, 1):
        fail(
            story,
            rank,
            "DistBackendError",
            "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000",
        )
    assert told(story.evidence()).id == "duplicate_device"


def test_the_assertion_of_a_kernel_is_quoted_from_what_the_rank_printed() -> None:
    story = Story()
    kind, message, _word = WORDS["device_assert"]
    fail(story, 1, kind, message)
    printed = (
        "/pytorch/aten/src/ATen/native/cuda/Loss.cu:245: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], "
        "thread: [3,0,0] Assertion `t >= 0 && t < n_classes` failed.\n"
    )
    story.logs = (("", ""), ("", printed))
    found = told(story.evidence())
    assert "“Assertion 't >= 0 && t < n_classes' failed”" in found.explanation
    assert "may be innocent" in found.explanation


@pytest.mark.parametrize(
    "words",
    [
        "CUDA out of memory. Tried to allocate 2.00 GiB.",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "NCCL error: unhandled cuda error\nLast error:\nCuda failure 2 'out of memory'",
    ],
)
def test_memory_of_a_gpu_that_is_used_up_is_the_scripts_in_whatever_words(words: str) -> None:
    assert LastWords("RuntimeError", words, ()).out_of_memory
    story = Story()
    for rank in (0, 1):
        fail(story, rank, "RuntimeError", words)
    story.ending = Ending.OUT_OF_MEMORY
    assert told(on_gpus(story)).id == "out_of_memory"


def test_the_end_that_nccls_watchdog_makes_names_the_collective() -> None:
    story = Story()
    for rank in (0, 1):
        fail(story, rank, "c10::DistBackendError", WORDS["collective_timeout"][1], exit_code=-6)
        story.failures[rank] = replace(story.failures[rank], frames=())
    found = told(story.evidence())
    assert found.id == "collective_timeout"
    assert found.explanation.startswith(
        "Ranks 0 and 1 gave up waiting for the other ranks in collective 42 of its group, allreduce of 1 element, "
        "after 600 s."
    )


@pytest.mark.parametrize(("limit", "named"), [("seconds=2", True), ("minutes=30", False)])
def test_a_short_time_limit_is_the_cause(limit: str, named: bool) -> None:
    story = Story()
    story.text = (
        "from datetime import timedelta\nimport torch.distributed as dist\n"
        f"LIMIT = timedelta({limit})\ndist.init_process_group('gloo', timeout=LIMIT)\n"
    )
    fail(story, 1, "RuntimeError", "[/tmp/unbound_buffer.cc:81] Timed out waiting 2000ms for recv operation")
    found = told(story.evidence())
    assert found.id == "collective_timeout"
    assert (found.where[0].line == 3) is named
    assert ("`train.py:3` gives the others 2 s to come" in found.explanation) is named


# -- faults of the machine ---------------------------------------------------------------------------------------------

ECC = "CUDA error: uncorrectable ECC error encountered\nCUDA kernel errors might be asynchronously reported"
GPUS = ("GPU-0aaa", "GPU-1bbb")


def on_gpus(story: Story) -> Evidence:
    """The story on two leased GPUs."""
    evidence = story.evidence()
    return replace(evidence, record=replace(evidence.record, environment={"lease": {"gpus": list(GPUS)}}))


def failed_on_a_device(message: str, text: str = "", kind: str = "AcceleratorError") -> Story:
    """Rank 1 really raised that, as its probe and its standard error tell."""
    story = Story()
    story.text = text
    fail(story, 1, kind, message)
    story.ranks[1].event("exception", type=kind, message=message, frames=[["train.py", 20, "main"]])
    story.wait(0, "barrier", 25)
    story.ending = Ending.CRASHED
    return story


def raised_by_the_script() -> Story:
    """The same words, from a `raise` of its own."""
    story = failed_on_a_device(ECC, text="\n" * 19 + "raise RuntimeError(words)\n", kind="RuntimeError")
    story.failures[1] = replace(story.failures[1], frames=(frame(20),))
    return story


@pytest.mark.parametrize(
    "message",
    [
        ECC,
        "CUDA error: CUDA-capable device(s) is/are busy or unavailable",
        "CUDA error: no kernel image is available for execution on the device",
        "CUDA error: unknown error",
        "CUDA error: no CUDA-capable device is detected",
        "The NVIDIA driver on your system is too old (found version 12020).",
        (
            "NCCL error in: x.cpp:77, unhandled system error\nncclSystemError: System call (e.g. socket, malloc) or "
            "external library call failed or device error. \nLast error:\nError: Call to posix_fallocate failed"
        ),
        (
            "NCCL error in: x.cpp:77, unhandled cuda error\nncclUnhandledCudaError: Call to CUDA function failed.\n"
            "Last error:\nCuda failure 802 'system not yet initialized'"
        ),
    ],
)
def test_what_only_a_machine_can_be_to_blame_for_is_not_judged_but_tried_elsewhere(message: str) -> None:
    evidence = on_gpus(failed_on_a_device(message, kind="RuntimeError"))
    with pytest.raises(InfraError, match=r"the GPU of rank 1 \(GPU-1bbb\) reported"):
        refuse_machine_fault(evidence)
    assert refuse_machine_fault(evidence, last_try=True) is evidence, "the last try is judged"
    found = told(evidence)
    assert (found.id, found.ranks) == ("machine_fault", (1,))
    assert "unless the script says so itself" in found.explanation


@pytest.mark.parametrize(
    "evidence",
    [
        failed_on_a_device(ECC).evidence(),
        on_gpus(raised_by_the_script()),
        on_gpus(failed_on_a_device("my own words, which mention no device")),
        on_gpus(failed_on_a_device(ECC, kind="MyError")),
        on_gpus(
            failed_on_a_device(
                "No CUDA GPUs are available", text='os.environ["CUDA_VISIBLE_DEVICES"] = "7"\n'
            )
        ),
        on_gpus(failed_on_a_device("CUDA error: device-side assert triggered")),
        on_gpus(failed_on_a_device("CUDA error: invalid device ordinal")),
    ],
    ids=[
        "without a GPU of its own",
        "the script raises it",
        "other words",
        "an exception that torch does not raise",
        "the script chose devices that are not there",
        "its own assertion",
        "its own number",
    ],
)
def test_who_is_to_blame_himself_is_judged(evidence: Evidence) -> None:
    refuse_machine_fault(evidence)
    assert told(evidence).id != "machine_fault"


def test_words_that_were_only_printed_are_not_believed() -> None:
    story = failed_on_a_device("'label'", kind="KeyError")
    story.failures[1] = replace(story.failures[1], type="RuntimeError", message=ECC, frames=())
    refuse_machine_fault(on_gpus(story))


def test_a_system_error_of_nccl_after_another_rank_died_is_no_fault_of_the_machine() -> None:
    story = failed_on_a_device(
        "NCCL error: unhandled system error\nncclSystemError: System call\nLast error:\nsocketProgress: Connection "
        "closed by remote peer node<40123>"
    )
    fail(story, 0, "KeyError", "'label'", line=57, t=6.0)
    story.killed.clear()
    evidence = on_gpus(story)
    refuse_machine_fault(evidence)
    assert told(evidence).ranks == (0,)
