"""Attention keeps its sum on the way to pixels, and lands where it should."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from i2l.errors import I2LError
from i2l.explain.attention import SPREADS, AttentionMapper, Placement, axis_weights
from i2l.model.calstm.config import CalstmConfig
from i2l.model.config import presets

SMALL = CalstmConfig(height_px=64, width_px=160)
FIELDS = {
    **{name: config.receptive_field() for name, config in presets().items()},
    "small": SMALL.receptive_field(),
}


def one_hot(field, row, column):
    attention = np.zeros(field.grid, np.float32)
    attention[row, column] = 1
    return attention


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("name", FIELDS)
def test_maps_keep_the_sum_also_at_the_border(name, spread):
    field = FIELDS[name]
    mapper = AttentionMapper(field, spread=spread)
    rows, columns = field.grid
    for row, column in ((0, 0), (rows - 1, columns - 1), (rows // 2, columns // 2)):
        density = mapper.map(one_hot(field, row, column))
        assert density.shape == (field.rows.canvas_px, field.columns.canvas_px)
        assert density.min() >= 0
        assert density.sum() == pytest.approx(1, abs=1e-12)
        reached = np.argwhere(density > 0)
        (top, bottom), (left, right) = field.rows.field(row), field.columns.field(column)
        assert (reached.min(0) >= (top, left)).all()
        assert (reached.max(0) < (bottom, right)).all()
        if spread == "field":
            assert len(reached) == (bottom - top) * (right - left)
        if spread == "nearest":
            assert tuple(reached.min(0)) == (field.rows.core(row)[0], field.columns.core(column)[0])
            assert len(reached) == field.rows.stride_px * field.columns.stride_px


@pytest.mark.parametrize("spread", ["nearest", "bilinear"])
def test_even_attention_is_an_even_map(spread):
    field = FIELDS["nopool"]
    inside = AttentionMapper(field, spread=spread).map(np.full(field.grid, 1 / 136))[1:-1, 1:-1]
    assert inside.max() == pytest.approx(inside.min(), rel=1e-12)


def test_bilinear_peaks_at_the_cell_and_gaussian_falls_off():
    axis = FIELDS["nopool"].columns
    for spread in ("bilinear", "gaussian"):
        weights = axis_weights(axis, spread)[5]
        middle = int(axis.centre(5))
        assert weights[middle] == weights.max() == weights[middle - 1]
        assert (np.diff(weights[middle : axis.field(5)[1]]) <= 0).all()


def test_unknown_spread_says_which_there_are():
    with pytest.raises(I2LError, match="nearest, field, bilinear, gaussian"):
        AttentionMapper(FIELDS["small"], spread="cubic")


placements = st.builds(
    Placement,
    height_px=st.integers(1, 120),
    width_px=st.integers(1, 400),
    scale_x=st.floats(0.1, 5),
    scale_y=st.floats(0.1, 5),
    offset_x=st.floats(-300, 200),
    offset_y=st.floats(-200, 100),
)


@settings(max_examples=60, deadline=None)
@given(placements, st.sampled_from(SPREADS), st.integers(0, 2**31))
def test_maps_of_files_lose_only_what_lies_beside_the_file(placement, spread, seed):
    field = FIELDS["small"]
    attention = np.random.default_rng(seed).dirichlet(np.ones(10)).reshape(field.grid)
    mapper = AttentionMapper(field, placement=placement, spread=spread)
    density = mapper.map(attention)
    assert density.shape == (placement.height_px, placement.width_px)
    assert density.min() >= -1e-15
    assert density.sum() + mapper.outside(attention) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("scale", [0.5, 2])
def test_map_of_a_scaled_file_is_the_canvas_by_area(scale):
    """A file of twice the size, or half of it: each pixel is the sum of its part of the canvas."""
    field = FIELDS["small"]
    attention = np.random.default_rng(0).dirichlet(np.ones(10)).reshape(field.grid)
    placement = Placement(height_px=int(40 / scale), width_px=int(80 / scale), scale_x=scale, scale_y=scale,
                          offset_x=21, offset_y=9)  # fmt: skip
    found = AttentionMapper(field, placement=placement, spread="gaussian").map(attention)
    canvas = AttentionMapper(field, spread="gaussian").map(attention)[9:49, 21:101]
    if scale == 2:
        expected = canvas.reshape(20, 2, 40, 2).sum((1, 3))
    else:
        expected = canvas.repeat(2, 0).repeat(2, 1) / 4
    np.testing.assert_allclose(found, expected, atol=1e-15)


@settings(max_examples=100, deadline=None)
@given(placements, st.tuples(*[st.floats(0, 1)] * 4))
def test_boxes_go_to_the_canvas_and_back(placement, corners):
    left, right = sorted((corners[0] * placement.width_px, corners[1] * placement.width_px))
    top, bottom = sorted((corners[2] * placement.height_px, corners[3] * placement.height_px))
    box = (left, top, right, bottom)
    assert placement.to_image(placement.to_canvas(box)) == pytest.approx(box, abs=1e-6)


def test_training_images_are_placed_as_the_canvas_places_them():
    from i2l.images.prepare import place_on_canvas

    image = np.zeros((21, 50), np.uint8)
    canvas = place_on_canvas([image], canvas_shape=SMALL.canvas_shape)[0]
    left, top, right, bottom = Placement.centred((21, 50), canvas_shape=SMALL.canvas_shape).to_canvas(
        (0, 0, 50, 21)
    )
    ink = np.argwhere(canvas == 0)
    assert (tuple(ink.min(0)), tuple(ink.max(0) + 1)) == ((top, left), (bottom, right))
