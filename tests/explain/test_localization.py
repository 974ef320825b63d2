"""Scores on constructed attention: perfect, shifted, uniform; which tokens count; baselines; breakdowns."""

import numpy as np
import pytest

from i2l.explain.attention import FOCUS_SHARE
from i2l.explain.localization import (
    METRICS,
    MODEL,
    LocalizationError,
    LocalizationSample,
    evaluate_localization,
    fit_localization,
    localized_tokens,
    matched_tokens,
    point_at_ink,
    score_tokens,
    token_class,
)
from i2l.model.calstm.config import CalstmConfig

CONFIG = CalstmConfig(height_px=64, width_px=320)
FIELD = CONFIG.receptive_field()  # 2 x 10 cells
TOKENS = ["a", "+", r"\alpha", "2"]
# Symbols of 20 x 24 pixels in the middle of the cells (0, 1), (0, 3), (0, 5) and (0, 8) of a full-size image.
BOXES = [(32 * column + 6, 4, 32 * column + 26, 28) for column in (1, 3, 5, 8)]
CELLS = [(0, column) for column in (1, 3, 5, 8)]


def image():
    pixels = np.full((64, 320), 255, np.uint8)
    for left, top, right, bottom in BOXES:
        pixels[top:bottom, left:right] = 0
    return pixels


def one_hot(cells):
    attention = np.zeros((len(cells), *FIELD.grid), np.float32)
    for step, (row, column) in enumerate(cells):
        attention[step, row, column] = 1
    return attention


def sample(cells=CELLS, *, name="one", prediction=TOKENS, attention=None):
    attention = one_hot([*cells, (1, 9)]) if attention is None else attention
    return LocalizationSample(name, image(), TOKENS, BOXES, prediction, attention)


def scores(attention):
    counted = localized_tokens(sample(attention=attention), canvas_shape=CONFIG.canvas_shape)
    found = score_tokens(counted.attention, counted.boxes, counted.ink, field=FIELD, share=0.9)
    assert list(found) == list(METRICS)
    return {key: values.tolist() for key, values in found.items()}


def test_perfect_attention():
    found = scores(one_hot(CELLS))
    for key in ("pointing", "cell_pointing", "ink_share", "iou", "iou_over_half"):
        assert found[key] == [1, 1, 1, 1]
    assert found["distance_px"] == [0, 0, 0, 0]


def test_attention_shifted_by_one_cell():
    found = scores(one_hot([(row, column + 1) for row, column in CELLS]))
    for key in ("pointing", "cell_pointing", "ink_share", "iou", "iou_over_half"):
        assert found[key] == [0, 0, 0, 0]
    assert found["distance_px"] == [32] * 4
    assert found["distance_widths"] == [32 / 20] * 4


def test_uniform_attention():
    found = scores(np.full((4, *FIELD.grid), 1 / 20))
    assert (
        found["pointing"] == [0] * 4
    )  # with both rows alike, every peak lies between them, under the symbols
    assert found["cell_pointing"] == pytest.approx([1 / 20] * 4)
    assert found["ink_share"] == pytest.approx([1 / 20] * 4)  # one of twenty cells has the token's ink
    peaks = [32, *(32 * column + 16 for column in range(1, 9)), 32 * 9]  # the outermost have one neighbour
    away = [np.hypot(x - (32 * 3 + 16), 32 - 16) for x in peaks]
    assert found["distance_px"][1] == pytest.approx(np.mean(away))
    # The first nine columns of cells hold 90 %; the second symbol is as near to their middle as the third.
    assert found["iou"] == [0, 1, 0, 0]


def test_ink_share_divides_a_cell_among_the_ink_in_it():
    """Half of attention on a cell with the token's ink alone, half where a quarter of the ink is its."""
    pixels = np.full((64, 320), 255, np.uint8)
    pixels[10:20, 20:44] = 0  # the token: 12 columns in each of two cells
    pixels[20:32, 34:64] = 0  # another, three times as much ink, in the second cell
    attention = np.zeros((2, *FIELD.grid), np.float32)
    attention[0, 0, 0] = attention[0, 0, 1] = 0.5
    given = LocalizationSample("x", pixels, ["x"], [(20, 10, 44, 20)], ["x"], attention)
    counted = localized_tokens(given, canvas_shape=CONFIG.canvas_shape)
    found = score_tokens(counted.attention, counted.boxes, counted.ink, field=FIELD, share=0.9)
    assert found["ink_share"][0] == pytest.approx(0.5 + 0.5 / 4)


