"""A formula in the formats of other programs: MathML, Word, Typst, AsciiMath and plain text."""
