"""Formula to image: TeX in a sandbox, pages to pixels, styles, and the box of every token. No torch here."""
