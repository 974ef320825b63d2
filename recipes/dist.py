"""What `make dist` runs: the sdist and the wheel of what is committed, the same bytes each time.

    python recipes/dist.py [OUT]        # OUT is dist/ if not given

Only committed files go in. Times are those of the commit, owners and rights of files are always the same, and
the tools are those of constraints.txt, already installed. The wheel is made from the sdist.
"""

import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def git(*arguments: str) -> bytes:
    """Ask git about this checkout."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


def unpack_commit(folder: Path) -> None:
    """Put what is committed into a folder."""
    with tarfile.open(fileobj=io.BytesIO(git("archive", "HEAD"))) as archive:
        archive.extractall(folder)  # our own commit; Debian 12 has a Python without filters


def build(kind: str, source: Path, out: Path, environment: dict[str, str]) -> Path:
    """Build an sdist or a wheel, with the installed tools; give the file."""
    command = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        f"--{kind}",
        "--outdir",
        str(out),
        str(source),
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    (made,) = out.glob("*.tar.gz" if kind == "sdist" else "*.whl")
    return made


def repack(path: Path, epoch: int) -> None:
    """Write an sdist again: sorted, with one time, no owner, and rights that only say what can be run."""
    packed = io.BytesIO()
    with tarfile.open(path) as old, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda one: one.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    path.write_bytes(gzip.compress(packed.getvalue(), mtime=epoch))


def main() -> None:
    """Build both, and say where they are."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist").absolute()
    if git("status", "--porcelain"):
        print("Changes that are not committed are left out.", file=sys.stderr)
    epoch = int(git("log", "-1", "--format=%ct"))
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "PYTHONHASHSEED": "0"}
    os.umask(0o022)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        unpack_commit(work / "source")
        sdist = build("sdist", work / "source", work / "sdist", environment)
        repack(sdist, epoch)
        with tarfile.open(sdist) as archive:
            archive.extractall(work)
        wheel = build("wheel", work / sdist.name.removesuffix(".tar.gz"), work / "wheel", environment)
        for made in (sdist, wheel):
            print(shutil.copyfile(made, out / made.name))


if __name__ == "__main__":
    main()
