# /// attack
# row = "own"
# aim = "Trace the supervisor, read and write its memory, take its descriptors."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# must_print = ["\"reached\": []"]
# must_not_print = ["\"reached\": [\""]
# ///
import ctypes
import json
import os

libc = ctypes.CDLL(None, use_errno=True)
reached = []
for pid in {os.getppid(), 1} | {int(n) for n in os.listdir("/proc") if n.isdigit()} - {os.getpid()}:
    for request in (16, 0x4206):  # PTRACE_ATTACH, PTRACE_SEIZE
        if libc.ptrace(request, pid, None, None) == 0:
            reached.append(f"ptrace {pid}")
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        continue  # It was there when the others were listed, and has ended since.
    for number in range(40):
        taken = libc.syscall(438, handle, number, 0)
        if taken >= 0:
            reached.append(f"descriptor {number} of {pid}")
    os.close(handle)
    for name in ("mem", "fd/0", "fd/1", "fd/3", "fd/4", "clear_refs", "oom_score_adj", "coredump_filter", "timerslack_ns", "attr/current"):
        try:
            with open(f"/proc/{pid}/{name}", "r+b", buffering=0) as file:
                file.write(b"0")
            reached.append(f"/proc/{pid}/{name}")
        except OSError:
            pass
print("ATTACK", json.dumps({"reached": reached}), flush=True)
