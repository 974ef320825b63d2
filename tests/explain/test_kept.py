"""Figures about attention are counted, and drawings of it made, as those that were published."""

import io
from dataclasses import asdict

import numpy as np
from PIL import Image, ImageSequence

from i2l.explain.attention import measure_claims
from i2l.explain.drawings import boxes_picture, contact_sheet, scan_gif
from i2l.explain.localization import LocalizationSample, evaluate_localization, fit_localization
from tests.explain.readings import FIELD, make_explanation
from tests.kept import assert_kept, outline

TOKENS = ["a", "+", r"\frac", "2", r"\alpha", "=", r"\left(", "x", r"\sum", "i"]


def samples():
    """Symbols of many sizes in two rows, and attention that is near them, more or less."""
    for number in range(12):
        random = np.random.default_rng(number)
        count = 3 + number % 8
        pixels = np.full((64, 320), 255, np.uint8)
        attention = random.random((count + 1, *FIELD.grid)) ** 6
        boxes = []
        for place in range(count):
            width, height = random.integers(2, 24), random.integers(2, 30)
            left, top = 32 * place + int(random.integers(8)), int(random.integers(64 - height))
            boxes.append((left, top, left + int(width), top + int(height)))
            pixels[top : top + height, left : left + width] = 0
            row, column = min((top + int(height) // 2) // 32, 1), min((left + int(width) // 2) // 32, 9)
            attention[place, row, column] += random.random() * 3
        attention /= attention.sum(axis=(1, 2), keepdims=True)
        tokens = (TOKENS * 2)[number : number + count]
        prediction = [*tokens[:-1], "?"] if number % 4 == 0 else tokens
        yield LocalizationSample(
            f"sample {number}", pixels, tokens, boxes, prediction, attention.astype(np.float32)
        )


def flat(value):
    """All numbers of a result, in its order."""
    if isinstance(value, dict):
        return [number for each in value.values() for number in flat(each)]
    if isinstance(value, (list, tuple)):
        return [number for each in value for number in flat(each)]
    return [] if isinstance(value, str) else [float(value)]


def test_localization_is_counted_as_it_was():
    fit = fit_localization(samples(), field=FIELD)
    result = asdict(evaluate_localization(samples(), field=FIELD, share=fit.share, rounds=50))
    measured = {"fit": flat(asdict(fit))} | {name: flat(value) for name, value in result.items()}
    for name in ("systems", "by_class", "by_size", "by_position"):
        measured[f"{name}, how many"] = [part["num_tokens"] for part in result[name]]
    assert_kept("localization", measured)


def test_claims_about_attention_are_counted_as_they_were():
    readings = []
    for number in range(6):
        random = np.random.default_rng(100 + number)
        steps = np.arange(5 + 4 * number)
        centres = np.stack([np.sin(steps), 9 * steps / len(steps)], axis=1) + random.normal(
            0, 0.4, (len(steps), 2)
        )
        rows, columns = np.mgrid[:2, :10]
        away = (rows - centres[:, 0, None, None]) ** 2 + (columns - centres[:, 1, None, None]) ** 2
        attention = np.exp(-away * (0.3 + number))
        readings.append((attention / attention.sum(axis=(1, 2), keepdims=True), random.random((2, 10)) < 0.7))
    claims = asdict(measure_claims(readings))
    assert_kept("attention_claims", {name: flat(value) for name, value in claims.items()})


def test_drawings_look_as_they_did():
    """Fonts may be drawn a little otherwise from one version to the next, all else not."""
    measured = {}
    for zoom in (1, 4):
        explanation = make_explanation(zoom=zoom)
        with Image.open(io.BytesIO(scan_gif(explanation))) as scan:
            frames = [
                (frame.convert("RGB"), frame.info["duration"]) for frame in ImageSequence.Iterator(scan)
            ]
        for name, picture in (
            ("sheet", contact_sheet(explanation)),
            ("boxes", boxes_picture(explanation)),
            ("first frame", frames[0][0]),
            ("frame of a script", frames[3][0]),
            ("last frame", frames[-1][0]),
        ):
            for channel, pixels in zip(
                "RGB", np.moveaxis(255 - np.asarray(picture.convert("RGB")), 2, 0), strict=True
            ):
                measured[f"{name} {zoom} {channel}"] = outline(pixels)
        measured[f"milliseconds {zoom}"] = [duration for _, duration in frames]
    assert_kept("drawings", measured, relative=0.02)
