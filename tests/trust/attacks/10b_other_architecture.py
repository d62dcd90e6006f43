# /// attack
# row = "10"
# aim = "Call the kernel by the numbers of another architecture, past the filter."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# must_print = ["\"reached\": []"]
# must_not_print = ["\"reached\": [\""]
# ///
import ctypes
import json
import mmap
import os
import platform

CODES = {
    "int 0x80": b"\xb8\x14\x00\x00\x00\xcd\x80\xc3",  # mov eax, 20 (32-bit getpid); int 0x80; ret
    "x32": b"\xb8\x27\x00\x00\x40\x0f\x05\xc3",  # mov eax, 0x40000027 (x32 getpid); syscall; ret
}


def try_out(code):
    """Run machine code in a child; returns how the child ended."""
    child = os.fork()
    if child == 0:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(code)
        answer = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
        os._exit(0 if answer == os.getpid() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


reached = []
if platform.machine() == "x86_64":
    reached = [name for name, code in CODES.items() if try_out(code) == 0]
print("ATTACK", json.dumps({"reached": reached}), flush=True)
