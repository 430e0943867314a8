"""OpenAI's Agents SDK with its chat model; the model for `/responses`, its default, is not served."""

import asyncio

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from answer import IMAGE, Report, answer_asks, weather

set_tracing_disabled(True)


class Client:
    def __init__(self, ask):
        client = AsyncOpenAI(base_url=ask["baseURL"], api_key=ask["apiKey"])
        self.agent = Agent(name="Agent", model=OpenAIChatCompletionsModel(ask["model"], client))
        self.working = self.agent.clone(tools=[function_tool(weather)])

    def complete(self, ask, say):
        say(asyncio.run(Runner.run(self.agent, ask["content"])).final_output)
        return "stop"

    def stream(self, ask, say):
        return asyncio.run(self.read(self.agent, ask, say))

    def tools(self, ask, say):
        say(asyncio.run(Runner.run(self.working, ask["content"])).final_output)
        return "stop"

    def toolStream(self, ask, say):
        return asyncio.run(self.read(self.working, ask, say))

    def schema(self, ask, say):
        result = asyncio.run(Runner.run(self.agent.clone(output_type=Report), ask["content"]))
        say(result.final_output.model_dump_json())

    def image(self, ask, say):
        parts = [{"type": "input_text", "text": ask["content"]}, {"type": "input_image", "image_url": IMAGE}]
        return self.complete({"content": [{"role": "user", "content": parts}]}, say)

    async def read(self, agent, ask, say):
        result = Runner.run_streamed(agent, ask["content"])
        async for event in result.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                if not say(event.data.delta):
                    result.cancel()
        return "stop"


answer_asks(Client)
