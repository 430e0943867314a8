"""A complete answer and a stream that survives a lost connection. Standard library only; reads BASE_URL and API_KEY."""

import http.client
import json
import os
import time
import urllib.error
import urllib.request

BASE_URL, API_KEY = os.environ["BASE_URL"], os.environ["API_KEY"]


class ChatError(Exception):
    def __init__(self, error):
        super().__init__(f"{error['code']}: {error['message']} ({error['request_id']})")
        self.code = error["code"]


def send(method, path, body=None, headers=None, tries=4):
    """One call. Where the service names a wait, the call is made again after it. The caller closes the response."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {API_KEY}", "Content-Type": "application/json", **(headers or {})}
    try:
        # A stream sends a ping every 15 seconds; a complete answer may take the whole time of a request.
        return urllib.request.urlopen(urllib.request.Request(BASE_URL + path, data, headers, method=method), timeout=630)
    except urllib.error.HTTPError as response:
        wait_seconds = int(response.headers.get("Retry-After", 0))
        if wait_seconds == 0 or tries == 1:
            raise ChatError(json.load(response)["error"]) from None
    time.sleep(wait_seconds)
    return send(method, path, body, headers, tries - 1)


def complete(body):
    with send("POST", "/chat", body) as response:
        answer = json.load(response)
    return answer["choices"][0]["message"]["content"], answer["usage"]


def stream(body, resumes=5):
    """Yields text as it comes. A lost connection is resumed after the last event."""
    response = send("POST", "/chat/stream", body)
    request_id = response.headers["X-Request-Id"]
    last_event_id = event_id = "0"
    while True:
        try:
            with response:
                for line in response:
                    name, _, value = line.decode().rstrip("\n").partition(": ")
                    if name == "id":
                        event_id = value
                    elif name == "data":
                        last_event_id = event_id
                        if value == "[DONE]":
                            return
                        chunk = json.loads(value)
                        if "error" in chunk:
                            raise ChatError(chunk["error"])
                        yield chunk["choices"][0]["delta"].get("content", "")
        except (OSError, http.client.HTTPException):
            pass
        if resumes == 0:
            raise RuntimeError("The connection was lost too often.")
        resumes -= 1
        response = send("GET", f"/chat/stream/{request_id}", headers={"Last-Event-ID": last_event_id})
        if response.status == 204:
            return


print(complete({"messages": [{"role": "user", "content": "What is a conversation?"}]}))
for text in stream({"messages": [{"role": "user", "content": "Tell me about bridges."}]}):
    print(text, end="", flush=True)
print()
