# /// attack
# row = "5"
# aim = "Print as much as the time allows."
# runtimes = ["docker"]
# verdicts = ["rejected", "timed_out"]
# must_print = ["bytes cut here"]
# wall_s = 20
# beside = true
# ///
import os

block = b"".join(b"%08d the same line again and again\n" % n for n in range(20_000))
for _ in range(60):
    os.write(1, block)
    os.write(2, block)