def pointed(pixels, box, cells, *, others_count=True):
    """Tell whether a token whose attention is the first of these maps points at the ink in its box."""
    attention = np.zeros((len(cells) + 1, *FIELD.grid), np.float32)
    for seen, shares in zip(attention, cells, strict=False):
        for cell, share in shares.items():
            seen[cell] = share
    tokens = ["-", *"abc"[: len(cells) - 1]]
    boxes = [box, *[(0, 0, 1, 1) if others_count else None] * (len(cells) - 1)]
    given = LocalizationSample("x", pixels, tokens, boxes, tokens, attention)
    counted = localized_tokens(given, canvas_shape=CONFIG.canvas_shape)
    parts = counted.attention, counted.boxes, counted.ink
    assert score_tokens(*parts, field=FIELD, share=0.9)["pointing"][0] == 0  # the peak is not in the box
    return point_at_ink(*parts, field=FIELD, among=None if others_count else attention)[0] == 1


def test_a_token_points_at_one_piece_of_ink():
    """A thin bar misses the middle of its cell; it is pointed at all the same, until more ink lies there."""
    bar = np.full((64, 320), 255, np.uint8)
    bar[26:28, 34:62] = 0  # low in the cell (0, 1), whose middle is at 48, 16
    box = (34, 26, 62, 28)
    assert pointed(bar, box, [{(0, 1): 1}])
    dot = bar.copy()
    dot[8:10, 40:43] = 0  # as near to the middle, and smaller
    assert pointed(dot, box, [{(0, 1): 1}])
    block = bar.copy()
    block[4:20, 36:60] = 0
    assert not pointed(block, box, [{(0, 1): 1}])
    far = bar.copy()
    far[26:60, 130:200] = 0  # more than a cell away
    assert pointed(far, box, [{(0, 1): 1}])


def test_a_token_does_not_point_where_another_looks_more():
    """Two bars in two cells: what both tokens look at belongs to the one that looks there more."""
    pixels = np.full((64, 320), 255, np.uint8)
    pixels[26:28, 34:62] = 0
    pixels[26:28, 66:94] = 0  # the other's, in the cell (0, 2)
    box = (34, 26, 62, 28)
    assert not pointed(pixels, box, [{(0, 1): 0.4, (0, 2): 0.6}])
    looks = [{(0, 1): 0.4, (0, 2): 0.6}, {(0, 2): 1.0}]
    assert pointed(pixels, box, looks)
    assert pointed(pixels, box, looks, others_count=False), "one without a box looks there as well"


def test_only_tokens_that_were_read_right_and_are_visible_count():
    assert matched_tokens("abcd", "abxd") == [(0, 0), (1, 1), (3, 3)]
    assert matched_tokens("abcd", "abzcd") == [(0, 0), (1, 1), (2, 3), (3, 4)]
    assert matched_tokens("ab", "") == []
    given = LocalizationSample(
        "x",
        image(),
        ["a", "{", "b", "}"],
        [BOXES[0], None, BOXES[1], None],
        ["a", "{", "c", "}"],
        one_hot(CELLS),
    )
    assert localized_tokens(given, canvas_shape=CONFIG.canvas_shape).tokens == ["a"]


def test_boxes_must_belong_to_the_tokens():
    given = LocalizationSample("x", image(), ["a"], BOXES, ["a"], one_hot(CELLS))
    with pytest.raises(LocalizationError, match="x: each token of the target needs a box"):
        localized_tokens(given, canvas_shape=CONFIG.canvas_shape)


