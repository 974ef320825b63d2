"""Stand-ins for TeX, and what tests of builds share."""

import hashlib
from dataclasses import replace

import numpy as np

from i2l.dataset.sources import RECIPES
from i2l.rendering.render import RenderResult

RECIPE = replace(RECIPES["im2latex-90k"], min_token_count=2, max_tokens=20)


def fake_render(formulas, *, style, boxes):
    """Noise whose size grows with the formula; what names an error gets one."""
    results = []
    for formula in formulas:
        if "\\undefined" in formula:
            results.append(RenderResult(formula, "tex-error", "Undefined control sequence"))
            continue
        width = 1200 if "W" in formula else 4 * len(formula)
        height = 300 if "H" in formula else 30
        seed = int.from_bytes(hashlib.sha256(formula.encode()).digest()[:4], "little")
        pixels = np.random.default_rng(seed).integers(0, 256, (height, width), dtype=np.uint8)
        places = [(i, 0, i + 1, 10) if i % 2 else None for i in range(len(formula.split()))]
        results.append(RenderResult(formula, None, "", pixels, places if boxes else None))
    return results


def folder_bytes(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
