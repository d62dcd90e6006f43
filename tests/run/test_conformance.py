"""What a learner's script may rely on and what a judge may rely on, in every runtime that can run here."""

from __future__ import annotations

import json
from typing import Any

import pytest

from grader.errors import UsageError
from grader.model.run import Ending
from grader.run.registry import find_runtimes, open_runtime
from tests.run.running import Run, limits, processes_with

# In all runtimes together.
pytestmark = pytest.mark.slow


def test_runtimes_are_found_by_folder_and_an_unknown_name_lists_them() -> None:
    assert "process" in find_runtimes()
    with pytest.raises(UsageError, match=r"'nonesuch'.*process"):
        open_runtime("nonesuch")


# -- what a script finds -----------------------------------------------------------------------------------------------


def test_ranks_get_torchruns_variables_and_folders_of_their_own_and_nothing_else(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "must not arrive")
    ran = run("import json, os; print(json.dumps(dict(os.environ)))", nproc_per_node=3)
    seen = [json.loads(ran.out(rank)) for rank in range(3)]
    assert [one["RANK"] for one in seen] == [one["LOCAL_RANK"] for one in seen] == ["0", "1", "2"]
    for one in seen:
        assert one["WORLD_SIZE"] == one["LOCAL_WORLD_SIZE"] == "3"
        assert one["OMP_NUM_THREADS"] == "1"
        assert "SECRET_TOKEN" not in one
        assert {"HOME", "TMPDIR", "DATA_DIR", "OUTPUT_DIR", "MASTER_ADDR", "MASTER_PORT"} <= one.keys()
    assert ran.record.ending is Ending.COMPLETED


def test_scripts_read_files_beside_them_import_their_modules_and_get_arguments(run: Run) -> None:
    ran = run(
        {
            "train.py": "import sys, helper.deep; print(open('notes.txt').read(), helper.deep.X, sys.argv)",
            "helper/__init__.py": "",
            "helper/deep.py": "X = 7",
            "notes.txt": "read me",
        },
        argv=("--epochs", "3"),
    )
    assert ran.out() == "read me 7 ['train.py', '--epochs', '3']\n"


def test_own_modules_come_before_warm_ones_of_the_same_name(run: Run) -> None:
    # Both names are imported by torch itself, so a warm process has them already.
    ran = run(
        {
            "train.py": "import torch, queue, timeit; print(queue.MINE, timeit.MINE, torch.ones(2).sum().item())",
            "queue.py": "MINE = 'queue'",
            "timeit/__init__.py": "MINE = 'timeit'",
        }
    )
    assert ran.out() == "queue timeit 2.0\n", ran.err()


def test_what_a_script_writes_beside_itself_does_not_change_what_is_judged(run: Run) -> None:
    ran = run("open('train.py', 'a').write('# changed'); open('checkpoint.pt', 'w').write('x')")
    assert ran.record.ending is Ending.COMPLETED
    laid_out = ran.workspace.submission
    assert [path.name for path in laid_out.iterdir()] == ["train.py"]
    assert "changed" not in (laid_out / "train.py").read_text().splitlines()[-1].partition("#")[2:]


def test_generators_start_differently_on_every_rank_and_alike_in_every_run(run: Run) -> None:
    script = """
        import random, numpy, torch
        print(random.random(), numpy.random.rand(), torch.rand(1).item())
    """
    first, again, other = run(script, seed=1), run(script, seed=1), run(script, seed=2)
    draws = [first.out(0).split(), first.out(1).split(), other.out(0).split()]
    assert all(len(set(column)) == 3 for column in zip(*draws, strict=True))
    assert [again.out(0), again.out(1)] == [first.out(0), first.out(1)]


def test_only_the_standard_descriptors_and_default_handlers_are_inherited(run: Run) -> None:
    ran = run("""
        import os, signal
        print(sorted(d for d in map(int, os.listdir("/proc/self/fd")) if d < 1000)[:-1])
        print([signal.getsignal(s) is signal.SIG_DFL for s in (signal.SIGTERM, signal.SIGCHLD, signal.SIGUSR1)])
        print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, signal.pthread_sigmask(0, ()))
        print(os.getsid(0) == os.getpid(), os.read(0, 10))
    """)
    assert ran.out() == "[0, 1, 2]\n[True, True, True]\nTrue set()\nTrue b''\n"


