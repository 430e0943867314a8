#!/bin/sh
# Starts a request without waiting, looks it up, reads its stream, cancels it. Reads BASE_URL and API_KEY.
set -eu

REQUEST_ID=$(curl -sS --fail-with-body "$BASE_URL/chat" \
  -H "Authorization: Bearer $API_KEY" -H 'Content-Type: application/json' -H 'Prefer: respond-async' \
  -d '{"messages": [{"role": "user", "content": "Hello"}]}' | sed -E 's/.*"id":"(req_[^"]+)".*/\1/')

curl -sS --fail-with-body "$BASE_URL/chat/$REQUEST_ID" -H "Authorization: Bearer $API_KEY"
echo
curl -sSN --fail-with-body "$BASE_URL/chat/stream/$REQUEST_ID" -H "Authorization: Bearer $API_KEY"
# Safe to repeat; a request that has ended stays as it is.
curl -sS --fail-with-body -X POST "$BASE_URL/chat/$REQUEST_ID/cancel" -H "Authorization: Bearer $API_KEY"
echo
