"""What a thread of Linux can give up for good, for itself and for every process it starts. No other imports.

Landlock takes away files, `seccomp` system calls, `capset` the powers of root. All three hold for the calling
thread only, and for what it starts from then on: so a thread can give them up, start a program and end,
while the rest of the process keeps everything.
"""

import ctypes
import os
import platform
import struct
from collections.abc import Iterable
from typing import Final

# Landlock, as in linux/landlock.h. The numbers of its calls are the same on all processors.
_CREATE, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION, _PATH_BENEATH = 1, 1
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_FILE, MAKE_FILE, TRUNCATE = 1 << 5, 1 << 8, 1 << 14
READ: Final = READ_FILE | READ_DIR
_OF_FILES: Final = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE
# How many kinds of access, from the lowest bit, each version knows; 5 and all later ones know sixteen.
_NUM_KINDS: Final = {1: 13, 2: 14, 3: 15, 4: 15}
_TCP, _SIGNALS_AND_ABSTRACT_SOCKETS = 0b11, 0b11  # since versions 4 and 6

_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2
_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050001  # the latter is EPERM
_FOREIGN_CALLS: Final = 0x40000000  # of x32, which would pass by the numbers below
# Of each processor: how the kernel calls it, the numbers that reach the network, other processes or keys
# (socket, socketpair, ptrace, process_vm_readv and _writev, unshare, add_key, request_key, keyctl,
# io_uring_setup), and those that open files or start programs (open, creat, openat, openat2, execve,
# execveat, fork, vfork, clone, clone3).
_CALLS: Final = {
    "x86_64": (
        0xC000003E,
        (41, 53, 101, 310, 311, 272, 248, 249, 250, 425),
        (2, 85, 257, 437, 59, 322, 57, 58, 56, 435),
    ),
    "aarch64": (
        0xC00000B7,
        (198, 199, 117, 270, 271, 97, 217, 218, 219, 425),
        (56, 437, 221, 281, 220, 435),
    ),
}


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("steps", ctypes.c_char_p))


def landlock_version() -> int:
    """Return the version of Landlock that the kernel offers; 0 if it has none, or may not be asked."""
    if platform.system() != "Linux":
        return 0
    version: int = _libc().syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION))
    return max(0, version)


def make_ruleset(rules: Iterable[tuple[str, int]]) -> int:
    """Make a file descriptor for `confine`: nothing may be touched but these paths, each in the ways named.

    Paths that do not exist are left out. The caller closes the descriptor.

    Raises:
        OSError: if the kernel refuses.
    """
    version = landlock_version()
    handled = (1 << _NUM_KINDS.get(version, 16)) - 1
    attributes = struct.pack("Q", handled)
    attributes += struct.pack("Q", _TCP) if version >= 4 else b""
    attributes += struct.pack("Q", _SIGNALS_AND_ABSTRACT_SOCKETS) if version >= 6 else b""
    ruleset = _checked("syscall", _CREATE, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    for path, access in rules:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            allowed = access & handled & (~0 if os.path.isdir(path) else _OF_FILES)
            rule = _PathBeneath(allowed, place)
            _checked("syscall", _ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), ctypes.c_uint32(0))
        except OSError:
            os.close(ruleset)
            raise
        finally:
            os.close(place)
    return ruleset


def confine(ruleset: int | None, *, no_files: bool = False) -> None:
    """Renounce for good, in this thread, all files but those of the ruleset, root's powers and the network.

    With ``no_files`` no file can be opened and no process started any more, whatever the ruleset says.

    Raises:
        OSError: if the kernel refuses the ruleset. The filter of system calls is a second lock, left out
            where the kernel has none or the processor is not known.
    """
    if platform.system() != "Linux":
        return
    _checked("prctl", _NO_NEW_PRIVILEGES, *map(ctypes.c_ulong, (1, 0, 0, 0)))
    _libc().capset(struct.pack("Ii", 0x20080522, 0), bytes(24))  # version 3, this thread: none at all
    if ruleset is not None:
        _checked("syscall", _RESTRICT_SELF, ruleset, ctypes.c_uint32(0))
    if platform.machine() in _CALLS:
        processor, outward, files = _CALLS[platform.machine()]
        program = _filter(processor, (*outward, *files) if no_files else outward)
        filter_program = _Program(len(program) // 8, program)
        _libc().prctl(_SET_SECCOMP, ctypes.c_ulong(_FILTER), ctypes.byref(filter_program))


def _filter(processor: int, refused: tuple[int, ...]) -> bytes:
    """Write a program for the kernel that refuses these system calls, and all of another processor's kind."""
    steps = [(_LOAD, 0, 0, 4), (_JUMP_IF_EQUAL, 1, 0, processor), (_RETURN, 0, 0, _REFUSE), (_LOAD, 0, 0, 0)]
    steps.append((_JUMP_IF_AT_LEAST, len(refused) + 1, 0, _FOREIGN_CALLS))
    steps += [(_JUMP_IF_EQUAL, len(refused) - place, 0, call) for place, call in enumerate(refused)]
    steps += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)]
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(function: str, *arguments: object) -> int:
    result: int = getattr(_libc(), function)(*arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{function}: {os.strerror(error)}")
    return result
