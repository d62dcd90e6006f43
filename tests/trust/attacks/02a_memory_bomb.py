# /// attack
# row = "2"
# aim = "Take all memory in the rank itself."
# runtimes = ["docker"]
# verdicts = ["out_of_memory"]
# beside = true
# wall_s = 30
# ///
blocks = []
while True:
    blocks.append(b"x" * (64 << 20))
