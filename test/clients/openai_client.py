from openai import OpenAI

from answer import answer_asks


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


answer_asks(Client)
