"""Answers the asks of the tests like answer.mjs, for clients in Python."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

from pydantic import BaseModel

IMAGE = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Report(BaseModel):
    city: str
    degrees: int
    wind: Literal["calm", "storm"]


def weather(city: str) -> str:
    """The weather of a city."""
    return f"{city}: 7 degrees"


# The tool in OpenAI's form.
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "weather", "description": weather.__doc__, "parameters": PARAMETERS}}


def describe(error):
    status = getattr(error, "status_code", None)
    return {"name": type(error).__name__, "status": status, "message": str(error)}


def answer_asks(client_of):
    """`client_of` makes the client of an ask; its methods are those of answer.mjs and return the finish reason."""

    def answer(ask):
        heard = []

        def say(text):
            if text:
                heard.append(text)
            return not (ask.get("leaves") and heard)

        try:
            outcome = {"finish": getattr(client_of(ask), ask["call"])(ask, say)}
        except Exception as error:
            outcome = {"error": describe(error)}
        line = json.dumps({"id": ask["id"], "text": "".join(heard), **outcome})
        # In one piece, because other threads print as well.
        print(f"{line}\n", end="", flush=True)

    with ThreadPoolExecutor(32) as threads:
        for line in sys.stdin:
            threads.submit(answer, json.loads(line))
