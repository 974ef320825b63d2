"""Environments: what each becomes, and in which style its cells are set."""

from typing import Final

# Environments: what they become, and the style of their cells (0 display, 1 text, 2 script).
MATRICES: Final = {
    "matrix": None,
    "pmatrix": (r"\left(", r"\right)"),
    "bmatrix": (r"\left[", r"\right]"),
    "Bmatrix": (r"\left\{", r"\right\}"),
    "vmatrix": (r"\left|", r"\right|"),
    "Vmatrix": (r"\left\|", r"\right\|"),
}
CELL_STYLES: Final = {
    "array": 1,
    "tabular": 1,
    "cases": 1,
    "matrix": 1,
    "smallmatrix": 2,
    "aligned": 0,
    "gathered": 0,
    "split": 0,
    "alignedat": 0,
    "subarray": 2,
    "dcases": 0,
    "rcases": 1,
    "picture": 1,
}
# Displays of several lines: one line is read as a plain formula, more as the box with the same alignment.
DISPLAYS: Final = {
    "align": "aligned",
    "flalign": "aligned",
    "alignat": "alignedat",
    "eqnarray": "eqnarray",
    "gather": "gathered",
    "multline": "gathered",
    "split": "aligned",
    "equation": "equation",
    "displaymath": "equation",
    "math": "equation",
}
# Old plain TeX commands with rows in their argument.
ROW_COMMANDS: Final = {
    r"\matrix": "matrix",
    r"\pmatrix": "pmatrix",
    r"\cases": "cases",
    r"\eqalign": "aligned",
    r"\smallmatrix": "smallmatrix",
    r"\substack": "substack",
}
