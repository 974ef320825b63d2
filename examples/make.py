"""Draws the images of this folder, and labels.tsv with what is on them.

python examples/make.py          needs TeX with texlive-fonts-extra; `python -m i2l read examples` does not
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from i2l.formulas.normalize import normalize_formula
from i2l.rendering.render import render_formulas
from i2l.rendering.styles import PAPER, Style

FOLDER = Path(__file__).parent
Grey = NDArray[np.float64]  # 0 is black, 1 is white


@dataclass(frozen=True)
class Example:
    """A formula of ours, and how it is printed."""

    name: str
    formula: str
    style: Style
    look: str = "plain"


def font(name: str, *, size_pt: int = 12, dpi: int = 200) -> Style:
    """The paper's style in another font or size."""
    return replace(PAPER, font=name, size_pt=size_pt, dpi=dpi)


EXAMPLES = (
    Example(
        "1-paper",
        r"\oint_{\partial\Sigma} \mathbf{E} \cdot d\mathbf{l}"
        r" = - \frac{d}{dt} \int_\Sigma \mathbf{B} \cdot d\mathbf{S}",
        PAPER,
    ),
    Example(
        "2-times-small",
        r"P(A_i \mid B) = \frac{P(B \mid A_i) P(A_i)}{\sum_{j=1}^{n} P(B \mid A_j) P(A_j)}",
        font("times", size_pt=10, dpi=96),
    ),
    Example(
        "3-palatino-large",
        r"\Gamma(z) = \int_0^\infty t^{z-1} e^{-t} \, dt , \quad \Re z > 0",
        font("palatino", dpi=400),
    ),
    Example(
        "4-euler",
        r"\frac{1}{2\pi i} \oint_\gamma \frac{f(z)}{z-a} dz = f(a)",
        font("euler", dpi=150),
    ),
    Example(
        "5-stix-matrix",
        r"\left( \begin{array}{cc} \cos\theta & -\sin\theta \\ \sin\theta & \cos\theta \end{array} \right)"
        r" \left( \begin{array}{c} x \\ y \end{array} \right)",
        font("stix2", dpi=170),
    ),
    Example(
        "6-sans",
        r"\sqrt{a^2 + b^2} \leq |a| + |b|",
        font("bright", size_pt=14, dpi=110),
    ),
    Example(
        "7-dark",
        r"i \hbar \frac{\partial \psi}{\partial t} = - \frac{\hbar^2}{2m} \nabla^2 \psi + V \psi",
        font("libertinus", dpi=144),
        look="dark",
    ),
    Example(
        "8-photo",
        r"\sum_{n=1}^{\infty} \frac{1}{n^2} = \frac{\pi^2}{6}",
        font("latin-modern", size_pt=11, dpi=220),
        look="photo",
    ),
)


def finish(pixels: NDArray[np.uint8], look: str) -> Image.Image:
    """Put the formula where such a picture was taken."""
    margin = 40 if look == "photo" else 16
    page = np.pad(pixels / 255, margin, constant_values=1.0)
    if look == "plain":
        return Image.fromarray((255 * page).astype(np.uint8))
    if look == "dark":  # of an editor at night
        ink, paper = np.array([220, 223, 228]), np.array([40, 44, 52])
        return Image.fromarray((ink + page[..., None] * (paper - ink)).astype(np.uint8))
    return photograph(page)


def photograph(page: Grey) -> Image.Image:
    """A page held at an angle under a lamp: perspective, uneven light, a soft lens, noise, JPEG's colours."""
    height, width = page.shape
    corners = (3, 7, 0, height - 4, width - 6, height, width - 1, 0)  # of what the lens sees, from top left
    image = Image.fromarray((255 * page).astype(np.uint8))
    seen = image.transform(
        (width, height), Image.Transform.QUAD, corners, Image.Resampling.BICUBIC, fillcolor=255
    )
    grey = np.asarray(seen.filter(ImageFilter.GaussianBlur(0.8))) / 255
    across, down = np.meshgrid(np.linspace(0, 1, width), np.linspace(0, 1, height))
    light = 0.92 - 0.3 * across**2 - 0.12 * down
    noise = np.random.default_rng(7).normal(0, 0.02, grey.shape)
    lit = np.clip((0.12 + 0.88 * grey) * light + noise, 0, 1)
    tint = np.array([1.0, 0.965, 0.88])  # of a warm lamp
    return Image.fromarray((255 * lit[..., None] * tint).astype(np.uint8))


def main() -> None:
    """Draw all."""
    lines = []
    for example in EXAMPLES:
        tokens = normalize_formula(example.formula).latex
        (result,) = render_formulas([tokens], style=example.style)
        if result.pixels is None:
            raise SystemExit(f"{example.name} could not be drawn: {result}")
        finish(result.pixels, example.look).save(FOLDER / f"{example.name}.png", optimize=True)
        lines.append(f"{example.name}.png\t{tokens}\n")
    (FOLDER / "labels.tsv").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
