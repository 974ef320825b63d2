"""Reading: image in, LaTeX out. Nothing here needs torch except the torch backend and the export."""