# -- real training -----------------------------------------------------------------------------------------------------


def test_a_ddp_script_trains_and_leaves_its_weights(run: Run) -> None:
    ran = run("""
        import os, torch, torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel as DDP
        dist.init_process_group("gloo")
        model = DDP(torch.nn.Linear(4, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(8, 4)).square().sum().backward()
            optimizer.step()
        mine = torch.cat([p.detach().flatten() for p in model.parameters()])
        both = [torch.empty_like(mine) for _ in range(2)]
        dist.all_gather(both, mine)
        print(torch.equal(*both))
        if dist.get_rank() == 0:
            torch.save(model.module.state_dict(), os.environ["OUTPUT_DIR"] + "/model.pt")
        dist.destroy_process_group()
    """)
    assert ran.exit_codes == [0, 0], ran.err()
    assert ran.out(0) == ran.out(1) == "True\n"
    assert [file.path for file in ran.record.outputs] == ["model.pt"]
    assert 0 < ran.record.outputs[0].mtime_s < ran.record.wall_s + 1
    assert ran.record.slowest_cpu_s > 0
    assert all(rank.peak_rss_bytes > 50 << 20 for rank in ran.record.ranks)


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_loader_workers_of_every_kind_work(run: Run, context: str) -> None:
    ran = run(
        f"""
        import torch
        from torch.utils.data import DataLoader, Dataset

        class Numbers(Dataset):
            def __len__(self):
                return 12

            def __getitem__(self, index):
                return torch.tensor(index)

        if __name__ == "__main__":
            loader = DataLoader(Numbers(), batch_size=4, num_workers=2, multiprocessing_context="{context}")
            print(sum(batch.sum().item() for batch in loader))
        """,
        nproc_per_node=1,
    )
    assert ran.out() == "66\n", ran.err()
    assert ran.exit_codes == [0]
    assert ran.record.ranks[0].leftovers == 0


def test_processes_spawned_by_a_script_find_it_as_their_main_module(run: Run) -> None:
    ran = run(
        """
        import torch.multiprocessing as mp

        def child(index, words):
            print("child", index, words, flush=True)

        if __name__ == "__main__":
            mp.spawn(child, args=("hello",), nprocs=2)
            print("parent", __name__)
        """,
        nproc_per_node=1,
    )
    assert sorted(ran.out().splitlines()) == ["child 0 hello", "child 1 hello", "parent __main__"], ran.err()


# -- how ranks end -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last_line", "exit_code"),
    [
        ("sys.exit(3)", 3),
        ("os._exit(9)", 9),
        ("os.kill(os.getpid(), signal.SIGSEGV)", -11),
        ("os.kill(os.getpid(), signal.SIGKILL)", -9),
    ],
)
def test_exit_codes_are_the_kernels(run: Run, last_line: str, exit_code: int) -> None:
    # Which exit code Python makes of which ending is the same everywhere: see the process runtime's own tests.
    ran = run(f"import os, signal, sys\n{last_line}")
    assert ran.exit_codes == [exit_code, exit_code]
    assert ran.record.ending is Ending.CRASHED
    assert not any(rank.killed_by_judge for rank in ran.record.ranks)


def test_exit_handlers_run_and_files_left_open_are_written(run: Run) -> None:
    ran = run(
        """
        import atexit, os, threading, time
        atexit.register(print, "at exit")
        left_open = open(os.environ["OUTPUT_DIR"] + "/history.txt", "w")
        left_open.write("written at last")

        def late():
            time.sleep(0.2)
            print("thread")

        threading.Thread(target=late).start()
        print("script")
        """,
        nproc_per_node=1,
    )
    assert ran.out() == "script\nthread\nat exit\n"
    assert ran.output("history.txt") == "written at last"


