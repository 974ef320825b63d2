#!/bin/sh
# Install the Debian packages named as arguments where pdflatex is missing; if we may not, say the line to type.
set -eu
command -v pdflatex >/dev/null 2>&1 && exit 0
line="apt-get install -y --no-install-recommends $*"
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "pdflatex is missing: $line"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $line >/dev/null
else
  echo "pdflatex is missing. Install TeX Live, on Debian or Ubuntu with:" >&2
  echo "  sudo $line" >&2
  exit 1
fi
