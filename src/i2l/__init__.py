"""I2L: image of a printed formula in, LaTeX out, and every token points at the pixels it was read from."""

__version__ = "0.1.0"
