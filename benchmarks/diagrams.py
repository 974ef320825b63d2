"""`python -m benchmarks.diagrams`: the paper's networks as drawings, made from their configurations.

Writes docs/results/diagram-NAME.svg for the model (of each preset), the LSTM stack and the init model. Every
number in them is worked out from the configuration that trains the network; a test draws them anew and
compares.
"""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from i2l.html import svg
from i2l.model.calstm.config import CalstmConfig
from i2l.model.config import model_preset

FOLDER = Path(__file__).parents[1] / "docs" / "results"
WIDTH, ROW = 780, 64
STYLE = Markup(
    "<style>svg{font:13px system-ui,sans-serif;background:#fff}rect{fill:#f5f7fa;stroke:#98a2b3;rx:7px}"
    "text{fill:#1c2330}.dim{fill:#667085;font-size:12px}path{fill:none;stroke:#3d6fb6;stroke-width:1.6}"
    ".head{fill:#3d6fb6;stroke:none}.part rect{fill:#e3edff;stroke:#3d6fb6}"
    "@media(prefers-color-scheme:dark){svg{background:#14181f}rect{fill:#1d232d;stroke:#667085}"
    "text{fill:#e6e9ef}.dim{fill:#9aa3b2}.part rect{fill:#1f3358}}</style>"
)


class Drawing:
    """Boxes and arrows; places are of a box's middle, y downwards."""

    def __init__(self) -> None:
        self.parts: list[Markup] = [STYLE]
        self.bottom = 0.0

    def box(
        self, x: float, y: float, title: str, note: str = "", *, width: float = 170, part: bool = False
    ) -> None:
        """Draw a box with its name, and below that what it holds; what has weights is coloured."""
        height = 46 if note else 30
        text = Markup('<text x="{:g}" y="{:g}" text-anchor="middle">{}</text>').format(
            x, y + (-3 if note else 4), title
        )
        if note:
            text += Markup('<text class="dim" x="{:g}" y="{:g}" text-anchor="middle">{}</text>').format(
                x, y + 14, note
            )
        frame = Markup('<g{}><rect x="{:g}" y="{:g}" width="{:g}" height="{:g}"/>{}</g>')
        kind = Markup(' class="part"') if part else Markup("")
        self.parts.append(frame.format(kind, x - width / 2, y - height / 2, width, height, text))
        self.bottom = max(self.bottom, y + height / 2)

    def arrow(self, *points: tuple[float, float], label: str = "") -> None:
        """Draw a line through points with a head at its end, and a word beside the end of its first piece."""
        line = " ".join(f"{'M' if place == 0 else 'L'}{x:g} {y:g}" for place, (x, y) in enumerate(points))
        (before_x, before_y), (x, y) = points[-2:]
        if before_x == x:
            back = 8 if y > before_y else -8
            head = f"M{x:g} {y:g}l-4.5 {-back:g}h9z"
        else:
            back = 8 if x > before_x else -8
            head = f"M{x:g} {y:g}l{-back:g} -4.5v9z"
        self.parts.append(Markup('<path d="{}"/><path class="head" d="{}"/>').format(line, head))
        if label:
            (first_x, first_y), (second_x, second_y) = points[:2]
            text = Markup('<text class="dim" x="{:g}" y="{:g}">{}</text>')
            self.parts.append(text.format((first_x + second_x) / 2 + 6, (first_y + second_y) / 2 + 4, label))

    def note(self, x: float, y: float, text: str) -> None:
        """Write a line of small text, from its left end."""
        self.parts.append(Markup('<text class="dim" x="{:g}" y="{:g}">{}</text>').format(x, y, text))
        self.bottom = max(self.bottom, y)

    def text(self) -> str:
        """Give the file."""
        return f"{svg(WIDTH, self.bottom + 16, self.parts)}\n"


