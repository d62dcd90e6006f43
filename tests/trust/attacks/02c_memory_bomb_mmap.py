# /// attack
# row = "2"
# aim = "Map shared pages without end."
# runtimes = ["docker"]
# verdicts = ["out_of_memory"]
# wall_s = 30
# ///
import mmap

maps = []
while True:
    maps.append(mmap.mmap(-1, 64 << 20))
    maps[-1].write(b"x" * (64 << 20))
