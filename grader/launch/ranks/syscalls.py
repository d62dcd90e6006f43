"""Answer `clone3` with "no such call", where whoever started us cannot.

Its flags lie in memory, out of a filter's sight, so a filter that lets no process into new namespaces must refuse it
altogether. The C library takes `clone` instead when the kernel does not know `clone3`, and gives up when it is
forbidden; a container program such as Apptainer can forbid, but not deny. Opens nothing: a second filter only ever
narrows the first.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

HIDE_CLONE3 = "--hide-clone3"
"""The argument that asks a container's first process for this."""

_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2
_CLONE3 = 435  # the same number on every architecture
_RET_ALLOW, _RET_ERRNO = 0x7FFF0000, 0x00050000
_LOAD_WORD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def hide_clone3() -> None:
    """From now on, for this process and all that descend from it; needs `no_new_privs`.

    Raises:
        OSError: the kernel refuses the filter.
    """
    # Of several filters that refuse a call, the one that came last says with which error.
    instructions = b"".join(
        struct.pack("=HBBI", *instruction)
        for instruction in (
            (_LOAD_WORD, 0, 0, 0),
            (_JUMP_EQUAL, 0, 1, _CLONE3),
            (_RETURN, 0, 0, _RET_ERRNO | errno.ENOSYS),
            (_RETURN, 0, 0, _RET_ALLOW),
        )
    )
    program = _Program(len(instructions) // 8, instructions)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"a filter for clone3: {os.strerror(code)}")
