#!/bin/sh
# Install what the tests need beside Python: the Debian packages named as arguments where pdflatex is missing
# (if we may not, say the line to type), and Chromium for the tests of pages, which are skipped without it.
set -eu
install="apt-get install -y --no-install-recommends"
may_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

if ! command -v pdflatex >/dev/null 2>&1; then
  if may_install; then
    echo "pdflatex is missing: $install $*"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive $install "$@" >/dev/null
  else
    echo "pdflatex is missing. Install TeX Live, on Debian or Ubuntu with:" >&2
    echo "  sudo $install $*" >&2
    exit 1
  fi
fi
if ! command -v chromium >/dev/null 2>&1 && may_install; then
  echo "chromium is missing: $install chromium"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $install chromium >/dev/null || echo "No Chromium: tests of pages are skipped." >&2
fi
