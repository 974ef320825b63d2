"""The network that a config describes."""

from i2l.config import ModelConfig
from i2l.model.network import Network
from i2l.model.pinpoint import Pinpoint
from i2l.model.recognizer import Recognizer


def build_network(config: ModelConfig, *, vocab_size: int) -> Network:
    """Make the network with new weights."""
    kind = Pinpoint if config.network == "transformer" else Recognizer
    return kind(config, vocab_size=vocab_size)