def test_a_crash_of_one_rank_ends_the_others_and_names_rank_and_line(run: Run) -> None:
    ran = run("""
        import os, time

        def load():
            raise KeyError("labels")

        if os.environ["RANK"] == "1":
            load()
        time.sleep(50)
    """)
    assert ran.record.ending is Ending.CRASHED
    assert "Rank 1 raised KeyError at train.py:5" in ran.record.ending_reason
    waiting, failing = ran.record.ranks
    assert (waiting.exit_code, waiting.killed_by_judge) == (None, True)
    assert waiting.waiting is not None
    assert waiting.waiting.site is not None
    assert waiting.waiting.site.line == 9
    assert (failing.exit_code, failing.killed_by_judge) == (1, False)
    assert failing.failure is not None
    assert (failing.failure.type, failing.failure.message) == ("KeyError", "'labels'")
    assert [(frame.path, frame.line, frame.function) for frame in failing.failure.frames] == [
        ("train.py", 5, "load"),
        ("train.py", 8, "<module>"),
    ]
    assert ran.record.wall_s < 20, "the others were not ended until the limit"


def test_a_rank_may_leave_early_while_others_still_work(run: Run) -> None:
    ran = run("""
        import os, time
        if os.environ["RANK"] == "1":
            time.sleep(1)
            print("done")
    """)
    assert ran.record.ending is Ending.COMPLETED
    assert ran.out(1) == "done\n"
    first, second = ran.record.ranks
    assert first.ended_s < second.ended_s


def test_a_collective_on_rank_0_alone_is_a_deadlock_with_the_lines_of_all_ranks(run: Run) -> None:
    ran = run("""
        import torch, torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel as DDP
        dist.init_process_group("gloo")
        model = DDP(torch.nn.Linear(4, 2))
        for _ in range(2):
            model(torch.randn(3, 4)).sum().backward()

        def report():
            dist.barrier()

        if dist.get_rank() == 0:
            report()
        model(torch.randn(3, 4)).sum().backward()
        dist.destroy_process_group()
    """)
    assert ran.record.ending is Ending.DEADLOCKED
    waiting = [rank.waiting for rank in ran.record.ranks]
    assert [(w.operation, w.site.path, w.site.line) for w in waiting if w and w.site] == [
        ("barrier", "train.py", 10),
        ("DDP gradient all-reduce", "train.py", 14),
    ]
    assert "rank 0 waits at train.py:10 (barrier)" in ran.record.ending_reason
    assert "rank 1 waits at train.py:14 (DDP gradient all-reduce)" in ran.record.ending_reason
    assert all(rank.killed_by_judge for rank in ran.record.ranks)
    assert (ran.workspace.stack(0, 0)).read_text().count("barrier") > 0


def test_the_limit_holds_against_a_script_that_ignores_every_signal_it_can(run: Run) -> None:
    ran = run(
        """
        import signal, time
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        while True:
            time.sleep(0.01)
        """,
        limits=limits(wall_s=2.0),
    )
    assert ran.record.ending is Ending.TIMED_OUT
    assert "2 s" in ran.record.ending_reason
    assert ran.record.wall_s < 2 + 5
    assert [(rank.exit_code, rank.killed_by_judge) for rank in ran.record.ranks] == [(None, True)] * 2


def test_the_limit_shows_where_a_busy_script_was(run: Run) -> None:
    ran = run("def spin():\n    while True:\n        pass\n\nspin()\n", limits=limits(wall_s=1.0))
    assert ran.record.ending is Ending.TIMED_OUT
    for rank in ran.record.ranks:
        assert rank.waiting is not None
        assert rank.waiting.operation == ""
        assert [frame.function for frame in rank.waiting.frames] == ["spin", "<module>"]


def test_nothing_stays_alive_not_even_a_daemon(run: Run) -> None:
    ran = run(
        """
        import os, subprocess, sys
        for _ in range(2):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    os.execvp("sleep", ["sleep", "54321.25"])
                os._exit(0)
        os.wait(), os.wait()
        print("left")
        """,
        nproc_per_node=1,
    )
    assert ran.record.ending is Ending.COMPLETED
    assert ran.out() == "left\n"
    assert ran.record.ranks[0].leftovers == 2
    assert processes_with("54321.25") == []


def test_memory_over_the_limit_ends_the_run(run: Run) -> None:
    ran = run(
        """
        import time
        held = []
        while True:
            held.append(bytearray(b"x" * (32 << 20)))
            time.sleep(0.01)
        """,
        nproc_per_node=1,
        limits=limits(memory_bytes=1 << 30),
    )
    assert ran.record.ending is Ending.OUT_OF_MEMORY
    assert "1,024 MiB" in ran.record.ending_reason
    assert ran.record.ranks[0].killed_by_judge


