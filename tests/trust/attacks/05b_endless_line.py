# /// attack
# row = "5"
# aim = "Print one line of 60 MB without an end."
# runtimes = ["docker"]
# verdicts = ["rejected", "timed_out"]
# must_print = ["bytes cut here"]
# wall_s = 20
# ///
import sys

for _ in range(60):
    sys.stdout.write("x" * (1 << 20))
sys.stdout.flush()
