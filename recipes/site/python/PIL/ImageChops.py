"""Arithmetic on pictures."""

from PIL import Image


def invert(image):
    """Make light what is dark."""
    return Image.fromarray(255 - image._array())
