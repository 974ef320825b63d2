"""As much of Pillow as reading a formula takes, for the browser; the work on pixels is in kernels.js."""


class UnidentifiedImageError(OSError):
    """Data that is no picture of a known format."""
