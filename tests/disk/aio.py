"""Linux's aio by its system calls, as 12-aio will use it: all reads in one io_submit()."""

from __future__ import annotations

import ctypes
import mmap
import os
import time

IO_SETUP, IO_DESTROY, IO_GETEVENTS, IO_SUBMIT = 206, 207, 208, 209  # x86-64
IOCB_CMD_PREAD = 0


class Iocb(ctypes.Structure):
    """struct iocb of linux/aio_abi.h, little-endian."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("key", ctypes.c_uint32),
        ("rw_flags", ctypes.c_int32),
        ("opcode", ctypes.c_uint16),
        ("reqprio", ctypes.c_int16),
        ("fildes", ctypes.c_uint32),
        ("buf", ctypes.c_uint64),
        ("nbytes", ctypes.c_uint64),
        ("offset", ctypes.c_int64),
        ("reserved2", ctypes.c_uint64),
        ("flags", ctypes.c_uint32),
        ("resfd", ctypes.c_uint32),
    )


class Event(ctypes.Structure):
    """struct io_event."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("obj", ctypes.c_uint64),
        ("res", ctypes.c_int64),
        ("res2", ctypes.c_int64),
    )


def _call(number: int, *args: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(ctypes.c_long(number), *args)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return int(result)


def read_all_at_once(paths: list[str], size: int) -> tuple[float, float, list[bytes]]:
    """The first bytes of each file, with O_DIRECT: s until io_submit() is back, until all are
    there, and the blocks.
    """
    count = len(paths)
    fds = [os.open(path, os.O_RDONLY | os.O_DIRECT) for path in paths]
    context = ctypes.c_ulong(0)
    with mmap.mmap(-1, size * count) as memory:
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        blocks = [
            Iocb(data=i, opcode=IOCB_CMD_PREAD, fildes=fd, buf=start + i * size, nbytes=size)
            for i, fd in enumerate(fds)
        ]
        pointers = (ctypes.c_void_p * count)(*(ctypes.addressof(block) for block in blocks))
        events = (Event * count)()
        _call(IO_SETUP, ctypes.c_uint(count), ctypes.byref(context))
        begun = time.monotonic()
        submitted = _call(IO_SUBMIT, context, ctypes.c_long(count), pointers)
        submit_s = time.monotonic() - begun
        n = ctypes.c_long(submitted)
        _call(IO_GETEVENTS, context, n, n, events, ctypes.c_void_p(None))
        all_s = time.monotonic() - begun
        _call(IO_DESTROY, context)
        data = [ctypes.string_at(start + i * size, size) for i in range(count)]
        for fd in fds:
            os.close(fd)
        assert submitted == count
        assert all(event.res == size for event in events)
        return submit_s, all_s, data
