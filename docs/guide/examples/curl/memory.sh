#!/bin/sh
# Two requests of one entity, its stored messages, its deletion. Reads BASE_URL and API_KEY.
set -eu
ENTITY=${1:-visitor-1}

ask() {
  curl -sS --fail-with-body "$BASE_URL/chat" \
    -H "Authorization: Bearer $API_KEY" -H 'Content-Type: application/json' \
    -d "{\"entity_id\": \"$ENTITY\", \"messages\": [{\"role\": \"user\", \"content\": \"$1\"}], \"max_tokens\": 12}"
  echo
}
ask 'My name is Ada.'
ask 'What is my name?'

curl -sS --fail-with-body "$BASE_URL/entities/$ENTITY/history" -H "Authorization: Bearer $API_KEY"
echo
curl -sS --fail-with-body -X DELETE "$BASE_URL/entities/$ENTITY" -H "Authorization: Bearer $API_KEY"
echo
