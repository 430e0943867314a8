#!/bin/sh
# Cuts a stream after its third event and reads the rest. Reads BASE_URL and API_KEY.
set -eu
HEADERS=$(mktemp)
trap 'rm -f "$HEADERS"' EXIT

curl -sSN -D "$HEADERS" "$BASE_URL/chat/stream" \
  -H "Authorization: Bearer $API_KEY" -H 'Content-Type: application/json' \
  -d '{"messages": [{"role": "user", "content": "Tell me about bridges."}]}' 2>/dev/null | sed '/^id: 3$/q'

REQUEST_ID=$(sed -n 's/^[Xx]-[Rr]equest-[Ii]d: *\(req_[0-9A-Za-z]*\).*/\1/p' "$HEADERS")
echo "--- cut; resuming $REQUEST_ID after event 2"
curl -sSN --fail-with-body "$BASE_URL/chat/stream/$REQUEST_ID" \
  -H "Authorization: Bearer $API_KEY" -H 'Last-Event-ID: 2'
