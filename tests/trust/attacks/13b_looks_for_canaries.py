# /// attack
# row = "13"
# aim = "Find what the attempt before left."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# must_print = ["\"reached\": []"]
# must_not_print = ["\"reached\": [\""]
# after = "13a_leaves_canaries"
# ///
import ctypes
import glob
import json
import os
import tempfile

CANARY = "grader-trust-canary"
PLACES = ["/tmp", "/dev/shm", "/var/tmp", "/dev/mqueue", os.environ["HOME"], tempfile.gettempdir(), os.getcwd(), os.environ["OUTPUT_DIR"], os.environ["DATA_DIR"]]
PLACES += [os.environ.get(name, "/tmp") for name in ("MPLCONFIGDIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")]
libc = ctypes.CDLL(None, use_errno=True)

reached = []
for place in PLACES:
    try:
        reached += [os.path.join(place, name) for name in os.listdir(place) if "canary" in name]
    except OSError:
        pass
if libc.syscall(249, b"user", CANARY.encode(), None, 0) > 0:
    reached.append("keyring")
if libc.shmget(0x6772, 4096, 0o666) >= 0:
    reached.append("System V shared memory")
for name in os.listdir("/proc"):
    if name.isdigit():
        try:
            with open(f"/proc/{name}/comm") as file:
                reached += [f"process {name}"] if "canary" in file.read() else []
        except OSError:
            pass
try:
    import torch

    for device in range(torch.cuda.device_count()):
        block = torch.empty(64 << 20, dtype=torch.uint8, device=f"cuda:{device}")
        if block.any():
            reached.append(f"memory of device {device}")
except RuntimeError as error:
    print(error)
print("ATTACK", json.dumps({"reached": reached}), flush=True)
