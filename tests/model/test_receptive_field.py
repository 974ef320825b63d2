"""The fields against the encoder itself: move one pixel, see which cells change."""

import dataclasses

import pytest
import torch

from i2l.config import PRESETS, ModelConfig
from i2l.model.encoder import Encoder
from i2l.model.receptive_field import receptive_field

GEOMETRIES = {
    "columns pooled": ModelConfig(height_px=64, width_px=256, pool_columns=2),
    "three layers": ModelConfig(height_px=32, width_px=96, channels=(1, 1, 1)),
    "one cell": ModelConfig(height_px=32, width_px=32),
}


@pytest.fixture(
    params=[
        *(pytest.param(config, id=name) for name, config in GEOMETRIES.items()),
        *(pytest.param(config, id=name, marks=pytest.mark.slow) for name, config in PRESETS.items()),
    ]
)
def config(request):
    """The geometry is a preset's, the channels are one: which pixels a cell sees is the same."""
    return dataclasses.replace(request.param, channels=(1,) * len(request.param.channels))


def monotonic_encoder(config):
    """With positive weights and positive pixels a brighter pixel cannot be hidden by the pooling."""
    encoder = Encoder(
        channels=config.channels, pool_rows=config.pool_rows, pool_columns=config.pool_columns
    ).double()
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.fill_(1 / 9 if parameter.dim() > 1 else 0)
    return encoder


@torch.no_grad()
def changed_cells(encoder, config, moved):
    """For each pixel moved, which cells of the grid change: (N, rows, columns)."""
    canvas = torch.full((1, *config.canvas_shape), 128, dtype=torch.uint8)
    still = encoder(canvas)
    changed = []
    for batch in torch.tensor(moved).split(64):
        canvases = canvas.repeat(len(batch), 1, 1)
        canvases[torch.arange(len(batch)), batch[:, 0], batch[:, 1]] = 255
        changed.append((encoder(canvases) != still).any(-1))
    return torch.cat(changed)


def expected_cells(config, moved):
    field = receptive_field(config)
    rows, columns = (
        torch.tensor(
            [
                [first <= pixel < last for first, last in map(axis.field, range(axis.num_cells))]
                for pixel in pixels
            ]
        )
        for axis, pixels in zip((field.rows, field.columns), zip(*moved, strict=True), strict=True)
    )
    return rows[:, :, None] & columns[:, None, :]


def test_fields_are_what_moves_a_cell(config):
    height, width = config.canvas_shape
    # A stride is a power of two, so odd steps meet every offset within a cell.
    moved = [(row, (row * 37) % width) for row in range(0, height, 3)]
    moved += [((column * 53) % height, column) for column in range(0, width, 11)]
    moved += [(row, column) for row in (0, height - 1) for column in (0, 1, width - 2, width - 1)]
    encoder = monotonic_encoder(config)
    assert torch.equal(changed_cells(encoder, config, moved), expected_cells(config, moved))


def test_cores_tile_the_area_inside_the_frame(config):
    field = receptive_field(config)
    for axis, canvas_px in zip((field.rows, field.columns), config.canvas_shape, strict=True):
        covered = [pixel for cell in range(axis.num_cells) for pixel in range(*axis.core(cell))]
        assert covered == list(range(1, canvas_px - 1))
        assert all(axis.field(cell)[0] <= axis.core(cell)[0] for cell in range(axis.num_cells))
    assert field.grid == config.grid


def test_the_papers_numbers():
    field = receptive_field(PRESETS["nopool"])
    assert (field.columns.field_px, field.columns.stride_px) == (94, 32)
    assert field.columns.field(3) == (32 * 3 - 31 + 1, 32 * 3 + 62 + 1 + 1)  # the frame is one pixel
    assert receptive_field(PRESETS["strips"]).rows.field(0) == (0, 130)
