"""How near boxes from attention can come to the true ones, by rule and by how sharp attention is; page sizes.

    python -m benchmarks.explain FORMULAS      one formula a line; about 250 will do

Attention is made up: a bell around the middle of each true box, off by a quarter of its width, and noise. So
this compares rules, and says nothing about a model. Pages are those of the same formulas.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from i2l.explain.attention import Placement
from i2l.explain.drawings import explanation_page
from i2l.explain.explanation import build_explanation
from i2l.explain.localization import box_iou
from i2l.formulas.lexer import FormulaError
from i2l.formulas.normalize import normalize_formula
from i2l.images.ink import find_symbols
from i2l.images.prepare import place_on_canvas
from i2l.inference.boxes import Box, block_box, choose_symbols, find_ink, smallest_blocks
from i2l.model.config import ModelConfig, presets
from i2l.rendering.render import render_formulas

BELLS = ((4, 0.0), (10, 0.05), (16, 0.05), (24, 0.1))  # width in pixels, share of noise
SHARES = (0.5, 0.7, 0.8, 0.9)
MAX_SIZE = (126, 1086)


@dataclass(frozen=True)
class Sample:
    """One formula on its image."""

    tokens: list[str]
    pixels: NDArray[np.uint8]
    boxes: list[Box | None]


def load(path: Path, limit: int) -> list[Sample]:
    """Render formulas with their boxes; what does not fit the paper's canvas is left out."""
    normalized = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            normalized.append(normalize_formula(line))
        except FormulaError:
            continue
        if len(normalized) == limit:
            break
    results = render_formulas([formula.latex for formula in normalized], boxes=True)
    return [
        Sample([token.text for token in formula.tokens], result.pixels, list(result.boxes))
        for formula, result in zip(normalized, results, strict=True)
        if result.pixels is not None
        and result.boxes is not None
        and result.pixels.shape[0] <= MAX_SIZE[0]
        and result.pixels.shape[1] <= MAX_SIZE[1]
    ]


def made_up_attention(
    sample: Sample, config: ModelConfig, bell_px: float, noise: float, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Look at each token's box, or where the one before it was; (tokens, rows, columns)."""
    field = config.receptive_field()
    placement = Placement.centred(sample.pixels.shape, canvas_shape=config.canvas_shape)
    y, x = (
        np.array([axis.centre(cell) for cell in range(axis.num_cells)])
        for axis in (field.rows, field.columns)
    )
    steps, box = [], (0.0, 0.0, 20.0, 20.0)
    for own in sample.boxes:
        box = own or box
        left, top, right, bottom = placement.to_canvas(box)
        aside = generator.normal(size=2) * bell_px / 4
        distance = (x - (left + right) / 2 - aside[0]) ** 2
        if len(y) > 1:
            distance = distance + ((y - (top + bottom) / 2 - aside[1]) ** 2)[:, None]
        bell = np.exp(-0.5 * np.broadcast_to(distance, field.grid) / bell_px**2) + 1e-12
        stray = generator.dirichlet(np.full(bell.size, 0.3)).reshape(bell.shape)
        steps.append((1 - noise) * bell / bell.sum() + noise * stray)
    return np.stack(steps)


def compare_rules(samples: list[Sample]) -> None:
    """Print the mean IoU of both rules."""
    print("mean IoU: all ink in the block / nearest symbol, by share of attention in the block")
    for name, config in presets().items():
        field = config.receptive_field()
        for bell_px, noise in BELLS:
            generator = np.random.default_rng(0)
            found: dict[float, list[tuple[float, float]]] = {share: [] for share in SHARES}
            for sample in samples:
                placement = Placement.centred(sample.pixels.shape, canvas_shape=config.canvas_shape)
                visible = [place for place, box in enumerate(sample.boxes) if box]
                attention = made_up_attention(sample, config, bell_px, noise, generator)[visible]
                true = [placement.to_canvas(sample.boxes[place] or (0, 0, 0, 0)) for place in visible]
                ink = find_ink(place_on_canvas([sample.pixels], canvas_shape=config.canvas_shape)[0])
                symbols = find_symbols(ink)
                for share in SHARES:
                    blocks = [
                        ink_box(ink, block_box(field, block))
                        for block in smallest_blocks(attention, share).tolist()
                    ]
                    nearest = choose_symbols(attention, symbols, field=field, share=share)
                    found[share] += [
                        (box_iou(a, box), box_iou(b, box))
                        for a, b, box in zip(blocks, nearest, true, strict=True)
                    ]
            row = [
                f"{share:.0%} {np.mean(pairs, axis=0)[0]:.3f} / {np.mean(pairs, axis=0)[1]:.3f}"
                for share, pairs in found.items()
            ]
            print(f"{name:7} bell {bell_px:2} px, noise {noise:.0%}:  {'   '.join(row)}")


def ink_box(ink: NDArray[np.bool_], block: Box) -> Box | None:
    """Give the box of all ink in a block."""
    left, top, right, bottom = map(int, block)
    rows, columns = np.nonzero(ink[top:bottom, left:right])
    if not len(rows):
        return None
    return left + columns.min(), top + rows.min(), left + columns.max() + 1, top + rows.max() + 1


def measure_pages(samples: list[Sample]) -> None:
    """Print how large pages are, with four alternatives a token."""
    config = presets()["nopool"]
    generator = np.random.default_rng(0)
    sizes = []
    for sample in samples:
        count = len(sample.tokens)
        explanation = build_explanation(
            title="formula.png",
            image=Image.fromarray(sample.pixels),
            canvas=place_on_canvas([sample.pixels], canvas_shape=config.canvas_shape)[0],
            latex=" ".join(sample.tokens),
            tokens=sample.tokens,
            probabilities=generator.random(count).tolist(),
            alternatives=[[(token, 0.01234) for token in generator.choice(sample.tokens, 4)]] * count,
            attention=made_up_attention(sample, config, 16, 0.1, generator),
            field=config.receptive_field(),
            placement=Placement.centred(sample.pixels.shape, canvas_shape=config.canvas_shape),
        )
        sizes.append((len(explanation_page(explanation).encode()), count))
    (largest, count), mean = max(sizes), np.mean([size for size, _ in sizes])
    print(f"pages: {mean / 1000:.0f} kB on average, {largest / 1000:.0f} kB at most ({count} tokens)")


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("formulas", type=Path)
    parser.add_argument("--limit", type=int, default=250)
    arguments = parser.parse_args()
    samples = load(arguments.formulas, arguments.limit)
    print(f"{len(samples)} formulas, {sum(box is not None for s in samples for box in s.boxes)} boxes")
    compare_rules(samples)
    measure_pages(samples)


if __name__ == "__main__":
    main()
