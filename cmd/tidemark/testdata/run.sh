#!/usr/bin/env bash
# What `make run` shows: a server fed with a live stream, what trends in it, and how to
# ask it, to send to it and to prove it. With ONCE set each of these is done, once, by
# the very commands that are shown, of a smaller stream that is counted again sooner.
set -euo pipefail
cd "$(dirname "$0")/../../.."
if [ -z "${ONCE:-}" ]; then
  exec bin/tidemark demo --listen "$LISTEN"
fi

shown=$(mktemp)
demo=
finish() {
  if [ -n "$demo" ]; then kill "$demo" 2>/dev/null && wait "$demo" || true; fi
  rm -f "$shown"
}
trap finish EXIT
trap 'exit 130' INT TERM

bin/tidemark demo --listen "$LISTEN" --rate 50 --items 100 --backlog 15m >"$shown" &
demo=$!
until grep -q '^Ctrl-C ' "$shown"; do
  kill -0 "$demo" 2>/dev/null || { demo=; exit 1; }
  sleep 0.1
done
cat "$shown"
for what in ask send prove; do
  line=$(sed -n "s/^$what *//p" "$shown" | head -1)
  printf '\n$ %s\n' "$line"
  eval "$line"
done
