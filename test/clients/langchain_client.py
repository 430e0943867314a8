import json
from contextlib import closing

from langchain_openai import ChatOpenAI, OpenAIEmbeddings

from answer import IMAGE, Report, answer_asks, weather


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

    def tools(self, ask, say):
        def read(model, messages):
            answer = model.invoke(messages)
            say(answer.text)
            return answer

        return self.converse(ask, read)

    def toolStream(self, ask, say):
        def read(model, messages):
            answer = None
            for chunk in model.stream(messages):
                say(chunk.text)
                answer = chunk if answer is None else answer + chunk
            return answer

        return self.converse(ask, read)

    def converse(self, ask, read):
        model = self.model.bind_tools([weather])
        messages = [{"role": "user", "content": ask["content"]}]
        while True:
            answer = read(model, messages)
            if not answer.tool_calls:
                return answer.response_metadata["finish_reason"]
            messages.append(answer)
            for call in answer.tool_calls:
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": weather(**call["args"])})

    def schema(self, ask, say):
        say(self.model.with_structured_output(Report).invoke(ask["content"]).model_dump_json())

    def image(self, ask, say):
        parts = [{"type": "text", "text": ask["content"]}, {"type": "image_url", "image_url": {"url": IMAGE}}]
        return self.complete({**ask, "content": [{"role": "user", "content": parts}]}, say)

    def embed(self, ask, say):
        # Without this setting it cuts long texts with a tokenizer that it fetches from the network.
        settings = {"model": ask["model"], "check_embedding_ctx_length": False}
        embeddings = OpenAIEmbeddings(base_url=ask["baseURL"], api_key=ask["apiKey"], **settings)
        say(json.dumps(embeddings.embed_query(ask["content"])))


answer_asks(Client)
