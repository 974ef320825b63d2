"""What training, decoding and export ask of a network, whichever it is, and what training minimises.

A network reads canvases and writes tokens; `Network` is its interface. What it says about itself without
weights is said by its config, an `i2l.model.config.ModelConfig`. The objective is the same for all networks:
log-loss per word, L2 on the kernels, and the optional penalty on attention.

Windows of the canvas hold all the ink of an image that `i2l.images.prepare` has centred on it. The outermost
pixel of the canvas on each side is a white frame; a window is a part of the area inside it. Since images are
centred, a few windows hold them all, and a whole batch can share one: `i2l.model.calstm.encoder` encodes just
that part.
"""

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import pad

from i2l.config import ObjectiveConfig
from i2l.formulas.vocabulary import Vocabulary
from i2l.images.prepare import FRAME_PX, WHITE, ImageTooLargeError, centre
from i2l.model.config import ModelConfig


@dataclass(frozen=True, order=True)
class Window:
    """A part of the canvas, in pixels inside the frame."""

    height_px: int
    width_px: int
    top_px: int
    left_px: int


def centred_windows(
    *, area: tuple[int, int], cell_px: int, heights_px: Sequence[int], step: int = 2
) -> list[Window]:
    """Return windows that grow from the middle of the area, small ones first; the last is the whole area.

    Args:
        area: height and width inside the frame.
        cell_px: the side of the encoder's cell.
        heights_px: of the windows that are lower than the area.
        step: a window reaches this many cells further to the left and right than the next smaller one.
    """
    height, width = area
    heights = [*(lower for lower in heights_px if lower < height), height]
    widths = range(width, 0, -2 * step * cell_px)
    windows = [
        Window(rows, columns, centre(rows, height + 2 * FRAME_PX), (width - columns) // 2)
        for rows in heights
        for columns in widths
    ]
    return sorted(windows, key=lambda window: (window.height_px * window.width_px, window))


def assign_windows(
    sizes: npt.NDArray[np.integer], windows: Sequence[Window], *, canvas_shape: tuple[int, int]
) -> npt.NDArray[np.int64]:
    """Find for each image (height, width) the first window that holds it when it is centred: (N, 2) to (N,).

    Raises:
        ImageTooLargeError: if no window holds an image.
    """
    starts = (np.asarray(canvas_shape) - sizes) // 2 - FRAME_PX  # as `centre`
    ends = starts + sizes
    chosen = np.full(len(sizes), -1, np.int64)
    for index, window in reversed(list(enumerate(windows))):
        first = np.array([window.top_px, window.left_px])
        last = first + np.array([window.height_px, window.width_px])
        chosen[((starts >= first) & (ends <= last)).all(1)] = index
    if (chosen < 0).any():
        rows, columns = sizes[chosen < 0][0]
        raise ImageTooLargeError(f"No window holds an image of {columns} x {rows} pixels; leave it out.")
    return chosen


def crop_window(pixels: Tensor, window: Window) -> Tensor:
    """Cut the window out of whole canvases: (B, canvas height, canvas width) to (B, height, width)."""
    top, left = window.top_px + FRAME_PX, window.left_px + FRAME_PX
    return pixels[:, top : top + window.height_px, left : left + window.width_px]


def place_window(pixels: Tensor, window: Window, *, canvas_shape: tuple[int, int]) -> Tensor:
    """Undo `crop_window`: (B, height, width) to white canvases (B, canvas height, canvas width)."""
    top, left = window.top_px + FRAME_PX, window.left_px + FRAME_PX
    bottom = canvas_shape[0] - top - window.height_px
    right = canvas_shape[1] - left - window.width_px
    return pad(pixels, (left, right, top, bottom), value=WHITE)


def centred_places(sizes: Tensor, window: Window, canvas_shape: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Return the top and left of centred images in a window of the canvas: (B, 2) to (B,) each."""
    heights, widths = sizes.unbind(1)
    top = (canvas_shape[0] - heights) // 2 - FRAME_PX - window.top_px
    left = (canvas_shape[1] - widths) // 2 - FRAME_PX - window.left_px
    return top, left


def gather_windows(
    storage: Tensor,
    offsets: Tensor,
    sizes: Tensor,
    *,
    window: Window,
    canvas_shape: tuple[int, int],
    places: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """Cut the window's view of images that lie one after the other in one long tensor.

    All on the device of the storage and without waiting for it, so a CUDA graph may hold this.

    Args:
        storage: uint8, one dimension: the images' pixels row by row. One pixel of white follows the last.
        offsets: (B,) int64, where each image starts.
        sizes: (B, 2) int64, height and width of each.
        window: one that holds the centred images.
        canvas_shape: of the model.
        places: the top and left of each image in the window, (B,) int64 each; in the middle if None.

    Returns:
        (B, height, width), uint8
    """
    device = storage.device
    heights, widths = (part.view(-1, 1, 1) for part in sizes.unbind(1))
    top, left = (part.view(-1, 1, 1) for part in places or centred_places(sizes, window, canvas_shape))
    rows = torch.arange(window.height_px, device=device).view(1, -1, 1) - top  # in the image
    columns = torch.arange(window.width_px, device=device).view(1, 1, -1) - left
    inside = (rows >= 0) & (rows < heights) & (columns >= 0) & (columns < widths)
    index = torch.where(inside, offsets.view(-1, 1, 1) + rows * widths + columns, storage.numel() - 1)
    return storage[index]


@dataclass(frozen=True)
class ObjectiveResult:
    """The objective and its parts, all scalars that gradients flow through."""

    total: Tensor  # log_loss + l2 * regularization + lambda_A * |ASE_N - ASE_T|
    log_loss: Tensor
    regularization: Tensor  # half the squared norm, before its factor
    alpha_penalty: Tensor  # before its factor
    ase: Tensor  # ASE_N, batch mean: how unevenly the locations were looked at, 0..100
    aae: Tensor  # AAE_N, batch mean: the same from absolute differences


def step_mask(lengths: Tensor, steps: int) -> Tensor:
    """Mark the steps that belong to each sample, eos included: (B,) to (B, T)."""
    return torch.arange(steps, device=lengths.device).unsqueeze(0) < lengths.unsqueeze(1)


def log_loss(logits: Tensor, token_ids: Tensor, lengths: Tensor, *, label_smoothing: float = 0.0) -> Tensor:
    """Cross-entropy: the mean over each sample's own words, then the mean over the batch.

    Args:
        logits: (B, T, K)
        token_ids: (B, T), the targets.
        lengths: (B,), words counted with eos.
        label_smoothing: this share of the target is spread evenly over all tokens.
    """
    batch, steps, _ = logits.shape
    losses = functional.cross_entropy(
        logits.flatten(0, 1).to(torch.promote_types(logits.dtype, torch.float32)),
        token_ids.flatten(),
        reduction="none",
        label_smoothing=label_smoothing,
    ).view(batch, steps)
    mask = step_mask(lengths, steps)
    return ((losses * mask).sum(1) / lengths).mean()


def attention_errors(attention: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return ASE_N and AAE_N of each sample, (B,) each, from the attention (B, T, rows, columns)."""
    attention = attention.flatten(2)
    _, steps, locations = attention.shape
    seen = (attention * step_mask(lengths, steps).unsqueeze(2)).sum(1)  # (B, L)
    words = lengths.to(seen.dtype)
    difference = seen - (words / locations).unsqueeze(1)
    share = (locations - 1) / locations
    ase = 100 * difference.square().sum(1) / (words.square() * share)
    aae = 100 * difference.abs().sum(1) / (2 * words * share)
    return ase, aae


def cover_cells(boxes: Tensor, grid: tuple[int, int]) -> Tensor:
    """Say how much of each cell boxes cover, the best covered cell of each box 1.

    Args:
        boxes: left, top, right and bottom in cells, (B, T, 4); an empty one covers nothing.
        grid: rows and columns.

    Returns:
        (B, T, rows, columns)
    """
    overlaps = []
    for axis, cells in ((1, grid[0]), (0, grid[1])):
        edges = torch.arange(cells, device=boxes.device)
        low = torch.maximum(boxes[..., axis, None], edges)
        high = torch.minimum(boxes[..., axis + 2, None], edges + 1)
        overlap = (high - low).clamp(min=0)
        overlaps.append(overlap / overlap.amax(dim=2, keepdim=True).clamp(min=math.ulp(1.0)))
    rows, columns = overlaps
    return rows.unsqueeze(3) * columns.unsqueeze(2)


def guidance_loss(attention: Tensor, boxes: Tensor) -> Tensor:
    """The mean over tokens with a box of minus the log of the attention on it; 0 if there is none.

    Args:
        attention: (B, T, rows, columns)
        boxes: of the tokens, as in `cover_cells`; empty for a token without.
    """
    covered = cover_cells(boxes, (attention.shape[2], attention.shape[3]))
    on_box = (attention * covered).sum(dim=(2, 3))
    has_box = covered.amax(dim=(2, 3)) > 0
    losses = -torch.log(on_box.clamp(min=1e-6)) * has_box
    return losses.sum() / has_box.sum().clamp(min=1)


def placement_loss(attention: Tensor, boxes: Tensor) -> Tensor:
    """The mean over tokens with a box of how far the peak of attention lies from its middle half, in cells.

    The peak is the mean place of attention within one cell of the fullest cell. What guidance cannot tell
    apart, a box in the upper or in the lower half of its cells, this does: how attention is shared among
    cells says where between their middles the symbol stands.

    Args:
        attention: (B, T, rows, columns)
        boxes: of the tokens, as in `cover_cells`; empty for a token without.
    """
    rows, columns = attention.shape[2], attention.shape[3]
    fullest = attention.flatten(2).argmax(dim=2, keepdim=True)
    row, column = (torch.arange(cells, device=attention.device) for cells in (rows, columns))
    from_row, from_column = row - fullest // columns, column - fullest % columns  # (B, T, rows or columns)
    beside = (from_row.abs() <= 1).unsqueeze(3) & (from_column.abs() <= 1).unsqueeze(2)
    around = attention * beside
    shares = around / around.sum(dim=(2, 3), keepdim=True).clamp(min=1e-6)
    middle, reach = (boxes[..., :2] + boxes[..., 2:]) / 2, (boxes[..., 2:] - boxes[..., :2]) / 4
    # sums, since a product of matrices may round to ten bits, and from the fullest cell, for small numbers
    aside = (shares.sum(dim=2) * from_column).sum(dim=2), (shares.sum(dim=3) * from_row).sum(dim=2)
    cell = torch.cat([fullest % columns, fullest // columns], dim=2)
    peak = cell + torch.stack(aside, dim=2) + 0.5  # x, y
    away = ((peak - middle).abs() - reach).clamp(min=0).sum(dim=2)
    has_box = (reach > 0).all(dim=2)
    return (away * has_box).sum() / has_box.sum().clamp(min=1)


def half_squared_norm(weights: Iterable[Tensor]) -> Tensor:
    """Half the sum of squares. By way of the norm: its gradient makes one pass over a weight, not three."""
    return torch.stack([torch.linalg.vector_norm(weight).square() for weight in weights]).sum() / 2


@dataclass(frozen=True)
class NetworkOutput:
    """What a network says about a batch when each true word is fed to the next step."""

    logits: Tensor  # (B, T, K)
    attention: Tensor  # (B, T, rows, columns)


def shift_right(token_ids: Tensor) -> Tensor:
    """The input at each step is the word before the target: bos first, (B, T) to (B, T)."""
    first = torch.full_like(token_ids[:, :1], Vocabulary.bos_id)
    return torch.cat([first, token_ids[:, :-1]], dim=1)


def autocast(device: torch.device, precision: str) -> contextlib.AbstractContextManager[object]:
    """Let matrix products and convolutions run in "float32" or "bfloat16"."""
    if precision == "float32":
        return contextlib.nullcontext()
    # Each weight is used once a step, and a cache of casts must not outlive the graph that made them.
    return torch.autocast(device.type, dtype=getattr(torch, precision), cache_enabled=False)


@dataclass(frozen=True)
class ExportExample:
    """What the two exported networks are traced with, and which dimensions vary beside images and hypotheses.

    The dimensions are written as `torch.export` takes them: a number to a `Dim`.
    """

    pixels: Tensor  # (B, h, w), a window of the canvas
    cells: Tensor  # as in `i2l.model.config.InkWindow`
    memory: dict[str, Tensor]
    state: dict[str, Tensor]  # of one hypothesis an image
    encoder_shapes: Any  # of pixels and cells
    memory_shapes: dict[str, dict[int, Any]] = field(default_factory=dict)  # of the memory's parts, by name
    state_shape: dict[int, Any] = field(default_factory=dict)  # of (B, k, ...), the same for all parts


class Network(nn.Module, ABC):
    """Reads the image of a formula and writes its tokens.

    Training calls `training_pass` and `loss`. Decoding calls `encode` once per image, `start`, and `step`
    once per token. `step` takes k hypotheses per image: the rows of the state and of ``token_ids`` are then
    B * k, with those of one image next to each other, and the memory is never copied per hypothesis. Export
    traces `export_encoder` and `step` with `export_example`.
    """

    config: ModelConfig

    def __init__(self, config: ModelConfig, *, vocab_size: int) -> None:
        super().__init__()
        self.config = config
        self.vocab_size = vocab_size

    @property
    @abstractmethod
    def state_names(self) -> list[str]:
        """The keys of the state."""

    @abstractmethod
    def encode(self, pixels: Tensor) -> dict[str, Tensor]:
        """Compute all that decoding needs from the images.

        Args:
            pixels: (B, H + 2, W + 2), uint8 grey on the model's canvas, white = 255.

        Returns:
            The memory: tensors with a leading batch dimension.
        """

    @abstractmethod
    def start(self, memory: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the state before the first step, one hypothesis per image: each part (B, ...)."""

    @abstractmethod
    def step(
        self, memory: dict[str, Tensor], state: dict[str, Tensor], token_ids: Tensor
    ) -> tuple[Tensor, dict[str, Tensor], Tensor]:
        """Read one token per hypothesis and score the next.

        Args:
            memory: of B images.
            state: each part (B * k, ...).
            token_ids: (B * k,), the last token of each hypothesis; bos at first.

        Returns:
            logits (B * k, K), the new state, and the attention (B * k, rows, columns).
        """

    @abstractmethod
    def forward(self, pixels: Tensor, token_ids: Tensor, lengths: Tensor) -> NetworkOutput:
        """Score each target given the true words before it.

        Args:
            pixels: (B, H + 2, W + 2), uint8 grey on the model's canvas.
            token_ids: (B, T), the targets: words, then eos; eos also pads.
            lengths: (B,), words counted with eos. What stands after them is computed all the same.
        """

    def training_pass(
        self,
        pixels: Tensor,
        token_ids: Tensor,
        lengths: Tensor,
        *,
        window: Window,
        precision: str,
        fast: bool,
    ) -> NetworkOutput:
        """Do as `forward`, from the part of the canvas that holds all ink; this is what training calls.

        A network that is faster in another way than step by step overrides this.

        Args:
            pixels: (B, window height, window width), uint8.
            token_ids: as in `forward`.
            lengths: as in `forward`.
            window: where on the canvas the pixels lie.
            precision: of matrix products: "float32" or "bfloat16".
            fast: compute in the network's fastest way, not in the plainest.
        """
        with autocast(pixels.device, precision):
            canvases = place_window(pixels, window, canvas_shape=self.config.canvas_shape)
            output: NetworkOutput = self(canvases, token_ids, lengths)
        return output

    @abstractmethod
    def export_encoder(self) -> nn.Module:
        """Return a module that computes, from the pixels and cells of a window, the memory and the state.

        Its result is the parts of the memory, then those of the first state in the order of `state_names`.
        """

    @abstractmethod
    def export_example(self) -> ExportExample:
        """Return what export traces the encoder and a step with."""

    @abstractmethod
    def regularized_parameters(self) -> list[nn.Parameter]:
        """The weights under L2 and weight decay."""

    def idle_weights(self, names: Iterable[str]) -> dict[str, Tensor]:
        """Give weights to layers of these names so that they change nothing; those it cannot are left out.

        Training that begins with the weights of a smaller network asks for them.
        """
        return {}

    def loss(
        self,
        output: NetworkOutput,
        token_ids: Tensor,
        lengths: Tensor,
        *,
        objective: ObjectiveConfig,
        boxes: Tensor | None = None,
    ) -> ObjectiveResult:
        """Compute the objective of a batch; targets and lengths as in `forward`.

        ``boxes`` has that of each token, (B, T, 4), as in `cover_cells`.
        """
        word_loss = log_loss(output.logits, token_ids, lengths, label_smoothing=objective.label_smoothing)
        ase, aae = (errors.mean() for errors in attention_errors(output.attention, lengths))
        alpha_penalty = (ase - objective.ase_target).abs()
        regularization = half_squared_norm(self.regularized_parameters())
        total = word_loss
        if objective.l2:
            total = total + objective.l2 * regularization
        if objective.alpha_penalty:
            total = total + objective.alpha_penalty * alpha_penalty
        if objective.guidance and boxes is not None:
            total = total + objective.guidance * guidance_loss(output.attention, boxes)
        if objective.placement and boxes is not None:
            total = total + objective.placement * placement_loss(output.attention, boxes)
        return ObjectiveResult(
            total=total,
            log_loss=word_loss,
            regularization=regularization,
            alpha_penalty=alpha_penalty,
            ase=ase,
            aae=aae,
        )