def test_an_allocation_that_fails_is_out_of_memory_too(run: Run) -> None:
    ran = run("import torch\ntorch.empty(1 << 60)")
    assert ran.record.ending is Ending.OUT_OF_MEMORY
    assert "train.py:2" in ran.record.ending_reason


# -- what ranks say ----------------------------------------------------------------------------------------------------


def test_a_flood_is_capped_marked_and_does_not_block_the_script(run: Run) -> None:
    ran = run(
        """
        import sys
        print("first line")
        for _ in range(300):
            sys.stdout.write("x" * 9_999 + "\\n")
        print("last line")
        sys.exit(4)
        """,
        nproc_per_node=1,
    )
    rank = ran.record.ranks[0]
    assert rank.exit_code == 4
    assert rank.stdout_bytes == 3_000_021
    assert rank.stdout_lines == 302
    assert rank.output_cut
    text = ran.out()
    assert len(text) < 70_000
    assert text.startswith("first line\n")
    assert text.endswith("last line\n")
    assert "bytes cut here" in text


def test_logs_are_safe_text(run: Run) -> None:
    ran = run(
        r"""
        import os
        os.write(1, b"nul \x00 bell \x07 \xff red \x1b[31mtext\x1b[0m \x1b]0;title\x07end\n")
        os.write(1, "bidi \u202e ende \u00e9\n".encode())
        os.write(1, b"10%\r20%\r\ndone")
        """,
        nproc_per_node=1,
    )
    bad = "\ufffd"
    assert ran.out() == f"nul {bad} bell {bad} {bad} red text end\nbidi {bad} ende é\n10%\n20%\ndone"
    assert ran.record.ranks[0].stdout_lines == 4


def test_progress_tells_what_rank_0_printed_last(run: Run) -> None:
    ran = run("import time; print('epoch 1'); time.sleep(1.3)")
    assert "epoch 1" in {progress.line for progress in ran.progress}
    assert [progress.phase for progress in ran.progress] == ["run"] * len(ran.progress)
    assert all(len(progress.steps) == 2 for progress in ran.progress)


# -- what ranks leave --------------------------------------------------------------------------------------------------


def test_only_plain_files_come_back_and_the_rest_is_listed_safely(run: Run) -> None:
    ran = run(
        """
        import os
        os.chdir(os.environ["OUTPUT_DIR"])
        open("model.pt", "w").write("weights")
        os.makedirs("deep/er")
        open("deep/er/log.txt", "w").write("log")
        os.symlink("/etc/passwd", "passwd")
        os.symlink("/etc", "folder")
        os.symlink("nowhere", "dangling")
        os.mkfifo("pipe")
        open("twin", "w").write("x"); os.link("twin", "twin2")
        open("new\\nline", "w").write("x")
        open(b"bad\\xff", "w").write("x")
        with open("sparse", "wb") as file:
            file.truncate(900 << 20)
        """,
        nproc_per_node=1,
    )
    assert ran.exit_codes == [0], ran.err()
    assert [(file.path, file.size_bytes) for file in ran.record.outputs] == [
        ("deep/er/log.txt", 3),
        ("model.pt", 7),
    ]
    kept = sorted(str(p.relative_to(ran.workspace.outputs)) for p in ran.workspace.outputs.rglob("*"))
    assert kept == ["deep", "deep/er", "deep/er/log.txt", "model.pt"]
    refused: Any = dict(ran.record.environment["refused_outputs"])
    assert refused.keys() == {
        *("passwd", "folder", "dangling", "pipe", "twin", "twin2", "sparse"),
        *("new\\nline", "bad\\udcff"),
    }
    assert refused["passwd"] == "it is a symbolic link"
    assert refused["pipe"] == "it is not a plain file"


def test_one_run_finds_nothing_of_the_run_before(run: Run) -> None:
    script = """
        import os
        print(os.listdir(os.environ["OUTPUT_DIR"]), os.path.exists("mark"), os.listdir(os.environ["TMPDIR"]))
        for path in ("mark", os.environ["OUTPUT_DIR"] + "/mark", os.environ["TMPDIR"] + "/mark"):
            open(path, "w").write("here")
    """
    run(script, nproc_per_node=1)
    assert run(script, nproc_per_node=1).out() == "[] False []\n"


