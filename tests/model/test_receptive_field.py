"""The fields against the encoder itself: move one pixel, see which cells change."""

import dataclasses

import pytest
import torch

from i2l.model.calstm.config import CalstmConfig
from i2l.model.calstm.encoder import Encoder
from i2l.model.config import presets
from i2l.model.pinpoint.network import GridEncoder

GEOMETRIES = {
    **presets(),
    "columns pooled": CalstmConfig(height_px=64, width_px=256, pool_columns=2),
    "three layers": CalstmConfig(height_px=32, width_px=96, channels=(1, 1, 1)),
    "one cell": CalstmConfig(height_px=32, width_px=32),
}


@pytest.fixture(params=GEOMETRIES.values(), ids=GEOMETRIES.keys())
def config(request):
    """The geometry is a preset's, the channels are one: which pixels a cell sees is the same."""
    return dataclasses.replace(request.param, channels=(1,) * len(request.param.channels))


def monotonic_encoder(config):
    """With positive weights and positive pixels a brighter pixel cannot be hidden by the pooling."""
    if config.network == "pinpoint":
        encoder = GridEncoder(
            channels=config.channels, depths=config.depths, reach_px=config.reach_px
        ).double()
        with torch.no_grad():
            for parameter in encoder.parameters():
                parameter.fill_(1 / parameter[0].numel() if parameter.dim() > 1 else 0)
        return lambda canvases: encoder(canvases[:, 1:-1, 1:-1])[0]
    encoder = Encoder(
        channels=config.channels, pool_rows=config.pool_rows, pool_columns=config.pool_columns
    ).double()
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.fill_(1 / 9 if parameter.dim() > 1 else 0)
    return encoder


@torch.no_grad()
def changed_cells(encoder, config, pixels):
    """Which cells of the grid change when these pixels do: (rows, columns)."""
    canvases = torch.full((2, *config.canvas_shape), 128, dtype=torch.uint8)
    for row, column in pixels:
        canvases[1, row, column] = 255
    still, moved = encoder(canvases)
    return (still != moved).any(-1)


def expected_cells(config, pixels):
    field = config.receptive_field()
    expected = torch.zeros(field.grid, dtype=torch.bool)
    for pixel in pixels:
        rows, columns = (
            torch.tensor([first <= place < last for first, last in map(axis.field, range(axis.num_cells))])
            for axis, place in zip((field.rows, field.columns), pixel, strict=True)
        )
        expected |= rows[:, None] & columns
    return expected


def test_fields_are_what_moves_a_cell(config):
    """Pixels are moved together where no cell sees two of them, so that each is checked as if alone."""
    height, width = config.canvas_shape
    axis = config.receptive_field().columns
    pitch = axis.field_px + axis.stride_px + 6  # coprime to a stride, or nearly: all offsets are met
    encoder = monotonic_encoder(config)
    starts = [0, *range(1, pitch, 7), width - 1]
    for number, start in enumerate(starts):
        columns = range(start, width, pitch)
        pixels = [((37 * number + 29 * place) % height, column) for place, column in enumerate(columns)]
        assert torch.equal(changed_cells(encoder, config, pixels), expected_cells(config, pixels)), pixels
    for row in (0, 1, height - 2, height - 1):
        pixels = [(row, column) for column in (0, width - 1)][: 1 + (width > 2 * pitch)]
        assert torch.equal(changed_cells(encoder, config, pixels), expected_cells(config, pixels)), pixels


def test_cores_tile_the_area_inside_the_frame(config):
    field = config.receptive_field()
    for axis, canvas_px in zip((field.rows, field.columns), config.canvas_shape, strict=True):
        covered = [pixel for cell in range(axis.num_cells) for pixel in range(*axis.core(cell))]
        assert covered == list(range(1, canvas_px - 1))
        assert all(axis.field(cell)[0] <= axis.core(cell)[0] for cell in range(axis.num_cells))
    assert field.grid == config.grid


def test_the_papers_numbers():
    field = presets()["nopool"].receptive_field()
    assert (field.columns.field_px, field.columns.stride_px) == (94, 32)
    assert field.columns.field(3) == (32 * 3 - 31 + 1, 32 * 3 + 62 + 1 + 1)  # the frame is one pixel
    assert presets()["strips"].receptive_field().rows.field(0) == (0, 130)
