from contextlib import closing

from langchain_openai import ChatOpenAI

from answer import answer_asks


class Client:
    def __init__(self, ask):
        timeout = {"timeout": ask["timeoutMs"] / 1000} if ask.get("timeoutMs") else {}
        self.model = ChatOpenAI(model=ask["model"], base_url=ask["baseURL"], api_key=ask["apiKey"], **timeout)

    def complete(self, ask, say, **settings):
        answer = self.model.invoke(ask["content"], **settings)
        say(answer.text)
        return answer.response_metadata["finish_reason"]

    def json(self, ask, say):
        return self.complete(ask, say, response_format={"type": "json_object"})

    def stream(self, ask, say):
        finish = None
        with closing(self.model.stream(ask["content"])) as stream:
            for chunk in stream:
                if not say(chunk.text):
                    break
                finish = chunk.response_metadata.get("finish_reason") or finish
        return finish


answer_asks(Client)
