# /// attack
# row = "5"
# aim = "Print bytes that are no text, each of which takes three to show."
# runtimes = ["docker"]
# verdicts = ["rejected", "timed_out"]
# wall_s = 20
# ///
import os

for _ in range(16):
    os.write(1, b"\xff\x00\x1b" * (1 << 18))
