"""What Python's openai sends and reads, by plain HTTP: no package is needed."""

import json
import os
import sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen

BASE_URL = os.environ["OPENAI_BASE_URL"]


def post(path, body, key=os.environ["OPENAI_API_KEY"]):
    headers = {
        "Accept": "application/json",
        "Content-Type": "application/json",
        "Authorization": f"Bearer {key}",
        "User-Agent": "OpenAI/Python 2.8.1",
        "X-Stainless-Lang": "python",
        "X-Stainless-Retry-Count": "0",
        "x-stainless-read-timeout": "600",
    }
    return urlopen(Request(f"{BASE_URL}{path}", json.dumps(body).encode(), headers))


def said(words):
    return [{"role": "user", "content": words}]


with post("/chat/completions", {"messages": said(sys.argv[1]), "model": "gpt-5-mini"}) as response:
    text = json.load(response)["choices"][0]["message"]["content"]
    print(json.dumps({"text": text, "by": response.headers.get("x-reflex-decided-by")}))
if len(sys.argv) > 2:
    streamed = ""
    with post("/chat/completions", {"messages": said("hi stream"), "model": "m", "stream": True}) as response:
        for line in response:
            data = line.decode().removeprefix("data: ").strip()
            if data and not data.startswith(":") and data != "[DONE]":
                streamed += json.loads(data)["choices"][0]["delta"].get("content") or ""
    with post("/responses", {"input": "hi response", "model": "m"}) as response:
        output = json.load(response)["output"][0]["content"][0]["text"]
    try:
        post("/chat/completions", {"messages": said("x"), "model": "m"}, key="wrong")
    except HTTPError as error:
        failure = json.load(error)["error"]["code"]
    print(json.dumps({"said": streamed, "response": output, "error": failure}))
