"""OpenAI's Agents SDK with its chat model; the model for `/responses`, its default, is not served."""

import asyncio

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI

from answer import answer_asks

set_tracing_disabled(True)


class Client:
    def __init__(self, ask):
        client = AsyncOpenAI(base_url=ask["baseURL"], api_key=ask["apiKey"])
        self.agent = Agent(name="Agent", model=OpenAIChatCompletionsModel(ask["model"], client))

    def complete(self, ask, say):
        say(asyncio.run(Runner.run(self.agent, ask["content"])).final_output)
        return "stop"

    def stream(self, ask, say):
        return asyncio.run(self.read(ask, say))

    async def read(self, ask, say):
        result = Runner.run_streamed(self.agent, ask["content"])
        async for event in result.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                if not say(event.data.delta):
                    result.cancel()
        return "stop"


answer_asks(Client)
