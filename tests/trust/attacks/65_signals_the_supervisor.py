# /// attack
# row = "own"
# aim = "Send every signal to the supervisor, to its parent, to the store and to init."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# must_print = ["\"reached\": []"]
# must_not_print = ["\"reached\": [\""]
# ///
import json
import os
import signal

reached = []
for pid in [os.getppid(), 1, *(int(n) for n in os.listdir("/proc") if n.isdigit())]:
    with open(f"/proc/{pid}/status") as file:
        uid = next(line.split()[1] for line in file if line.startswith("Uid"))
    if uid == str(os.getuid()):
        continue
    for number in (signal.SIGTERM, signal.SIGSTOP, signal.SIGKILL, signal.SIGCHLD, signal.SIGRTMIN, 0):
        try:
            os.kill(pid, number)
            reached.append(f"{pid} {number}")
        except PermissionError:
            pass
print("ATTACK", json.dumps({"reached": reached}), flush=True)
