"""Follow the Dockerfile without Docker: its steps as root in a bare Debian, and then the service itself.

    python3 recipes/check_dockerfile.py

A virtual environment of this Python stands for the image it begins with. The rest is done as written: files
are copied if .dockerignore lets them through, RUN runs, CMD is started by USER, and HEALTHCHECK must say that
it is well. Only for a machine that is thrown away: the Dockerfile adds a user.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMAGE = Path("/opt/i2l-image")
HEALTHY_S = 60


def instructions() -> list[tuple[str, str]]:
    """Give the instructions of the Dockerfile with what follows each."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [
        (word, rest.strip()) for word, _, rest in (line.partition(" ") for line in text.splitlines()) if word
    ]


def copy(names: list[str], folder: Path) -> None:
    """Copy what .dockerignore lets through."""
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for name in names:
        if name not in allowed:
            raise SystemExit(f"COPY {name}: .dockerignore keeps it out.")
        if (ROOT / name).is_dir():
            unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / name, folder / name, ignore=unwanted)
        else:
            shutil.copy(ROOT / name, folder)


def healthcheck(text: str) -> list[str]:
    """Give the command of a HEALTHCHECK."""
    return list(json.loads(text[text.index("CMD") + 3 :]))


def serve(command: list[str], check: list[str], environment: dict[str, str], folder: Path, user: str) -> None:
    """Start the service, wait until it is well, and end it."""
    service = subprocess.Popen(command, cwd=folder, env=environment, user=user, group=user, extra_groups=[])
    try:
        give_up = time.monotonic() + HEALTHY_S
        while subprocess.run(
            check, env=environment, user=user, check=False, stderr=subprocess.DEVNULL
        ).returncode:
            if service.poll() is not None or time.monotonic() > give_up:
                raise SystemExit(f"{shlex.join(command)} is not well.")
            time.sleep(0.5)
    finally:
        service.terminate()
        service.wait(30)
    print(f"{shlex.join(command)} is well, as the user {user}.")


def main() -> None:
    """Follow all steps."""
    shutil.rmtree(IMAGE, ignore_errors=True)
    folder, user, check = IMAGE, "root", [""]
    environment = {"HOME": "/nonexistent", "LANG": "C.UTF-8", "I2L_TOKEN": "secret"}
    environment |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
    for word, rest in instructions():
        print(word, rest[:100], flush=True)
        if word == "FROM":
            venv.create(IMAGE / "python", with_pip=True)
            environment["PATH"] = f"{IMAGE}/python/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        elif word == "ENV":
            environment |= dict(part.split("=", 1) for part in shlex.split(rest))
        elif word == "WORKDIR":
            folder = IMAGE / rest.lstrip("/")
            folder.mkdir(parents=True)
        elif word == "COPY":
            *names, _ = rest.split()
            copy(names, folder)
        elif word == "RUN":
            subprocess.run(["sh", "-c", rest], cwd=folder, env=environment, check=True)
        elif word == "USER":
            user = rest
        elif word == "HEALTHCHECK":
            check = healthcheck(rest)
        elif word == "CMD":
            serve(json.loads(rest), check, environment, folder, user)
        elif word != "EXPOSE":
            raise SystemExit(f"{sys.argv[0]} does not know {word}.")


if __name__ == "__main__":
    main()
