#!/usr/bin/env bash
# What `make shop` shows: a shop's seven months imported into a temporary folder,
# a server over them, and three questions to it.
set -euo pipefail
cd "$(dirname "$0")/../../.."
tidemark=bin/tidemark
data=$(mktemp -d)
server=
finish() {
  if [ -n "$server" ]; then kill "$server" 2>/dev/null && wait "$server" || true; fi
  rm -rf "$data"
}
trap finish EXIT
trap 'exit 0' INT TERM

server_url=http://$LISTEN
bold=; plain=
if [ -t 1 ]; then bold=$'\033[1m' plain=$'\033[0m'; fi
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
# Asks one question and shows its answer: QUESTION, PATH WITH QUERY, COMMAND…
ask() {
  say "$1"
  echo "\$ tidemark ${*:3} --server $server_url"
  "$tidemark" "${@:3}" --server "$server_url" --json=false
  echo "  the same as JSON: $server_url$2"
}

say "\$ tidemark replay --view-types sale online-retail-2010-12_2011-06.events.csv.gz"
"$tidemark" replay --data "$data" --view-types sale cmd/tidemark/testdata/online-retail-2010-12_2011-06.events.csv.gz

say "\$ tidemark serve"
"$tidemark" serve --data "$data" --listen "$LISTEN" &
server=$!
until "$tidemark" counts --server "$server_url" --last 1m >/dev/null 2>&1; do
  kill -0 "$server" 2>/dev/null || { server=; exit 1; }
  sleep 0.1
done

ask "How many people bought the white hanging heart (85123A) in the first week of December?" \
  '/v1/viewers?item=85123A&from=2010-12-01&to=2010-12-08' \
  viewers 85123A --from 2010-12-01 --to 2010-12-08
ask "How many sales were there on the last day, and how many cancellations?" \
  '/v1/counts?type=sale&type=cancel&from=2011-06-30&to=2011-07-01' \
  counts --type sale --type cancel --from 2011-06-30 --to 2011-07-01
ask "What did most people buy in June?" \
  '/v1/top?by=viewers&limit=5&from=2011-06-01&to=2011-07-01' \
  top --by viewers --limit 5 --from 2011-06-01 --to 2011-07-01

say "Answering at $server_url. Ctrl-C ends it."
[ -n "${ONCE:-}" ] || wait "$server"
