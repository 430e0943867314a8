#!/bin/sh
# Sends the same request twice under one Idempotency-Key: one provider call, one charge. Reads BASE_URL and API_KEY.
set -eu
ORDER=${1:-order-17}

for attempt in first second; do
  echo "$attempt:"
  curl -sSi --fail-with-body "$BASE_URL/chat" \
    -H "Authorization: Bearer $API_KEY" -H 'Content-Type: application/json' -H "Idempotency-Key: $ORDER" \
    -d '{"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8}'
  echo
done
