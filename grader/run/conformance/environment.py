"""What a script may rely on when it starts: variables, folders, modules, descriptors, seeds."""

from __future__ import annotations

import json

import pytest

from grader.model.run import Ending
from grader.run.script_runs import RunScript


class EnvironmentConformance:
    """What a script finds around it."""

    def test_ranks_get_torchruns_variables_and_folders_of_their_own_and_nothing_else(
        self, run: RunScript, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SECRET_TOKEN", "must not arrive")
        ran = run(
            "import json, os, tempfile; print(json.dumps({**os.environ, 'temporary': tempfile.gettempdir()}))",
            nproc_per_node=3,
        )
        seen = [json.loads(ran.out(rank)) for rank in range(3)]
        assert [one["RANK"] for one in seen] == [one["LOCAL_RANK"] for one in seen] == ["0", "1", "2"]
        for one in seen:
            assert one["WORLD_SIZE"] == one["LOCAL_WORLD_SIZE"] == "3"
            assert one["OMP_NUM_THREADS"] == "1"
            assert "SECRET_TOKEN" not in one
            assert one.pop("temporary") == one["TMPDIR"]
            # Who needs no GPU sees none; an interface is named as a whole.
            assert one["CUDA_VISIBLE_DEVICES"] == ""
            assert one["NCCL_SOCKET_IFNAME"].startswith("=")
            assert {"HOME", "TMPDIR", "DATA_DIR", "OUTPUT_DIR", "MASTER_ADDR", "MASTER_PORT"} <= one.keys()
        assert ran.record.ending is Ending.COMPLETED

    def test_scripts_read_files_beside_them_import_their_modules_and_get_arguments(
        self, run: RunScript
    ) -> None:
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

    def test_interpreters_of_their_own_have_hash_seeds_of_their_own_and_imports_are_nobodys_time(
        self, run: RunScript
    ) -> None:
        ran = run(
            "import sys, time; print(hash('weight'), 'torchvision' in sys.modules, time.process_time())",
            launcher="interpreter",
            probe=True,
        )
        assert ran.exit_codes == [0, 0], ran.err()
        (first, warm, used_s), (second, *_) = (ran.out(rank).split() for rank in range(2))
        assert first != second
        assert warm == "True"
        assert ran.record.ranks[0].cpu_s < float(used_s) / 2

    def test_own_modules_come_before_warm_ones_of_the_same_name(self, run: RunScript) -> None:
        # Both names are imported by torch itself, so a warm process has them already.
        ran = run(
            {
                "train.py": "import torch, queue, timeit; print(queue.MINE, timeit.MINE, torch.ones(2).sum().item())",
                "queue.py": "MINE = 'queue'",
                "timeit/__init__.py": "MINE = 'timeit'",
            }
        )
        assert ran.out() == "queue timeit 2.0\n", ran.err()

    def test_what_a_script_writes_beside_itself_does_not_change_what_is_judged(self, run: RunScript) -> None:
        ran = run("open('train.py', 'a').write('# changed'); open('checkpoint.pt', 'w').write('x')")
        assert ran.record.ending is Ending.COMPLETED
        laid_out = ran.workspace.submission
        assert [path.name for path in laid_out.iterdir()] == ["train.py"]
        assert "changed" not in (laid_out / "train.py").read_text().splitlines()[-1].partition("#")[2:]

    def test_generators_start_differently_on_every_rank_and_alike_in_every_run(self, run: RunScript) -> None:
        script = """
            import random, numpy, torch
            print(random.random(), numpy.random.rand(), torch.rand(1).item())
        """
        first, again, other = run(script, seed=1), run(script, seed=1), run(script, seed=2)
        draws = [first.out(0).split(), first.out(1).split(), other.out(0).split()]
        assert all(len(set(column)) == 3 for column in zip(*draws, strict=True))
        assert [again.out(0), again.out(1)] == [first.out(0), first.out(1)]

    def test_only_the_standard_descriptors_and_default_handlers_are_inherited(self, run: RunScript) -> None:
        ran = run("""
            import os, signal
            print(sorted(d for d in map(int, os.listdir("/proc/self/fd")) if d < 1000)[:-1])
            print([signal.getsignal(s) is signal.SIG_DFL for s in (signal.SIGTERM, signal.SIGCHLD, signal.SIGUSR1)])
            print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, signal.pthread_sigmask(0, ()))
            print(os.getsid(0) == os.getpid(), os.read(0, 10))
        """)
        assert ran.out() == "[0, 1, 2]\n[True, True, True]\nTrue set()\nTrue b''\n"

    def test_a_run_finds_its_own_data_in_place_of_the_prepared_and_the_rest_as_it_lies(
        self, run: RunScript
    ) -> None:
        prepared = {
            "set/images": b"shared images",
            "set/labels": b"prepared labels",
            "notes": b"shared notes",
        }
        script = """
            import json, os
            root = os.environ["DATA_DIR"]
            found = {}
            for folder, _, names in os.walk(root):
                for name in names:
                    path = os.path.join(folder, name)
                    found[os.path.relpath(path, root)] = open(path).read()
            print(json.dumps(found, sort_keys=True))
        """
        own = {"set/labels": b"labels of this run"}
        rest = {"set/images": "shared images", "notes": "shared notes"}
        for given, labels in ((own, "labels of this run"), ({}, "prepared labels")):
            ran = run(script, data=prepared, own_data=given)
            assert json.loads(ran.out()) == rest | {"set/labels": labels}, ran.err()
            assert ran.out(0) == ran.out(1)
