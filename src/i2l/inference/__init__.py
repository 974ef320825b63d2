"""Reading: image in, LaTeX out. Nothing here needs torch except the torch backend and the export."""

BEAM_WIDTH = 5  # hypotheses that a reader follows; on trained models ten find nothing better (docs/LOG.md)
