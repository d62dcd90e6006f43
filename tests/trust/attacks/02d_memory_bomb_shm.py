# /// attack
# row = "2"
# aim = "Hide memory in /dev/shm, where no process owns it, and take the rest."
# runtimes = ["docker"]
# verdicts = ["out_of_memory"]
# wall_s = 30
# ///
import os

blocks = []
try:
    with open(f"/dev/shm/grader-trust-{os.getpid()}", "wb") as file:
        while True:
            file.write(b"x" * (16 << 20))
except OSError as error:
    print(error, flush=True)
while True:
    blocks.append(b"x" * (64 << 20))