def test_evaluation_over_samples_with_baselines_and_breakdowns():
    wrong = [(1, 9)] * 4
    result = evaluate_localization(
        [sample(), sample(wrong, name="two"), sample(name="none", prediction=["q"] * 4)],
        field=FIELD,
        share=FOCUS_SHARE,
        rounds=200,
    )
    assert (result.num_samples, result.num_tokens) == (2, 8)
    assert result.sample_iou == {"one": 1, "two": 0}
    systems = {scores.label: scores.figures for scores in result.systems}
    assert list(systems) == [MODEL, "random", "uniform", "left to right"]
    pointing = systems[MODEL]["pointing"]
    assert (pointing.low, pointing.value, pointing.high) == (0, 0.5, 1)  # one sample right, one wrong
    assert systems["uniform"]["cell_pointing"].value == pytest.approx(1 / 20)
    assert 0 < systems["random"]["cell_pointing"].value < 0.6  # one of four cells with ink
    # An even pace is at columns 2, 4, 5 and 7 of cells, and so meets only the third symbol.
    assert systems["left to right"]["cell_pointing"].value == pytest.approx(0.25)
    assert [(part.label, part.num_tokens) for part in result.by_class] == [
        ("letters", 2),
        ("digits", 2),
        ("Greek letters", 2),
        ("operators and relations", 2),
    ]
    assert [(part.label, part.num_tokens) for part in result.by_size] == [("16 to 31 px", 8)]
    assert [part.num_tokens for part in result.by_position] == [2, 2, 2, 2]
    again = evaluate_localization([sample()], field=FIELD, share=0.9, rounds=20, seed=0)
    assert again == evaluate_localization([sample()], field=FIELD, share=0.9, rounds=20, seed=0)


def test_nothing_to_measure():
    with pytest.raises(LocalizationError, match="no token was read right"):
        evaluate_localization([sample(prediction=["q"] * 4)], field=FIELD, share=0.9)


def test_share_is_fitted_on_samples():
    """A stray tenth of attention far away: a share of all of it spoils the box."""
    attention = 0.8 * one_hot([*CELLS, (0, 0)])
    attention[:, 1, 0] += 0.2
    fit = fit_localization([sample(attention=attention)], field=FIELD)
    assert fit.mean_iou == 1
    assert fit.share <= 0.8


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("x", "letters"),
        ("7", "digits"),
        (r"\Omega", "Greek letters"),
        ("+", "operators and relations"),
        (r"\leftarrow", "operators and relations"),
        (r"\left(", "delimiters"),
        (r"\right\rangle", "delimiters"),
        (r"\{", "delimiters"),
        (r"\sum", "big operators"),
        (r"\frac", "fractions, roots, lines"),
        (r"\hat", "accents"),
        (r"\ldots", "punctuation and dots"),
    ],
)
def test_classes(token, expected):
    assert token_class(token) == expected


def test_the_peak_is_refined_by_its_neighbours():
    """A symbol across two cells: neither's centre is in its box, the place between them is."""
    pixels = np.full((64, 320), 255, np.uint8)
    pixels[4:28, 58:70] = 0
    attention = np.zeros((1, *FIELD.grid), np.float32)
    attention[0, 0, 1], attention[0, 0, 2], attention[0, 0, 8] = 0.45, 0.4, 0.15
    given = LocalizationSample("x", pixels, ["x"], [(58, 4, 70, 28)], ["x"], attention)
    counted = localized_tokens(given, canvas_shape=CONFIG.canvas_shape)
    found = score_tokens(counted.attention, counted.boxes, counted.ink, field=FIELD, share=0.8)
    assert (found["pointing"], found["iou"]) == (1, 1)
    assert found["distance_px"][0] == pytest.approx(64 - (0.45 * 48 + 0.4 * 80) / 0.85)


def test_a_box_that_is_twice_as_large_overlaps_by_half_and_not_by_more():
    twice = [(left, top, right, 2 * bottom - top) for left, top, right, bottom in BOXES]
    counted = localized_tokens(sample(), canvas_shape=CONFIG.canvas_shape)
    shift = np.array(counted.boxes[0]) - np.array(BOXES[0])  # the frame of the canvas
    found = score_tokens(counted.attention, np.array(twice) + shift, counted.ink, field=FIELD, share=0.9)
    assert (found["iou"].tolist(), found["iou_over_half"].tolist()) == ([0.5] * 4, [0.0] * 4)
