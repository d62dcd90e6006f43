# /// attack
# row = "40"
# aim = "None: what course scripts ask of the place they run in."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# must_print = ["everything works"]
# endings = ["completed"]
# ///
import getpass
import multiprocessing
import os
import socket
import tempfile
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import honest
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset


def square(number):
    """Runs in other processes."""
    return number * number


def main():
    print("user", getpass.getuser(), os.path.expanduser("~") == os.environ["HOME"], socket.gethostbyname(socket.gethostname()))
    (Path.home() / ".cache" / "somebody").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "file").write_text("x")
    dist.init_process_group("gloo")
    big = TensorDataset(torch.zeros(64, 3, 224, 224))
    for context in (None, "forkserver"):
        for (batch,) in DataLoader(big, batch_size=32, num_workers=2, multiprocessing_context=context):
            assert batch.shape[0] == 32
    with multiprocessing.Pool(2) as pool:
        assert pool.map(square, range(3)) == [0, 1, 4]
    with ProcessPoolExecutor(1) as pool, ThreadPoolExecutor(1) as threads:
        assert pool.submit(square, 3).result() == threads.submit(square, 3).result() == 9
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.plot([1, 2])
    pyplot.savefig(honest.out(f"curve{dist.get_rank()}.png"))
    gathered = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, dist.get_rank())
    dist.barrier()
    dist.destroy_process_group()
    print("everything works", flush=True)


if __name__ == "__main__":
    main()
