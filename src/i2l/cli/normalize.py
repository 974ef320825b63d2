"""`i2l normalize`: formulas in, canonical tokens out, one line for one line."""


def normalize() -> None:
    """Turn formulas into canonical tokens."""
