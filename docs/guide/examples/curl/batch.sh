#!/bin/sh
# Sends two requests as a batch and waits for their results. Reads BASE_URL and API_KEY.
set -eu
LINES=$(mktemp)
trap 'rm -f "$LINES"' EXIT

printf '%s\n' '{"custom_id": "greeting", "body": {"messages": [{"role": "user", "content": "Say hello."}]}}' \
  '{"custom_id": "sum", "body": {"messages": [{"role": "user", "content": "What is 2 + 3?"}]}}' >"$LINES"

# --data-binary keeps the line ends; -d would remove them.
BATCH_ID=$(curl -sS --fail-with-body "$BASE_URL/batches" \
  -H "Authorization: Bearer $API_KEY" -H 'Content-Type: application/x-ndjson' \
  --data-binary "@$LINES" | sed -E 's/.*"id":"(batch_[^"]+)".*/\1/')

until curl -sS --fail-with-body "$BASE_URL/batches/$BATCH_ID" -H "Authorization: Bearer $API_KEY" |
  grep -q '"status":"completed"'; do
  sleep 1
done
curl -sS --fail-with-body "$BASE_URL/batches/$BATCH_ID/results" -H "Authorization: Bearer $API_KEY"
