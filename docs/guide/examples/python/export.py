"""Exports what is stored of an entity and prints its lines. Standard library only; reads BASE_URL and API_KEY.

python3 export.py pupil-42
"""

import hashlib
import io
import json
import os
import sys
import time
import urllib.request
import zipfile

if len(sys.argv) != 2:
    print("Usage: python3 export.py pupil-42 (the entity_id of your chat requests)", file=sys.stderr)
    sys.exit(2)
BASE_URL, API_KEY = os.environ["BASE_URL"], os.environ["API_KEY"]


def call(path, body=None):
    headers = {"Authorization": f"Bearer {API_KEY}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(BASE_URL + path, data, headers)) as response:
        return response.read()


job = json.loads(call("/compliance/exports", {"scope": "entity", "entity_id": sys.argv[1]}))
while job["status"] in ("queued", "in_progress"):
    time.sleep(1)
    job = json.loads(call(f"/compliance/exports/{job['id']}"))
if job["status"] == "failed":
    sys.exit(job["error"])

archive = zipfile.ZipFile(io.BytesIO(call(f"/compliance/exports/{job['id']}/download")))
for file in json.loads(archive.read("manifest.json"))["files"]:
    content = archive.read(file["name"])
    assert hashlib.sha256(content).hexdigest() == file["sha256"], file["name"]
    for line in content.splitlines():
        print(file["name"], json.loads(line))
