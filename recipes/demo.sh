#!/bin/sh
# What `make demo` runs: read the examples with the model in the box, and show where one of them was read.
set -eu
bin=$1
"$bin/i2l" read examples/*.png
"$bin/i2l" explain examples/1-paper.png -o demo.html > /dev/null
echo "Open demo.html in a browser to see where each token was read."
