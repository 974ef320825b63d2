"""Reading: image in, LaTeX out. Nothing here needs torch except the torch back end and the export."""
