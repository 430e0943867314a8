import json

import httpx
from httpx_sse import connect_sse

from answer import answer_asks


class Failure(Exception):
    pass


class Client:
    def __init__(self, ask):
        headers = {"Authorization": f"Bearer {ask['apiKey']}"}
        self.http = httpx.Client(base_url=ask["baseURL"], headers=headers, timeout=60)

    def stream(self, ask, say):
        body = {"model": ask["model"], "messages": [{"role": "user", "content": ask["content"]}]}
        finish = None
        with connect_sse(self.http, "POST", "/chat/stream", json=body) as source:
            source.response.raise_for_status()
            for event in source.iter_sse():
                if event.data == "[DONE]":
                    break
                chunk = json.loads(event.data)
                if "error" in chunk:
                    raise Failure(chunk["error"]["message"])
                if not say(chunk["choices"][0]["delta"].get("content")):
                    break
                finish = chunk["choices"][0]["finish_reason"] or finish
        return finish


answer_asks(Client)
