"""What cameras note; the browser has turned a photograph already."""


class Base:
    """Tags."""

    Orientation = 0x0112
