"""What the record says of the end: exit codes, crashes, deadlocks, limits; and nothing stays alive."""

from __future__ import annotations

from grader.model.run import Ending
from grader.run.script_runs import RunScript, limits_with, processes_with


class EndingConformance:
    """How ranks end, and what the record says about it."""

    def test_exit_codes_are_the_kernels(self, run: RunScript) -> None:
        # Which exit code Python makes of which ending is the same everywhere: see the process runtime's own tests.
        ran = run(
            """
            import os, pathlib, signal, sys, time
            endings = [
                lambda: sys.exit(3),
                lambda: os._exit(9),
                lambda: os.kill(os.getpid(), signal.SIGSEGV),
                lambda: os.kill(os.getpid(), signal.SIGKILL),
            ]
            # Together: the first that fails would soon have the others ended.
            ready = pathlib.Path(os.environ["OUTPUT_DIR"])
            ready.joinpath(os.environ["RANK"]).touch()
            while len(list(ready.iterdir())) < len(endings):
                time.sleep(0.01)
            endings[int(os.environ["RANK"])]()
            """,
            nproc_per_node=4,
        )
        assert ran.exit_codes == [3, 9, -11, -9]
        assert ran.record.ending is Ending.CRASHED
        assert not any(rank.killed_by_judge for rank in ran.record.ranks)

    def test_exit_handlers_run_and_files_left_open_are_written(self, run: RunScript) -> None:
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

    def test_a_crash_of_one_rank_ends_the_others_and_names_rank_and_line(self, run: RunScript) -> None:
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

    def test_a_rank_may_leave_early_while_others_still_work(self, run: RunScript) -> None:
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

    def test_a_collective_on_rank_0_alone_is_a_deadlock_with_the_lines_of_all_ranks(
        self, run: RunScript
    ) -> None:
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

    def test_the_limit_holds_against_a_script_that_ignores_every_signal_it_can(self, run: RunScript) -> None:
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
            limits=limits_with(wall_s=2.0),
        )
        assert ran.record.ending is Ending.TIMED_OUT
        assert "2 s" in ran.record.ending_reason
        assert ran.record.wall_s < 2 + 5
        assert [(rank.exit_code, rank.killed_by_judge) for rank in ran.record.ranks] == [(None, True)] * 2

    def test_the_limit_shows_where_a_busy_script_was(self, run: RunScript) -> None:
        ran = run("def spin():\n    while True:\n        pass\n\nspin()\n", limits=limits_with(wall_s=1.0))
        assert ran.record.ending is Ending.TIMED_OUT
        for rank in ran.record.ranks:
            assert rank.waiting is not None
            assert rank.waiting.operation == ""
            assert [frame.function for frame in rank.waiting.frames] == ["spin", "<module>"]

    def test_nothing_stays_alive_not_even_a_daemon(self, run: RunScript) -> None:
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

    def test_memory_over_the_limit_ends_the_run(self, run: RunScript) -> None:
        ran = run(
            """
            import time
            held = []
            while True:
                held.append(bytearray(b"x" * (32 << 20)))
                time.sleep(0.01)
            """,
            nproc_per_node=1,
            limits=limits_with(memory_bytes=1 << 30),
        )
        assert ran.record.ending is Ending.OUT_OF_MEMORY
        assert "1,024 MiB" in ran.record.ending_reason
        assert ran.record.ranks[0].killed_by_judge

    def test_an_allocation_that_fails_is_out_of_memory_too(self, run: RunScript) -> None:
        ran = run("import torch\ntorch.empty(1 << 60)")
        assert ran.record.ending is Ending.OUT_OF_MEMORY
        assert "train.py:2" in ran.record.ending_reason
