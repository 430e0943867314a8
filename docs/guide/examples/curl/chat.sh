#!/bin/sh
# A complete answer, then a stream. Reads BASE_URL and API_KEY.
set -eu

curl -sS --fail-with-body "$BASE_URL/chat" \
  -H "Authorization: Bearer $API_KEY" -H 'Content-Type: application/json' \
  -d '{"messages": [{"role": "user", "content": "What is a conversation?"}], "max_tokens": 24, "metadata": {"ticket": 42}}'
echo

# -N shows each chunk as it comes.
curl -sSN --fail-with-body "$BASE_URL/chat/stream" \
  -H "Authorization: Bearer $API_KEY" -H 'Content-Type: application/json' \
  -d '{"messages": [{"role": "user", "content": "Tell me about bridges."}], "max_tokens": 8}'
