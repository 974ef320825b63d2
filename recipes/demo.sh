#!/bin/sh
# What `make demo` runs: read the examples with the model in the box; until one is there, show what exists.
set -eu
bin=$1
if "$bin/i2l" read --help >/dev/null 2>&1 && ls src/i2l/models/*/encoder.onnx >/dev/null 2>&1; then
  "$bin/i2l" read examples/*.png
  "$bin/i2l" explain examples/1-paper.png -o demo.html
  echo "Open demo.html in a browser to see where each token was read."
else
  echo "No trained model is in the box yet, so there is nothing to read images with. What exists today:"
  "$bin/i2l" --help
  echo "For example, one formula in canonical tokens, and back to LaTeX for people:"
  formula='{a^2 \over \sqrt[3]{b}} = \mbox{energy} \cdot \lim_{x\to 0} f'"''"'(x)'
  printf '  %s\n' "$formula"
  printf '  '
  printf '%s\n' "$formula" | "$bin/i2l" normalize --quiet
  printf '  '
  printf '%s\n' "$formula" | "$bin/i2l" normalize --quiet --pretty
fi
