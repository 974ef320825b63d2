#!/bin/sh
# Makes what the page and its tests take from npm: CodeMirror in one file, the typeface, axe-core. Needs node and npm.
#   sh recipes/editor/build.sh
set -eu
cd "$(dirname "$0")"
page=../../src/i2l/web/page
npm ci --silent --ignore-scripts
node build.mjs "$page/codemirror"
cp node_modules/@fontsource-variable/inter/files/inter-latin-wght-normal.woff2 "$page/fonts/inter.woff2"
cp node_modules/@fontsource-variable/inter/LICENSE "$page/fonts/LICENSE"
mkdir -p ../../tests/web/axe
cp node_modules/axe-core/axe.min.js node_modules/axe-core/LICENSE ../../tests/web/axe/
rm -rf node_modules