def draw_model(config: CalstmConfig) -> str:
    """Draw the whole network: from pixels to the score of the next word, and round again."""
    drawing = Drawing()
    rows, columns = config.grid
    num_locations, features = rows * columns, config.feature_units
    first, second = (max(units, num_locations) for units in config.attention_units)
    height, width = config.height_px, config.width_px
    left, right = 150.0, 520.0
    drawing.box(left, 30, "image", f"{height} x {width} pixels", width=200)
    y = 30.0
    for place, channels in enumerate(config.channels, start=1):
        y += ROW
        drawing.arrow((left, y - ROW + 23), (left, y - 23))
        grid = f"{height >> place} x {width >> place} x {channels}"
        drawing.box(left, y, "3 x 3, tanh; 2 x 2 largest", grid, width=200, part=True)
    if config.pool_rows * config.pool_columns > 1:
        y += ROW
        drawing.arrow((left, y - ROW + 23), (left, y - 23))
        drawing.box(
            left,
            y,
            f"{config.pool_rows} x {config.pool_columns} cells as one",
            "their features side by side",
            width=200,
        )
    y += ROW
    drawing.arrow((left, y - ROW + 23), (left, y - 23))
    drawing.box(left, y, "features a", f"{num_locations} locations of {features:,}", width=200)
    at = {
        "embedding": 94.0,
        "attention": 190.0,
        "context": 270.0,
        "stack": 350.0,
        "output": 430.0,
        "word": 510.0,
    }
    drawing.box(right, 30, "word before", "one of K")
    drawing.arrow((right, 53), (right, at["embedding"] - 23))
    drawing.box(right, at["embedding"], "embedding", f"{config.embedding_units}", part=True)
    drawing.box(
        right, at["attention"], "attention", f"{first} and {second} tanh, softmax", width=210, part=True
    )
    drawing.arrow((left + 100, y), (330, y), (330, at["attention"]), (right - 105, at["attention"]))
    drawing.arrow(
        (right, at["attention"] + 23), (right, at["context"] - 23), label=f"α over {rows} x {columns}"
    )
    drawing.box(right, at["context"], "context z", f"Σ α a: {features:,}", width=210)
    drawing.arrow((330, y), (330, at["context"]), (right - 105, at["context"]))
    drawing.arrow((right, at["context"] + 23), (right, at["stack"] - 23))
    stack = f"{config.lstm_layers} layers of {config.lstm_units:,} units"
    drawing.box(right, at["stack"], "LSTM stack", stack, width=210, part=True)
    drawing.arrow((right, at["stack"] + 23), (right, at["output"] - 23), label="h")
    units = f"{config.output_units} and {config.output_units} tanh, K scores"
    drawing.box(right, at["output"], "output layer", units, width=210, part=True)
    drawing.arrow((right, at["output"] + 23), (right, at["word"] - 23))
    drawing.box(right, at["word"], "next word", "softmax over K")
    # What skips the stack, what comes back into attention, and where a reading begins.
    drawing.arrow(
        (right + 85, at["embedding"]), (660, at["embedding"]), (660, at["stack"]), (right + 105, at["stack"])
    )
    drawing.arrow((660, at["stack"]), (660, at["output"]), (right + 105, at["output"]))
    drawing.arrow(
        (right + 105, at["context"]),
        (640, at["context"]),
        (640, at["output"] - 12),
        (right + 105, at["output"] - 12),
    )
    drawing.arrow(
        (right + 105, at["stack"] + 12),
        (690, at["stack"] + 12),
        (690, at["attention"]),
        (right + 105, at["attention"]),
    )
    drawing.note(696, at["context"] - 4, "h of the")
    drawing.note(696, at["context"] + 12, "step before")
    if config.init_model:
        drawing.arrow((330, at["context"]), (330, at["stack"]), (right - 105, at["stack"]))
        drawing.note(338, at["stack"] - 6, "init")
    return drawing.text()


def draw_lstm(config: CalstmConfig) -> str:
    """Draw one step of the LSTM stack."""
    drawing = Drawing()
    units = config.lstm_units
    inputs = config.embedding_units + config.feature_units
    drawing.box(
        380,
        30,
        "word and context",
        f"{config.embedding_units} + {config.feature_units:,} = {inputs:,}",
        width=220,
    )
    y = 30.0
    for layer in range(1, config.lstm_layers + 1):
        below = inputs if layer == 1 else units + (inputs if config.lstm_skip else 0)
        y += 110
        drawing.arrow((380, y - 110 + (23 if layer == 1 else 40)), (380, y - 40))
        drawing.box(
            380,
            y - 16,
            f"layer {layer}: gates i, f, o and candidate g",
            f"({below:,} + {units:,}) x 4 · {units:,}",
            width=330,
            part=True,
        )
        drawing.box(380, y + 24, "c = f c + i g;  h = o tanh c", width=330, part=True)
        drawing.arrow((60, y), (215, y))
        drawing.note(60, y - 8, "c, h of the step before")
        drawing.arrow((545, y), (700, y))
        drawing.note(556, y - 8, f"c, h: {units:,} each")
    drawing.arrow((380, y + 39), (380, y + 76))
    drawing.box(380, y + 92, f"h of layer {config.lstm_layers}", width=220)
    drawing.note(
        60,
        y + 130,
        "i and f see c of the step before, o sees the new c, unit by unit (peepholes); "
        "1 is added to f before its sigmoid.",
    )
    return drawing.text()


def draw_init(config: CalstmConfig) -> str:
    """Draw the init model: the first state from the whole image."""
    drawing = Drawing()
    rows, columns = config.grid
    flat = rows * columns * config.feature_units
    drawing.box(
        380,
        30,
        "features a, all in one",
        f"{rows} x {columns} x {config.feature_units:,} = {flat:,}",
        width=240,
    )
    drawing.arrow((380, 53), (380, 91))
    drawing.box(380, 114, "hidden layer", f"{config.init_units} tanh", part=True)
    names = [f"{part} of layer {layer}" for layer in range(1, config.lstm_layers + 1) for part in ("c", "h")]
    step = 700 / len(names)
    for place, name in enumerate(names):
        x = 30 + step * (place + 0.5)
        drawing.arrow((380, 137), (380, 162), (x, 162), (x, 187))
        drawing.box(x, 210, name, f"{config.lstm_units:,} tanh", width=step - 20, part=True)
    return drawing.text()


def drawings() -> dict[str, str]:
    """Draw everything, by the name of its file."""
    nopool, strips = (_calstm(name) for name in ("nopool", "strips"))
    return {
        "diagram-nopool.svg": draw_model(nopool),
        "diagram-strips.svg": draw_model(strips),
        "diagram-lstm.svg": draw_lstm(nopool),
        "diagram-init.svg": draw_init(nopool),
    }


def _calstm(name: str) -> CalstmConfig:
    config = model_preset(name)
    assert isinstance(config, CalstmConfig)
    return config


def main(folders: Sequence[Path] = (FOLDER,)) -> None:
    """Write the files."""
    for folder in folders:
        for name, text in drawings().items():
            (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
