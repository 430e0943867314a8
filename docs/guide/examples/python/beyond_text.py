"""A tool, an answer that fits a schema, an image, embeddings. Standard library only; reads BASE_URL and API_KEY."""

import json
import os
import urllib.request

BASE_URL, API_KEY = os.environ["BASE_URL"], os.environ["API_KEY"]


def call(path, body):
    headers = {"Authorization": f"Bearer {API_KEY}", "Content-Type": "application/json"}
    request = urllib.request.Request(BASE_URL + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=630) as response:
        return json.load(response)


def ask(messages, **more):
    return call("/chat/completions", {"model": "mobius", "messages": messages, **more})["choices"][0]["message"]


def user(content):
    return {"role": "user", "content": content}


def weather(city):
    return f"{city}: 7 degrees"


CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": CITY}}]

# A real model needs no mark to call a tool.
messages = [user('What is it like in Oslo? simulate-tool=weather{"city":"Oslo"}')]
while (message := ask(messages, tools=TOOLS)).get("tool_calls"):
    messages.append(message)
    for called in message["tool_calls"]:
        result = weather(**json.loads(called["function"]["arguments"]))
        messages.append({"role": "tool", "tool_call_id": called["id"], "content": result})
print(message["content"])

json_schema = {"name": "place", "strict": True, "schema": CITY}
place = ask([user("Where is the Holmenkollen?")], response_format={"type": "json_schema", "json_schema": json_schema})
print(json.loads(place["content"]))

PIXEL = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
parts = [{"type": "text", "text": "What do you see?"}, {"type": "image_url", "image_url": {"url": PIXEL}}]
print(ask([user(parts)])["content"])

answer = call("/embeddings", {"model": "embedding", "input": ["a river", "a wide river", "a window"]})
river, wide, window = (item["embedding"] for item in answer["data"])


def nearness(one, other):
    return sum(a * b for a, b in zip(one, other))


print(nearness(river, wide) > nearness(river, window))
