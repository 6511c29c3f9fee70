#!/usr/bin/env bash
# web_test.sh WEB BUILD: copies the page's sources to BUILD, installs what tests need there, checks types, and runs the tests.
set -euo pipefail
web=$1 build=$2
mkdir -p "$build/page"
cp -r "$web/package.json" "$web/package-lock.json" "$web/tsconfig.json" "$web/bundle.mjs" "$web/src" "$web/test" "$build/page/"
cd "$build/page"
if [ ! -d node_modules/playwright-core ] || [ package-lock.json -nt node_modules/playwright-core ]; then
  npm ci --ignore-scripts --no-audit --no-fund --loglevel error
  touch node_modules/playwright-core
fi
node_modules/.bin/tsc --noEmit
node --test --test-concurrency=1 test/unit.mjs test/run.mjs
