"""Strings only: LaTeX to canonical tokens, tokens to ids, tokens to readable LaTeX. No torch, no TeX."""
