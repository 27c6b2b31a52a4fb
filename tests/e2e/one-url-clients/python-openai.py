"""Python's openai itself: python3 -m venv venv && venv/bin/pip install openai."""

import json
import sys

try:
    import openai
except ImportError:
    print(json.dumps({"skipped": "the package openai is not installed: python3 -m venv venv && venv/bin/pip install openai"}))
    sys.exit()

client = openai.OpenAI()


def said(words):
    return [{"role": "user", "content": words}]


raw = client.chat.completions.with_raw_response.create(model="gpt-5-mini", messages=said(sys.argv[1]))
text = raw.parse().choices[0].message.content
print(json.dumps({"text": text, "trace": raw.headers.get("x-reflex-trace"), "by": raw.headers.get("x-reflex-decided-by")}))
if len(sys.argv) > 2:
    stream = client.chat.completions.create(model="m", stream=True, messages=said("hi stream"))
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
    response = client.responses.create(model="m", input="hi response")
    try:
        openai.OpenAI(api_key="wrong", max_retries=0).chat.completions.create(model="m", messages=said("x"))
    except openai.AuthenticationError as error:
        failure = f"{type(error).__name__} {error.status_code} {error.code}"
    print(json.dumps({"said": streamed, "response": response.output_text, "error": failure}))
    models = [client.models.retrieve(model.id).id for model in client.models.list()]
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": parameters}}]
    messages = said("What is the weather in Bern?")
    asked = client.chat.completions.create(model="m", messages=messages, tools=tools).choices[0].message
    results = [{"role": "tool", "tool_call_id": call.id, "content": "blue"} for call in asked.tool_calls]
    told = client.chat.completions.create(model="m", messages=[*messages, asked, *results], tools=tools)
    print(json.dumps({"models": models, "tools": told.choices[0].message.content}))
