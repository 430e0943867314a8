import asyncio

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from answer import answer_asks


class Client:
    def __init__(self, ask):
        provider = OpenAIProvider(base_url=ask["baseURL"], api_key=ask["apiKey"])
        self.model = OpenAIChatModel(ask["model"], provider=provider)

    def complete(self, ask, say):
        result = asyncio.run(Agent(self.model).run(ask["content"]))
        say(result.output)
        return result.response.finish_reason

    def stream(self, ask, say):
        return asyncio.run(self.read(ask, say))

    async def read(self, ask, say):
        async with Agent(self.model).run_stream(ask["content"]) as result:
            async for text in result.stream_text(delta=True, debounce_by=None):
                if not say(text):
                    break
            return result.response.finish_reason


answer_asks(Client)
