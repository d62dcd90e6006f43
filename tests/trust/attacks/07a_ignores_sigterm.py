# /// attack
# row = "7"
# aim = "Ignore every signal that can be ignored, and print on."
# runtimes = ["docker"]
# verdicts = ["timed_out"]
# endings = ["timed_out"]
# wall_s = 3
# ///
import contextlib
import signal
import time

for number in range(1, 65):
    with contextlib.suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_IGN)
while True:
    print(".", flush=True)
    time.sleep(0.05)