# -- the probe and the other launcher ----------------------------------------------------------------------------------

TRAINING = """
    import torch
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    {end}
"""


@pytest.mark.parametrize("end", ["pass", "import os; os.kill(os.getpid(), 9)"])
def test_all_that_the_probe_told_is_kept_and_stamped_also_by_a_killed_rank(run: Run, end: str) -> None:
    ran = run(TRAINING.format(end=end), probe=True)
    for rank in (0, 1):
        lines = [line.split("\t", 1) for line in ran.workspace.trace(rank).read_text().splitlines()]
        stamps = [float(stamp) for stamp, _ in lines]
        assert stamps == sorted(stamps)
        assert 0 < stamps[0] <= stamps[-1] <= ran.record.wall_s + 1
        events = [json.loads(event) for _, event in lines]
        assert events[0]["e"] == "start"
        assert events[0]["rank"] == rank
        assert sum(event["e"] == "step" for event in events) == 4
        assert (events[-1]["e"] == "end") == (end == "pass")
        assert ran.record.ranks[rank].trace_bytes > 0
        assert (ran.record.ranks[rank].foreign_lines, ran.record.ranks[rank].gone_lines) == (0, 0)


SEARCH = """
    import gc, os, stat, sys
    [pipe] = [n for n in map(int, os.listdir("/proc/self/fd")) if n > 3000 and stat.S_ISFIFO(os.fstat(n).st_mode)]
    frame, specs = sys._getframe(), []
    while frame is not None:
        specs += [one for one in frame.f_locals.values() if type(one).__name__ == "LaunchSpec"]
        frame = frame.f_back
    print(bool(specs), {one.secret for one in specs}, [name for name in sys.modules if name.startswith("grader")])
    numbers = [one for held in gc.get_objects() if type(held) is dict for one in held.values() if type(one) is int]
    print({one for one in numbers if one > 1 << 64})
    print(open("/proc/self/cmdline").read(), open(f"/proc/{os.getppid()}/cmdline").read())
    os.write(pipe, b'{"e":"step","t":0.1,"n":0}\\n')
"""


@pytest.mark.parametrize("launcher", ["fork", "torchrun"])
def test_a_script_finds_no_secret_and_what_it_writes_into_the_trace_is_foreign(
    run: Run, launcher: str
) -> None:
    secret = (1 << 127) + 20_041_975
    ran = run(SEARCH, probe=True, nproc_per_node=1, launcher=launcher, secret=secret)
    assert ran.out().splitlines()[0] == "True {0} []"
    assert str(secret) not in ran.out()
    assert (ran.record.ranks[0].foreign_lines, ran.record.ranks[0].gone_lines) == (1, 0)


def test_a_child_forked_by_hand_that_runs_to_the_end_tells_nothing(run: Run) -> None:
    ran = run("import os, torch\nif os.fork(): os.wait()\n", probe=True, nproc_per_node=1)
    events = [json.loads(line.split("\t", 1)[1]) for line in ran.workspace.trace(0).read_text().splitlines()]
    assert [event["e"] for event in events].count("end") == 1


@pytest.mark.parametrize("probe", [True, False])
def test_the_torchrun_command_fills_the_same_record(run: Run, probe: bool) -> None:
    ran = run(
        """
        import os, sys, time
        print("rank", os.environ["RANK"], sys.argv[1:])
        if os.environ["RANK"] == "1":
            time.sleep(1)
            raise RuntimeError("on purpose")
        time.sleep(30)
        """,
        launcher="torchrun",
        probe=probe,
        argv=("-x",),
    )
    assert ran.record.launcher == "torchrun"
    assert ran.record.ending is Ending.CRASHED
    assert ran.record.ranks[1].exit_code == 1
    assert ran.record.ranks[1].failure is not None
    assert ran.record.ranks[1].failure.message == "on purpose"
    assert [ran.out(0), ran.out(1)] == ["rank 0 ['-x']\n", "rank 1 ['-x']\n"]
    assert ran.record.wall_s < 50
