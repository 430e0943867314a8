"""Sends a file of requests as a batch and prints the results. Standard library only; reads BASE_URL and API_KEY.

python3 batch.py requests.ndjson nightly-1
"""

import json
import os
import sys
import time
import urllib.request

if len(sys.argv) != 3:
    print("Usage: python3 batch.py requests.ndjson nightly-1 (a file of lines, and a name to send it once)", file=sys.stderr)
    sys.exit(2)
BASE_URL, API_KEY = os.environ["BASE_URL"], os.environ["API_KEY"]
POLL_SECONDS = int(os.environ.get("POLL_MS", "5000")) / 1000


def call(path, method="GET", body=None, headers=None):
    headers = {"Authorization": f"Bearer {API_KEY}", **(headers or {})}
    return urllib.request.urlopen(urllib.request.Request(BASE_URL + path, body, headers, method=method))


with open(sys.argv[1], "rb") as lines:
    body = lines.read()
headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": sys.argv[2]}
batch = json.load(call("/batches", "POST", body, headers))

while batch["status"] in ("validating", "in_progress", "cancelling"):
    time.sleep(POLL_SECONDS)
    batch = json.load(call("/batches/" + batch["id"]))
    print(batch["status"], batch["request_counts"], batch["waiting_for"])

for line in call("/batches/" + batch["id"] + "/results"):
    result = json.loads(line)
    answer = result["response"]["choices"][0]["message"]["content"] if "response" in result else result["error"]["message"]
    print(result["custom_id"], answer)
