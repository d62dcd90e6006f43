"""What a rank writes, starts, downloads and seeds."""

from __future__ import annotations

from collections.abc import Callable

from grader.probe.trace import events
from tests.probe.warm_ranks import Ran


def test_checkpoints_and_their_prefix(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        """
        from safetensors.torch import save_file
        dist.init_process_group("gloo")
        model = DDP(nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8)))
        if dist.get_rank() == 0:
            torch.save(model.state_dict(), OUT + "/wrapped.pt")
            torch.save({"epoch": 3, "model": model.module.state_dict()}, OUT + "/nested.pt")
            save_file(model.module.state_dict(), OUT + "/model.safetensors")
            torch.save(torch.randn(3), "/dev/null")
        dist.destroy_process_group()
        """
    )
    wrapped, nested, tensors, other = ran.ranks[0].saves
    assert (wrapped.path, wrapped.out, wrapped.prefix, wrapped.num_tensors) == (
        "wrapped.pt",
        True,
        "module.",
        7,
    )
    assert (nested.path, nested.prefix, nested.api) == ("nested.pt", "", "torch.save")
    assert (tensors.path, tensors.api) == ("model.safetensors", "safetensors")
    assert wrapped.sums == nested.sums == tensors.sums
    assert wrapped.untracked
    assert nested.untracked
    assert not other.untracked
    assert len(wrapped.sums) == 6
    assert (other.out, other.num_tensors) == (False, 0)
    assert wrapped.site is not None
    assert ran.ranks[1].saves == ()


def test_sums_are_those_of_the_saved_file(ranks: Callable[..., Ran]) -> None:
    import torch

    ran = ranks("torch.save(nn.Linear(6, 8).state_dict(), OUT + '/model.pt')", nproc=1)
    assert not ran.ranks[0].saves[0].untracked
    state = torch.load(ran.output / "model.pt", weights_only=True)
    expected = tuple(state[name].sum(dtype=torch.float64).item() for name in sorted(state))
    assert ran.ranks[0].saves[0].sums == expected


def test_files_below_the_output_folder(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        """
        os.makedirs(OUT + "/plots", exist_ok=True)
        with open(OUT + "/plots/log.txt", "a") as file:
            file.write("x")
        os.replace(OUT + "/plots/log.txt", OUT + "/log.txt")
        open(OUT + "/log.txt").close()
        os.remove(OUT + "/log.txt")
        open("/dev/null", "w").close()
        """,
        nproc=1,
    )
    told = [(f.op, f.path, f.site.line if f.site else None) for f in ran.ranks[0].files if f.out]
    assert told == [
        ("mkdir", "plots", 3),
        ("open", "plots/log.txt", 4),
        ("rename", "log.txt", 6),
        ("remove", "log.txt", 8),
    ]
    assert not any(f.path == "/dev/null" for f in ran.ranks[0].files)


def test_downloads(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        """
        import gzip, struct
        from torchvision import datasets
        raw = OUT + "/FashionMNIST/raw"
        os.makedirs(raw)
        for name in ("train-images-idx3", "t10k-images-idx3"):
            open(f"{raw}/{name}-ubyte", "wb").write(struct.pack(">iiii", 2051, 2, 28, 28) + bytes(2 * 784))
        for name in ("train-labels-idx1", "t10k-labels-idx1"):
            open(f"{raw}/{name}-ubyte", "wb").write(struct.pack(">ii", 2049, 2) + bytes(2))
        datasets.FashionMNIST(OUT, train=True, download=False)
        there = datasets.FashionMNIST(OUT, train=True, download=True)
        datasets.MNIST.mirrors = ["http://127.0.0.1:9/"]
        try:
            datasets.MNIST(OUT, train=False, download=True)
        except Exception as error:
            print("refused")
        next(iter(DataLoader(there, batch_size=2, collate_fn=list)))
        """,
        nproc=1,
    )
    first, second = (
        event.fields | {"line": event.site and event.site.line} for event in ran.events(events.DOWNLOAD)
    )
    assert (first["dataset"], first["started"], first["line"]) == ("FashionMNIST", False, 12)
    assert (second["dataset"], second["started"], second["line"]) == ("MNIST", True, 15)
    assert first["root"] == str(ran.output)
    assert "refused" in ran.stdout[0]
    loader = ran.ranks[0].loaders[0]
    assert (loader.dataset, loader.split, loader.root_size) == ("FashionMNIST", "train", 2)


