#!/bin/sh
# The whole pipeline on a CPU, in a few minutes: build a tiny dataset, train a tiny model, read the validation split.
#   sh recipes/smoke.sh .venv/bin [FOLDER]
set -eu
bin=$1
work=${2:-runs/smoke}
mkdir -p "$work"
"$bin/python" - "$work/formulas.txt" <<'PYTHON'
import random
import sys

parts = ["{0} + {1}", "{0} _ {{ {1} }}", "{0} ^ {{ {1} }}", r"\frac {{ {0} }} {{ {1} }}", r"\sqrt {{ {0} }} = {1}"]
symbols = "abcdgkxyz123456789"
formulas = [part.format(a, b) for part in parts for a in symbols for b in symbols]
random.Random(0).shuffle(formulas)
with open(sys.argv[1], "w") as file:
    file.writelines(f"{formula}\n" for formula in formulas)
PYTHON
test -d "$work/data" || "$bin/i2l" build --formulas "$work/formulas.txt" --out "$work/data"
"$bin/i2l" train --data "$work/data" --out "$work/run" --config recipes/smoke.yaml --device cpu
