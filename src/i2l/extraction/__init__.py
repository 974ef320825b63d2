"""TeX sources of papers and books in, their formulas out, each with the place it came from."""
