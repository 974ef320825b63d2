"""Whole pages in, their formulas out: found, read, and said where they stand."""
