#!/bin/sh
# Creates a narrow key, rotates it, revokes it. Reads BASE_URL and API_KEY (scope keys).
set -eu

call() {
  curl -sS --fail-with-body -H "Authorization: Bearer $API_KEY" -H 'Content-Type: application/json' "$@"
  echo
}
CREATED=$(call "$BASE_URL/keys" \
  -d '{"name": "batch jobs", "scopes": ["chat"], "rpm": 30, "expires_in_seconds": 2592000}')
KEY_ID=$(echo "$CREATED" | sed -E 's/.*"id":"(key_[^"]+)".*/\1/')

call "$BASE_URL/keys?limit=5"
call "$BASE_URL/keys/$KEY_ID/rotate" -d '{"grace_seconds": 3600}' # the old value works for another hour
call -X DELETE "$BASE_URL/keys/$KEY_ID"                           # refused everywhere within a second
