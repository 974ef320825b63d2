"""The README.md of a model folder: what it is, how good it is, how to read with it."""

from pathlib import Path

from i2l.files import atomic_write, write_checksums
from i2l.inference.calibration import Calibration
from i2l.inference.model_folder import CALIBRATION, CARD, CONFIG, ENCODER, STEP, ModelFolder, read_calibration
from i2l.inference.parity import ParityResult

_CONFIDENCE = "- Confidence: "
_NAMES = {"bleu": "BLEU-4", "edit_distance": "edit distance", "exact": "exact match"}


def write_model_card(folder: ModelFolder, parity: ParityResult, *, name: str) -> None:
    """Write the card of a model folder that is whole otherwise."""
    config, num_tokens = folder.config, len(folder.vocabulary)
    grid = " x ".join(map(str, config.grid))
    size_mb = sum((folder.path / part).stat().st_size for part in (ENCODER, STEP)) / 1e6
    scores = [
        f"| {_NAMES.get(key, key)} | {value:.4g} |"
        for key, value in sorted(folder.source["metrics"].items())
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    if config.network == "transformer":
        decoder = f"{config.decoder_layers} transformer layers of {config.decoder_units} units"
    else:
        decoder = f"{config.lstm_layers} LSTM layers of {config.lstm_units} units"
    lines = [
        f"# {name}",
        "",
        "Reads the image of a printed formula and writes its LaTeX (I2L, Singh 2018).",
        "",
        "```",
        f"i2l read formula.png --model {name}",
        "```",
        "",
        f"- Network: canvas of {config.width_px} x {config.height_px} pixels, attention over {grid} "
        f"locations, {decoder}, {num_tokens} tokens.",
        f"- Text of 12 pt at {folder.dpi:g} dpi; images of other sizes are scaled to that.",
        f"- Weights in {folder.precision}, {size_mb:.1f} MB; logits differ from the checkpoint's by "
        f"{parity.logits:.1e} (relative), attention by {parity.attention:.1e}.",
        _confidence(folder.calibration),
        f"- From step {folder.source['step']} of a run of commit {folder.source['git_hash']}.",
        f"- All settings are in {CONFIG}.",
        "",
    ]
    if scores:
        lines += ["| validation | |", "|---|---|", *scores, ""]
    with atomic_write(folder.path / CARD) as file:
        file.write("\n".join(lines))


def update_model_card(path: Path) -> None:
    """Have the card of a folder, if there is one, say how the model is calibrated now; renew its checksum."""
    card = path / CARD
    if card.is_file():
        lines = card.read_text(encoding="utf-8").split("\n")
        changed = [
            _confidence(read_calibration(path)) if line.startswith(_CONFIDENCE) else line for line in lines
        ]
        with atomic_write(card) as file:
            file.write("\n".join(changed))
    write_checksums(path, (CALIBRATION, CARD))


def _confidence(calibration: Calibration | None) -> str:
    if calibration is None:
        return f"{_CONFIDENCE}not calibrated: the probability that the model itself gives its reading."
    kinds = (
        ", ".join(f"{kind.name} {kind.num_samples}" for kind in calibration.kinds) or "the validation split"
    )
    return (
        f"{_CONFIDENCE}calibrated on {calibration.num_samples} readings ({kinds}); expected "
        f"calibration error {calibration.error:.3f}."
    )
