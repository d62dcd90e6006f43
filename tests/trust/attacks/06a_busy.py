# /// attack
# row = "6"
# aim = "Compute for ever."
# runtimes = ["docker"]
# verdicts = ["timed_out"]
# endings = ["timed_out"]
# wall_s = 3
# beside = true
# ///
while True:
    sum(range(10_000))
