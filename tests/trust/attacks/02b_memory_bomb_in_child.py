# /// attack
# row = "2"
# aim = "Take all memory in a child that the kernel ends, and go on."
# runtimes = ["docker"]
# verdicts = ["out_of_memory"]
# wall_s = 30
# ///
import os
import time

if os.fork() == 0:
    blocks = []
    while True:
        blocks.append(b"x" * (64 << 20))
os.wait()
print("child is gone", flush=True)
time.sleep(1)