def test_processes(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        """
        import multiprocessing, subprocess
        def work(): torch.save({}, OUT + "/child.pt"); next(iter(DataLoader(TensorDataset(torch.zeros(2, 1)))))
        child = multiprocessing.get_context("fork").Process(target=work)
        child.start(); child.join()
        subprocess.run(["true"], check=True)
        pid = os.fork()
        if pid == 0:
            torch.save({}, OUT + "/fork.pt")
            os._exit(0)
        os.waitpid(pid, 0)
        list(DataLoader(TensorDataset(torch.zeros(4, 1)), num_workers=2))
        """,
        nproc=1,
    )
    told = [
        (event.fields["op"], event.fields["target"], event.site and event.site.line)
        for event in ran.events(events.PROCESS)
    ]
    assert told == [("fork", "work", 6), ("subprocess", "true", 7), ("fork", "", 8)]
    assert (ran.output / "child.pt").exists()
    assert (ran.output / "fork.pt").exists()
    assert ran.ranks[0].saves == ()
    assert len(ran.ranks[0].loaders) == 1
    assert {line.get("pid") for line in ran.lines[0]} - {None} == {
        ran.ranks[0].start.pid if ran.ranks[0].start else 0
    }


def test_seeds(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        """
        import random
        import numpy as np
        torch.manual_seed(7); random.seed(8); np.random.seed(9)
        for n in range(20): torch.manual_seed(n)
        print(torch.initial_seed(), np.random.get_state()[1][0])
        """,
        nproc=1,
    )
    told = [(event.fields["api"], event.fields["value"]) for event in ran.events(events.SEEDED)]
    assert told[:3] == [("torch.manual_seed", 7), ("random.seed", 8), ("numpy.random.seed", 9)]
    assert len(told) == 16
    assert ran.stdout[0].split() == ["19", "9"]


def test_reaching_into_processes_and_objects_is_told_and_only_the_scripts_own(
    ranks: Callable[..., Ran],
) -> None:
    ran = ranks(
        """
        import gc, os, pathlib, sys
        if int(os.environ["RANK"]) == 1:
            gc.get_objects()
            os.listdir("/proc/self/fd")
            pathlib.Path("/proc/self/environ").read_bytes()
            sys.settrace(None)
            os.kill(os.getppid(), 0)
        gc.collect()
        open("/proc/meminfo").read()
        os.kill(os.getpid(), 0)
        torch.compile(nn.Linear(2, 2), backend="eager")(torch.ones(1, 2))
        """
    )
    assert ran.ranks[0].events(events.REACH) == ()
    told = [(e.fields["what"], e.fields["target"]) for e in ran.ranks[1].events(events.REACH)]
    assert [what for what, _ in told] == ["gc.get_objects", "process", "process", "sys.settrace", "kill"]
    assert [target for what, target in told if what == "process"] == ["/proc/self/fd", "/proc/self/environ"]
    assert {e.site.line for e in ran.ranks[1].events(events.REACH) if e.site} == set(range(5, 10))


def test_loaded_checkpoints_and_where_they_came_to_lie(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        """
        state = {"epoch": 2, "model": nn.Linear(6, 8).state_dict(), "history": [torch.zeros(1)]}
        torch.save(state, OUT + "/last.pt")
        again = torch.load(OUT + "/last.pt")
        torch.load(OUT + "/last.pt", "cpu", weights_only=True)
        torch.load(OUT + "/last.pt", map_location=lambda storage, place: storage)
        with open(OUT + "/last.pt", "rb") as file:
            torch.load(file, map_location=torch.device("meta"))
        assert again["epoch"] == 2
        """,
        nproc=1,
    )
    loads = ran.events(events.LOAD)
    assert [e.fields["map_location"] for e in loads] == ["", "cpu", "callable", "meta"]
    assert [e.fields["devices"] for e in loads] == [["cpu"], ["cpu"], ["cpu"], ["meta"]]
    assert all(e.site is not None and e.fields["path"] == "last.pt" and e.fields["out"] for e in loads)
