#!/bin/sh
# A tool, an answer that fits a schema, an image, embeddings. Reads BASE_URL and API_KEY.
set -eu

post() {
  curl -sS --fail-with-body "$BASE_URL/$1" -H "Authorization: Bearer $API_KEY" -H 'Content-Type: application/json' -d "$2"
  echo
}
CITY='{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": false}'
TOOLS="[{\"type\": \"function\", \"function\": {\"name\": \"weather\", \"parameters\": $CITY}}]"

# The model asks for a call (a real one without the mark), and reads the result with the next request.
QUESTION='{"role": "user", "content": "What is it like in Oslo? simulate-tool"}'
post chat/completions "{\"model\": \"mobius\", \"tools\": $TOOLS, \"messages\": [$QUESTION]}"
CALL='{"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Oslo\"}"}}'
post chat/completions "{\"model\": \"mobius\", \"tools\": $TOOLS, \"messages\": [$QUESTION,
  {\"role\": \"assistant\", \"content\": null, \"tool_calls\": [$CALL]},
  {\"role\": \"tool\", \"tool_call_id\": \"call_1\", \"content\": \"7 degrees\"}]}"

post chat/completions "{\"model\": \"mobius\", \"messages\": [{\"role\": \"user\", \"content\": \"Where is the Holmenkollen?\"}],
  \"response_format\": {\"type\": \"json_schema\", \"json_schema\": {\"name\": \"place\", \"strict\": true, \"schema\": $CITY}}}"

PIXEL='data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7'
post chat/completions "{\"model\": \"mobius\", \"messages\": [{\"role\": \"user\", \"content\": [
  {\"type\": \"text\", \"text\": \"What do you see?\"}, {\"type\": \"image_url\", \"image_url\": {\"url\": \"$PIXEL\"}}]}]}"

post embeddings '{"model": "embedding", "input": "a river", "dimensions": 4}'
