"""Handwriting as strokes: read from files, drawn as pens draw, and formulas written with people's symbols."""
