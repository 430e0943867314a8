import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # Its price list comes from the package and need not be fetched.

import litellm

from answer import answer_asks


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


answer_asks(Client)
