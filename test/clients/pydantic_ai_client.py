import asyncio

from pydantic_ai import Agent, BinaryContent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from answer import IMAGE, Report, answer_asks, weather


class Client:
    def __init__(self, ask):
        provider = OpenAIProvider(base_url=ask["baseURL"], api_key=ask["apiKey"])
        self.model = OpenAIChatModel(ask["model"], provider=provider)

    def complete(self, ask, say, **settings):
        result = asyncio.run(Agent(self.model, **settings).run(ask["content"]))
        say(result.output)
        return result.response.finish_reason

    def stream(self, ask, say):
        return asyncio.run(self.read(Agent(self.model), ask, say))

    def tools(self, ask, say):
        return self.complete(ask, say, tools=[weather])

    def toolStream(self, ask, say):
        return asyncio.run(self.read(Agent(self.model, tools=[weather]), ask, say))

    def schema(self, ask, say):
        result = asyncio.run(Agent(self.model, output_type=Report).run(ask["content"]))
        say(result.output.model_dump_json())

    def image(self, ask, say):
        return self.complete({"content": [ask["content"], BinaryContent.from_data_uri(IMAGE)]}, say)

    async def read(self, agent, ask, say):
        async with agent.run_stream(ask["content"]) as result:
            async for text in result.stream_text(delta=True, debounce_by=None):
                if not say(text):
                    break
            return result.response.finish_reason


answer_asks(Client)
