"""What the figures of the README are measured with; `make bench` runs it all."""
