import json

from openai import OpenAI

from answer import IMAGE, TOOL, Report, answer_asks, weather


class Client:
    def __init__(self, ask):
        self.openai = OpenAI(base_url=ask["baseURL"], api_key=ask["apiKey"])
        if ask.get("timeoutMs"):
            self.openai = self.openai.with_options(timeout=ask["timeoutMs"] / 1000)

    def complete(self, ask, say, **settings):
        messages = [{"role": "user", "content": ask["content"]}]
        answer = self.openai.chat.completions.create(model=ask["model"], messages=messages, **settings)
        say(answer.choices[0].message.content)
        return answer.choices[0].finish_reason

    def json(self, ask, say):
        return self.complete(ask, say, response_format={"type": "json_object"})

    def stream(self, ask, say):
        messages = [{"role": "user", "content": ask["content"]}]
        finish = None
        with self.openai.chat.completions.create(model=ask["model"], messages=messages, stream=True) as stream:
            for chunk in stream:
                if not say(chunk.choices[0].delta.content):
                    break
                finish = chunk.choices[0].finish_reason or finish
        return finish

    def tools(self, ask, say):
        def create(asked):
            answer = self.openai.chat.completions.create(**asked)
            say(answer.choices[0].message.content)
            return answer

        return self.converse(ask, create)

    def toolStream(self, ask, say):
        def create(asked):
            with self.openai.chat.completions.stream(**asked) as stream:
                for event in stream:
                    if event.type == "content.delta":
                        say(event.delta)
                return stream.get_final_completion()

        return self.converse(ask, create)

    def converse(self, ask, create):
        messages = [{"role": "user", "content": ask["content"]}]
        while True:
            choice = create({"model": ask["model"], "messages": messages, "tools": [TOOL]}).choices[0]
            if choice.finish_reason != "tool_calls":
                return choice.finish_reason
            messages.append(choice.message)
            for call in choice.message.tool_calls:
                result = weather(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

    def schema(self, ask, say):
        messages = [{"role": "user", "content": ask["content"]}]
        answer = self.openai.chat.completions.parse(model=ask["model"], messages=messages, response_format=Report)
        say(answer.choices[0].message.parsed.model_dump_json())
        return answer.choices[0].finish_reason

    def image(self, ask, say):
        parts = [{"type": "text", "text": ask["content"]}, {"type": "image_url", "image_url": {"url": IMAGE}}]
        return self.complete({**ask, "content": parts}, say)

    def embed(self, ask, say):
        say(json.dumps(self.openai.embeddings.create(model=ask["model"], input=ask["content"]).data[0].embedding))


answer_asks(Client)
