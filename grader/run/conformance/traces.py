"""The trace is kept and sealed, no script finds the key, and torchrun fills the same record."""

from __future__ import annotations

import json

import pytest

from grader.model.run import Ending
from grader.run.script_runs import RunScript

TRAINING = """
    import os, pathlib, time
    import torch
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    done = pathlib.Path(os.environ["OUTPUT_DIR"], "done")
    if os.environ["RANK"] == "0":
        done.touch()
    else:
        while not done.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), 9)
"""

SEARCH = """
    import ctypes, os, re, stat, sys
    [pipe] = [n for n in map(int, os.listdir("/proc/self/fd")) if n > 3000 and stat.S_ISFIFO(os.fstat(n).st_mode)]
    print([name for name in sys.modules if name.startswith("grader")])
    keys = []
    frame = sys._getframe()
    while frame is not None:
        keys += [bytes(one.raw) for one in frame.f_locals.values() if type(one).__name__ == "SealKey"]
        frame = frame.f_back
    print({any(key) for key in keys})
    words = set()
    for line in open("/proc/self/maps").read().splitlines():
        place, rights, *rest = line.split()
        first, last = (int(end, 16) for end in place.split("-"))
        if rights.startswith("rw") and (len(rest) < 4 or rest[3] == "[heap]") and last - first < 1 << 30:
            held = ctypes.string_at(first, last - first)
            words |= {found[:40] for found in re.findall(rb'"[a-z_]*(?:secre[t]|_ke[y])": *[0-9"]', held)}
    print(words)
    print(open("/proc/self/cmdline").read(), open(f"/proc/{os.getppid()}/cmdline").read())
    os.write(pipe, b'{"e":"step","t":0.1,"n":0}\\n')
"""

OWN_RANKS = """
    import os, sys
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp

    def work(rank, world_size):
        dist.init_process_group("gloo", rank=rank, world_size=world_size)
        print("rank", rank)
        dist.all_reduce(torch.ones(1))
        dist.destroy_process_group()

    if __name__ == "__main__":
        os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=sys.argv[3])
        world_size = int(sys.argv[2])
        mp.start_processes(work, args=(world_size,), nprocs=world_size, start_method=sys.argv[1])
        print("both")
    """


class TraceConformance:
    """What the probe told, and the other launcher."""

    def test_all_that_the_probe_told_is_kept_and_stamped_also_by_a_killed_rank(self, run: RunScript) -> None:
        ran = run(TRAINING, probe=True)
        assert ran.exit_codes == [0, -9]
        for rank in (0, 1):
            lines = [line.split("\t", 1) for line in ran.workspace.trace(rank).read_text().splitlines()]
            stamps = [float(stamp) for stamp, _ in lines]
            assert stamps == sorted(stamps)
            assert 0 < stamps[0] <= stamps[-1] <= ran.record.wall_s + 1
            events = [json.loads(event) for _, event in lines]
            assert events[0]["e"] == "start"
            assert events[0]["rank"] == rank
            assert sum(event["e"] == "step" for event in events) == 4
            assert (events[-1]["e"] == "end") == (rank == 0)
            assert ran.record.ranks[rank].trace_bytes > 0
            assert (ran.record.ranks[rank].foreign_lines, ran.record.ranks[rank].gone_lines) == (0, 0)

    @pytest.mark.parametrize("launcher", ["fork", "torchrun"])
    def test_a_script_finds_no_key_and_what_it_writes_into_the_trace_is_foreign(
        self, run: RunScript, launcher: str
    ) -> None:
        ran = run(SEARCH, probe=True, nproc_per_node=1, launcher=launcher)
        modules, keys, words, *_ = ran.out().splitlines()
        assert (modules, words) == ("[]", "set()")
        # A forked rank still stands on the frames that led to it.
        assert keys == ("{False}" if launcher == "fork" else keys)
        assert (ran.record.ranks[0].foreign_lines, ran.record.ranks[0].gone_lines) == (1, 0)

    @pytest.mark.parametrize("method", ["spawn", "fork"])
    def test_ranks_that_a_script_starts_itself_are_seen_as_others_are(
        self, run: RunScript, method: str
    ) -> None:
        arguments = (method, "{nproc}", "{master_port}")
        ran = run(OWN_RANKS, probe=True, launcher="python", argv=arguments)
        assert ran.record.ending is Ending.COMPLETED, ran.record.ending_reason
        assert ran.exit_codes == [0, 0]
        assert (ran.out(0), ran.out(1)) == ("rank 0\nboth\n", "rank 1\n")
        for rank in ran.record.ranks:
            lines = ran.workspace.trace(rank.rank).read_text().splitlines()
            kinds = [json.loads(line.split("\t", 1)[1])["e"] for line in lines]
            assert (kinds[0], kinds[-1]) == ("start", "end")
            assert {"group", "collective"} <= set(kinds)
            assert (rank.foreign_lines, rank.gone_lines) == (0, 0)

    def test_a_child_forked_by_hand_that_runs_to_the_end_tells_nothing(self, run: RunScript) -> None:
        ran = run("import os, torch\nif os.fork(): os.wait()\n", probe=True, nproc_per_node=1)
        events = [
            json.loads(line.split("\t", 1)[1]) for line in ran.workspace.trace(0).read_text().splitlines()
        ]
        assert [event["e"] for event in events].count("end") == 1

    @pytest.mark.parametrize("probe", [True, False])
    def test_the_torchrun_command_fills_the_same_record(self, run: RunScript, probe: bool) -> None:
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
