#!/bin/sh
# What the tests of the pages need: Playwright by npm, and Debian's Chromium (Playwright's own browsers are not used).
set -e
cmp -s package-lock.json node_modules/.tested.json || npm ci --silent --no-progress
cp package-lock.json node_modules/.tested.json
[ -x "${CHROMIUM:-/usr/bin/chromium}" ] && exit 0
[ "$(id -u)" = 0 ] || { echo "Chromium is missing: apt-get install chromium"; exit 1; }
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core
