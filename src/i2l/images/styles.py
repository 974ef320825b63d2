"""How a formula looks: the `Style` of a sample, the paper's own, and random ones for models of the world."""

from dataclasses import dataclass
from typing import Final

# What each font set adds to the preamble. The first three need only what debian-packages.txt installs.
FONTS: Final[dict[str, str]] = {
    "computer-modern": "",
    "latin-modern": r"\usepackage{lmodern}",
}


@dataclass(frozen=True)
class Style:
    """Everything that turns a formula into one certain picture."""

    font: str = "computer-modern"
    size_pt: int = 12
    display: bool = True  # else as in a line of text
    bold: bool = False
    dpi: int = 200

    def tex_part(self) -> "Style":
        """The style with all that TeX does not see left out: formulas of equal parts can share a process."""
        return Style(font=self.font, size_pt=self.size_pt, display=self.display, bold=self.bold)


PAPER: Final = Style()

# Sizes that the article class does not know; 12 pt in `article` and in `extarticle` are the same page.
_STANDARD_SIZES_PT: Final = (10, 11, 12)


def preamble(style: Style) -> str:
    """The class and packages of a style."""
    document_class = "article" if style.size_pt in _STANDARD_SIZES_PT else "extarticle"
    return (
        rf"\documentclass[{style.size_pt}pt]{{{document_class}}}"
        "\n"
        r"\usepackage{amsmath,amssymb,bm,mathrsfs}"
        f"\n{FONTS[style.font]}"
    )
