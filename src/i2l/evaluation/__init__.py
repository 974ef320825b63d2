"""How good is a reader: every published score and our own, with intervals, breakdowns and a report."""
