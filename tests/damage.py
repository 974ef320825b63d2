"""A file that was changed on its way or on its disk: one bit of it, its end, all of it."""

import shutil
from pathlib import Path


def damages(folder):
    """Give, for every file of a folder in turn, the name of the file while it is damaged."""
    for path in sorted(Path(folder).rglob("*")):
        if not path.is_file():
            continue
        content = path.read_bytes()
        flipped = bytearray(content)
        if flipped:
            flipped[len(flipped) // 2] ^= 1
        for changed in (bytes(flipped), content[:-1], content[: len(content) // 2], b""):
            if changed != content:
                path.write_bytes(changed)
                yield path.relative_to(folder).as_posix()
        path.write_bytes(content)


def copy_folder(source, target):
    """Copy a folder, so that the original stays whole."""
    shutil.copytree(source, target)
    return target
