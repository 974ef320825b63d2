#!/bin/sh
# Install those of the Debian packages in the file given that are missing; `#` begins a comment there.
# Where we may not, say the line to type. Only pdflatex must be there for the tests to start: a test that misses
# something else says what.
set -eu
packages=$(sed 's/#.*//' "$1")
install="apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=600"
missing=""

if command -v dpkg-query >/dev/null 2>&1; then
  for package in $packages; do
    dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed \
      || missing="$missing $package"
  done
fi
if [ -n "$missing" ]; then
  if [ "$(id -u)" = 0 ]; then
    echo "Missing:$missing"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # one by one where a name is not known here, so that it does not keep the others away
    $install $missing >/dev/null || for package in $missing; do
      $install "$package" >/dev/null || echo "$package cannot be installed." >&2
    done
  else
    echo "Missing, install them with:  sudo $install$missing" >&2
  fi
fi
if ! command -v pdflatex >/dev/null 2>&1; then
  echo "There is no pdflatex. Install TeX Live; on Debian or Ubuntu:  sudo $install" $packages >&2
  exit 1
fi
