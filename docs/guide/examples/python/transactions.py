"""Prints every entry of the ledger, oldest first. Standard library only; reads BASE_URL and API_KEY."""

import json
import os
import urllib.parse
import urllib.request

BASE_URL, API_KEY = os.environ["BASE_URL"], os.environ["API_KEY"]


def transactions():
    """Each entry carries the balance after it."""
    query = {"order": "asc", "limit": 100}
    while True:
        url = f"{BASE_URL}/billing/transactions?{urllib.parse.urlencode(query)}"
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {API_KEY}"})
        with urllib.request.urlopen(request, timeout=30) as response:
            page = json.load(response)
        yield from page["data"]
        if not page["has_more"]:
            return
        query["after"] = page["last_id"]


for entry in transactions():
    print(entry["created_at"], entry["type"], entry["credits"], entry["balance_after"])
