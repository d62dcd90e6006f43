# /// attack
# row = "2"
# aim = "Hide memory in /dev/shm, where no process owns it."
# runtimes = ["docker"]
# verdicts = ["out_of_memory"]
# wall_s = 30
# ///
import os

with open(f"/dev/shm/grader-trust-{os.getpid()}", "wb") as file:
    while True:
        file.write(b"x" * (16 << 20))
