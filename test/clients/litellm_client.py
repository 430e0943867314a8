import json
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # Its price list comes from the package and need not be fetched.

import litellm

from answer import IMAGE, TOOL, Report, answer_asks, weather


class Client:
    def __init__(self, ask):
        self.settings = {"model": f"openai/{ask['model']}", "api_base": ask["baseURL"], "api_key": ask["apiKey"]}
        if ask.get("timeoutMs"):
            self.settings["timeout"] = ask["timeoutMs"] / 1000

    def complete(self, ask, say, **settings):
        messages = [{"role": "user", "content": ask["content"]}]
        answer = litellm.completion(messages=messages, **self.settings, **settings)
        say(answer.choices[0].message.content)
        return answer.choices[0].finish_reason

    def json(self, ask, say):
        return self.complete(ask, say, response_format={"type": "json_object"})

    def stream(self, ask, say):
        messages = [{"role": "user", "content": ask["content"]}]
        finish = None
        for chunk in litellm.completion(messages=messages, stream=True, **self.settings):
            if not say(chunk.choices[0].delta.content):
                break
            finish = chunk.choices[0].finish_reason or finish
        return finish

    def tools(self, ask, say):
        def create(messages):
            answer = litellm.completion(messages=messages, tools=[TOOL], **self.settings)
            say(answer.choices[0].message.content)
            return answer

        return self.converse(ask, create)

    def toolStream(self, ask, say):
        def create(messages):
            chunks = []
            for chunk in litellm.completion(messages=messages, tools=[TOOL], stream=True, **self.settings):
                say(chunk.choices[0].delta.content)
                chunks.append(chunk)
            return litellm.stream_chunk_builder(chunks, messages=messages)

        return self.converse(ask, create)

    def converse(self, ask, create):
        messages = [{"role": "user", "content": ask["content"]}]
        while True:
            choice = create(messages).choices[0]
            if not choice.message.tool_calls:
                return choice.finish_reason
            messages.append(choice.message)
            for call in choice.message.tool_calls:
                result = weather(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

    def schema(self, ask, say):
        messages = [{"role": "user", "content": ask["content"]}]
        choice = litellm.completion(messages=messages, response_format=Report, **self.settings).choices[0]
        say(Report.model_validate_json(choice.message.content).model_dump_json())
        return choice.finish_reason

    def image(self, ask, say):
        parts = [{"type": "text", "text": ask["content"]}, {"type": "image_url", "image_url": {"url": IMAGE}}]
        return self.complete({**ask, "content": parts}, say)

    def embed(self, ask, say):
        answer = litellm.embedding(input=[ask["content"]], encoding_format="float", **self.settings)
        say(json.dumps(answer.data[0]["embedding"]))


answer_asks(Client)
